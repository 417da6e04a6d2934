# eval and predict: what a trained model says, by name, as text, JSON and files.
. "$(dirname "$0")/run.sh"

train --epochs 10 --quiet --lr 0.01 --save-model m.keras
expect_code 0 train

# eval: loss and metrics of all samples, and the confusion matrix.
run eval --model m.keras --data "$digits" --scale 1/16
expect_code 0 eval
expect_pattern out '^accuracy 0\.9[0-9]+, loss 0\.[0-9]{4} over 1797 samples$' eval
expect_text out 'confusion (rows: true, columns: predicted)' eval
expect_equal 15 "$(wc -l <out)" 'eval: lines'
expect_pattern out '^  0( +[0-9]+){10} +(0\.[0-9]{3}|1\.000)$' eval
expect_pattern out '^  precision( +(0\.[0-9]{3}|1\.000)){10}$' eval
expect_empty err eval
# Its diagonal is what accuracy counts, its sum the samples.
awk 'NR > 4 && NR < 15 && $1 ~ /^[0-9]$/ { for (i = 2; i <= 11; i++) all += $i; right += $($1 + 2) } END { printf "%d %.4f\n", all, right / all }' out >sums
expect_equal "1797 $(sed -nE 's/^accuracy ([0-9.]+),.*/\1/p' out)" "$(cat sums)" 'sums of the confusion matrix'

run eval --model m.keras --data "$digits" --scale 1/16 --json --workers 1
expect_code 0 'eval --json'
expect_equal 1 "$(wc -l <out)" 'eval --json: lines'
expect_pattern out '^\{"accuracy": 0\.9[0-9]+, "loss": 0\.[0-9]+, "samples": 1797, "classes": \["0", .*"confusion": \[\[.*"precision_by_class": \[.*"recall_by_class": \[.*\}$' 'eval --json'

# predict: as CSV, as NumPy, as JSON, all the same.
run predict --model m.keras --data "$digits" --scale 1/16
expect_code 0 predict
expect_equal 1798 "$(wc -l <out)" 'predict: lines'
expect_equal 'class,0,1,2,3,4,5,6,7,8,9' "$(head -n 1 out)" 'predict: names'
expect_pattern out '^[0-9](,[0-9.e-]+){10}$' predict
cp out standard.csv
run predict --model m.keras --data "$digits" --scale 1/16 --out p.csv
expect_code 0 'predict --out p.csv'
expect_empty out 'predict --out p.csv'
cmp -s standard.csv p.csv || fail 'predict --out p.csv: expected what goes to standard output'
run predict --model m.keras --data "$digits" --scale 1/16 --out p.npy
expect_code 0 'predict --out p.npy'
expect_equal $((128 + 1797 * 10 * 4)) "$(wc -c <p.npy)" 'p.npy: bytes'
expect_equal "{'descr': '<f4', 'fortran_order': False, 'shape': (1797, 10,), }" "$(head -n 1 p.npy | tail -c +11 | sed 's/ *$//')" 'p.npy: header'
od -An -tf4 -j128 -w40 p.npy | awk '{ best = 1; for (i = 2; i <= 10; i++) if ($i > $best) best = i; print best - 1 }' >classes
sed 1d p.csv | cut -d, -f1 | cmp -s - classes || fail 'p.npy and p.csv: expected the same classes'
run predict --model m.keras --data "$digits" --scale 1/16 --json
expect_code 0 'predict --json'
expect_pattern out '^\{"samples": 1797, "out": null, "outputs": \[\{"name": "dense_1", "shape": \[10\], "logits": false, "classes": \["0", .*"predicted": \["[0-9]", .*"predictions": \[\[.*\}$' 'predict --json'

# Names of classes come from the data, whatever is in them; the second is never predicted, the last is not there.
printf 'a,b,color\n1,1,red\n9,9,"b,lue"\n1,2,red\n9,8,"b,lue"\n2,1,red\n' >t.csv
run train --model 'dense(2,softmax)' --data t.csv --epochs 300 --lr 0.1 --quiet --save-model c.keras
expect_code 0 'train t.csv'
run eval --model c.keras --data t.csv
expect_code 0 'eval t.csv'
expect_pattern out '^  b,lue +2 +0 +1\.000$' 'eval t.csv'
expect_pattern out '^  red +0 +3 +1\.000$' 'eval t.csv'
run predict --model c.keras --data t.csv --quiet
expect_equal 'class,"b,lue",red' "$(head -n 1 out)" 'predict t.csv'
expect_pattern out '^"b,lue",' 'predict t.csv'
printf '1,1\n9,9\n' >u.csv
run predict --model c.keras --data u.csv --no-target --no-header --quiet
expect_code 0 '--no-target'
expect_equal 3 "$(wc -l <out)" '--no-target: lines'

