# Models in files: saved, loaded, trained on; the same bytes each time; what is refused.
. "$(dirname "$0")/run.sh"

hash() { sed -nE 's/^weights ([0-9a-f]+).*/\1/p' out; }

# Three epochs at once, or two and one with a file between, are the same: the optimizer's state is in the file.
train --epochs 3 --no-shuffle --quiet
expect_code 0 'three epochs'
whole=$(hash)
train --epochs 2 --no-shuffle --quiet --save-model two.keras
expect_code 0 '--save-model'
two=$(hash)
run train --model two.keras --data "$digits" --scale 1/16 --epochs 1 --no-shuffle --quiet --save-model three.keras
expect_code 0 '--model two.keras'
expect_equal "$whole" "$(hash)" 'two epochs and one'

# The same weights are the same file, byte for byte.
train --epochs 2 --no-shuffle --quiet --save-model again.keras
cmp -s two.keras again.keras || fail 'two files of the same weights differ'

# Weights only, and without weights.
for name in m.safetensors m.weights.h5 m.json; do
    train --epochs 2 --no-shuffle --quiet --save-model "$name"
    expect_code 0 "--save-model $name"
    expect_equal "$two" "$(hash)" "$name: the weights"
    [ -s "$name" ] || fail "$name is not there"
done
run train --model m.json --data "$digits" --scale 1/16 --epochs 1 --no-shuffle --quiet
expect_code 0 '--model m.json'

# Options say otherwise; the rest stays.
run train --model two.keras --data "$digits" --scale 1/16 --epochs 1 --no-shuffle --quiet --json --lr 0.5
expect_code 0 '--lr of a loaded model'
run train --model two.keras --data "$digits" --scale 1/16 --epochs 1 --no-shuffle --quiet --json --metrics top_k_categorical_accuracy
expect_code 1 'targets that do not fit the metric'
run train --model two.keras --data "$digits" --scale 1/16 --epochs 1 --no-shuffle --quiet --json --metrics sparse_top_k_categorical_accuracy
expect_code 0 '--metrics of a loaded model'
expect_text out '"sparse_top_k_categorical_accuracy"' '--metrics of a loaded model'
run train --model two.keras --data "$digits" --optimizer nonsense --quiet
expect_code 2 'an optimizer that is not there'

# Failures name the file and leave nothing behind.
run train --model missing.keras --data "$digits" --quiet
expect_code 1 'a model that is not there'
expect_text err 'missing.keras' 'a model that is not there'
echo 'no model' >text.keras
run train --model text.keras --data "$digits" --quiet
expect_code 1 'a text as a model'
expect_text err 'text.keras' 'a text as a model'
head -c 3000 two.keras >cut.keras
run train --model cut.keras --data "$digits" --quiet
expect_code 1 'half a model'
train --epochs 1 --quiet --save-model no/such/folder.keras
expect_code 1 'a folder that is not there'
expect_text err 'no/such/folder.keras' 'a folder that is not there'
expect_equal '' "$(ls | grep -F .tmp || true)" 'files left behind'
finish