# One probability is two classes; a number is none.
printf '0,0\n1,1\n0,0\n1,1\n' >b.csv
run train --model 'dense(1,sigmoid)' --data b.csv --no-header --epochs 300 --lr 0.1 --quiet --save-model b.keras
run eval --model b.keras --data b.csv --no-header
expect_pattern out '^  1 +0 +2 +1\.000$' 'eval of a sigmoid'
run predict --model b.keras --data b.csv --no-header
expect_equal 'class,probability' "$(head -n 1 out)" 'predict of a sigmoid'
run train --model 'dense(1)' --data b.csv --no-header --epochs 2 --quiet --save-model n.keras
run eval --model n.keras --data b.csv --no-header
expect_pattern out '^loss [0-9.]+ over 4 samples$' 'eval of a number'
expect_equal 1 "$(wc -l <out)" 'eval of a number: lines'
run predict --model n.keras --data b.csv --no-header
expect_equal prediction "$(head -n 1 out)" 'predict of a number'

# A budget: one that is too small is refused with the bytes that would do, and those do.
for command in eval predict; do
    run $command --model m.keras --data "$digits" --memory 4K
    expect_code 1 "$command with too little memory"
    least=$(sed -nE 's/.*a budget of 4\.0 KiB is too small: .*\(([0-9]+) bytes\)$/\1/p' err)
    run $command --model m.keras --data "$digits" --memory "${least:-0}"
    expect_code 0 "$command with as much memory as was named"
done

# Options that contradict how the model was trained are refused, also where they are the default's value.
run eval --model m.keras --data "$digits" --scale 1
expect_code 1 'eval with another scale'
expect_text err 'scale: the model was trained with 0.0625, found 1; leave it out' 'eval with another scale'
run eval --model m.keras --data "$digits" --shape 8x8
expect_code 1 'eval with another shape'

# Statistics of the training part go with the model: raw columns give the same as columns standardised by hand.
awk -v OFS=, 'BEGIN { print "a,b,y"; for (i = 0; i < 40; i++) print 1000 + i, i * i / 100, (i > 20 ? "big" : "small") }' >raw.csv
awk -F, 'NR > 1 && NR < 32 { n++; a += $1; aa += ($1 - 1000) ^ 2; b += $2; bb += $2 ^ 2 }
    END { a /= n; b /= n; printf "%.9g %.9g %.9g %.9g", a, sqrt(aa / n - (a - 1000) ^ 2), b, sqrt(bb / n - b ^ 2) }' raw.csv >statistics
awk -F, -v OFS=, 'NR == FNR { split($0, s, " "); next } FNR == 1 { print; next } { print ($1 - s[1]) / s[2], ($2 - s[3]) / s[4], $3 }' \
    CONVFMT=%.9g OFMT=%.9g statistics raw.csv >scaled.csv
for data in raw scaled; do
    option=--standardise
    [ $data = raw ] || option=
    run train --model 'dense(2,softmax)' --data $data.csv $option --no-shuffle --validation-split 0.25 --epochs 3 --quiet --save-model $data.keras
    expect_code 0 "train $data.csv"
    run eval --model $data.keras --data $data.csv --quiet
    head -n 1 out >$data.eval
done
cmp -s raw.eval scaled.eval || fail "--standardise: expected $(cat scaled.eval), found $(cat raw.eval)"
run train --model raw.keras --data raw.csv --standardise --quiet
expect_code 2 '--standardise of a model that has statistics'
expect_text err "--standardise: the model's file says how its data is prepared" '--standardise of a model that has statistics'
run train --model 'dense(2,softmax)' --data raw.csv --validation raw.csv --normalise --epochs 2 --quiet --json
expect_code 0 --normalise
expect_equal "$(sed -E 's/.*"val_loss": \[([^]]*)\].*/\1/' out | awk -F', ' '{ print $2 < 0.9 }')" 1 '--normalise: validation data is normalised too'

# No key of an object comes twice, and a metric keeps its own.
run train --model 'dense(1,sigmoid)' --data b.csv --no-header --metrics precision,recall --epochs 2 --quiet --save-model k.keras
run eval --model k.keras --data b.csv --no-header --json --quiet
expect_equal '' "$(grep -o '"[a-z_]*":' out | sort | uniq -d)" 'eval --json: keys that come twice'
expect_pattern out '"precision": [0-9.]+, "recall": [0-9.]+' 'eval --json: metrics'

# Logits stay logits, as in Keras, and it is said; --probabilities is their sigmoid.
run train --model 'dense(1)' --data b.csv --no-header --loss 'binary_crossentropy(from_logits=true)' --epochs 200 --lr 0.1 --quiet --save-model l.keras
run predict --model l.keras --data b.csv --no-header
expect_code 0 'predict of logits'
expect_text err 'gives logits, as in Keras; --probabilities gives probabilities' 'predict of logits'
expect_equal 'class,logit' "$(head -n 1 out)" 'predict of logits'
awk -F, 'NR > 1 { print $1, 1 / (1 + exp(-$2)) }' out >by_hand
run predict --model l.keras --data b.csv --no-header --probabilities
expect_empty err 'predict --probabilities'
awk -F, 'NR > 1 { print $1, $2 + 0 }' out | cmp -s - by_hand || fail "--probabilities: expected $(cat by_hand), found $(cat out)"

# New images: one, a list and a folder without classes, each with its file; sizes and colours become those of training.
images=$(dirname "$0")/../data/images
mkdir -p photos/gray photos/colour new
cp "$images/photo_gray.jpg" photos/gray/1.jpg
cp "$images/rgba.png" photos/colour/1.png
cp "$images/photo_gray.jpg" "new/a, b.jpg"
cp "$images/interlaced.png" new/z.png
run train --model 'flatten dense(2,softmax)' --data photos --shape 6x5x3 --scale 1/255 --epochs 1 --quiet --save-model i.keras
expect_code 0 'train photos'
run predict --model i.keras --data new --quiet
expect_code 0 'predict a folder'
expect_equal 'file,class,colour,gray' "$(head -n 1 out)" 'predict a folder'
expect_pattern out '^"new/a, b\.jpg",(gray|colour),[0-9.e-]+,[0-9.e-]+$' 'predict a folder'
sed -n 3p out >second
run predict --model i.keras --data new/z.png --quiet
expect_equal "$(cat second)" "$(sed -n 2p out)" 'predict one image'
run predict --model i.keras --data photos/gray/1.jpg,new/z.png --quiet --json
expect_text out '"files": ["photos/gray/1.jpg", "new/z.png"]' 'predict a list'
run predict --model i.keras --data photos/gray/1.jpg new/z.png --quiet
expect_code 0 'predict several images'
expect_equal "photos/gray/1.jpg new/z.png" "$(sed 1d out | cut -d, -f1 | tr '\n' ' ' | sed 's/ $//')" 'predict several images'
expect_equal "$(cat second)" "$(sed -n 3p out)" 'predict several images'
run predict --data new/*.png photos/*/*.jpg --model i.keras --quiet
expect_equal "new/z.png photos/gray/1.jpg" "$(sed 1d out | cut -d, -f1 | tr '\n' ' ' | sed 's/ $//')" 'predict what a shell makes of globs'
for i in $(seq 1100); do ln "new/z.png" "new/$i.png"; done
run predict --model i.keras --data new/[0-9]*.png --quiet
expect_code 0 'predict more than a thousand images'
expect_equal 1101 "$(wc -l <out)" 'predict more than a thousand images'
rm new/[0-9]*.png
run predict --model i.keras --data new/none.png --quiet
expect_code 1 'predict an image that is not there'
expect_text err 'new/none.png' 'predict an image that is not there'

# Failures.
run eval --model missing.keras --data "$digits"
expect_code 1 'eval of a model that is not there'
expect_text err 'missing.keras' 'eval of a model that is not there'
run eval --model m.keras --data missing.npz
expect_code 1 'eval of data that is not there'
expect_text err 'missing.npz' 'eval of data that is not there'
run eval --model m.keras --data t.csv
expect_code 1 'eval of data that does not fit'
run predict --model m.keras --data "$digits" --out no/such/folder.csv
expect_code 1 'predict to a folder that is not there'
expect_text err 'no/such/folder.csv' 'predict to a folder that is not there'
expect_equal '' "$(find . -name '*.tmp')" 'temporary files'
finish
