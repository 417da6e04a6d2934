# doctor: every finding from data, a model or options that must have it, and beside it from nearly the same that must not; and no finding
# but notes about speed on ten problems in which nothing is wrong. Those of speed have a test of their own, findings_of_speed.sh.
. "$(dirname "$0")/run.sh"

export XDG_CACHE_HOME=$PWD/cache
seen=

# fires ID OPTION...: doctor finds it. Trials end after a number of updates; the seconds are for machines that have much else to do.
fires() {
    local id=$1
    shift
    run doctor "$@" --seconds 60 --json
    expect_code 0 "doctor $*"
    expect_text out "\"id\": \"$id\"" "$id: doctor $*"
    seen="$seen $id"
}

# silent ID OPTION...: doctor does not find it
silent() {
    local id=$1
    shift
    run doctor "$@" --seconds 60 --json
    expect_code 0 "doctor $*"
    ! grep -qF "\"id\": \"$id\"" out || fail "$id, which is not there: doctor $*"
}

# Tables of 400 samples with two normal columns and the class of their sum, each with one thing wrong; a law of 64 inputs under noise.
python3 - <<'PYTHON'
import random
import struct

draw = random.Random(7)


def write(name, rows, header="a,b,label"):
    with open(name + ".csv", "w") as file:
        file.write(header + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))


def samples(count):
    pairs = [(draw.gauss(0, 1), draw.gauss(0, 1)) for _ in range(count)]
    return [[round(a, 6), round(b, 6), int(a > 0) + int(a + b > 0)] for a, b in pairs]


good = samples(400)
write("good", good)
write("other", samples(200))
for name, first in (("nan", float("nan")), ("numbered", 0.5)):
    with open(name + ".npy", "wb") as file:
        header = "{'descr': '<f4', 'fortran_order': False, 'shape': (400, 2)}"
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.ljust(117).encode() + b"\n")
        file.write(struct.pack("<800f", first, *[value for row in good for value in row[:2]][1:]))
with open("labels.npy", "wb") as file:
    header = "{'descr': '<i4', 'fortran_order': False, 'shape': (400,)}"
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.ljust(117).encode() + b"\n")
    file.write(struct.pack("<400i", *[row[2] for row in good]))
write("sorted", sorted(good, key=lambda row: row[2]))
write("rare", [row for row in good if row[2] != 1][:250] + [row for row in good if row[2] == 1][:5])
write("large", [[round(1000 * row[0], 3), *row[1:]] for row in good])
write("flat", [[3, *row] for row in good], "flat,a,b,label")
write("copies", good + good[:40])
write("shifted", [[row[0] * 255, row[1] * 255, row[2]] for row in samples(200)])
write("numbers", [[*row[:2], round(0.8 * row[0] - 0.5 * row[1] + 0.1 * draw.gauss(0, 1), 6)] for row in samples(600)], "a,b,y")
write("yes", [[*row[:2], int(row[0] + row[1] > 0.2)] for row in samples(600)])
for name, noise in (("noisy", 1), ("clear", 0.05)):
    rows = []
    for _ in range(3000):
        x = [draw.gauss(0, 1) for _ in range(64)]
        rows.append(["%.4f" % v for v in x] + ["%.5f" % (0.02 * sum(x) + noise * draw.gauss(0, 1))])
    write(name, rows, ",".join("x%d" % k for k in range(64)) + ",y")
PYTHON

net='dense(16,relu) dense(3,softmax)'
fires not-a-number --model "$net" --data nan.npy,labels.npy
silent not-a-number --model "$net" --data numbered.npy,labels.npy
fires label-out-of-range --model 'dense(16,relu) dense(2,softmax)' --data good.csv
silent label-out-of-range --model "$net" --data good.csv
fires wrong-loss-for-output --model 'dense(16,relu) dense(3)' --data good.csv --loss sparse_categorical_crossentropy
silent wrong-loss-for-output --model "$net" --data good.csv --loss sparse_categorical_crossentropy
fires unshuffled-labels --model "$net" --data sorted.csv --no-shuffle
silent unshuffled-labels --model "$net" --data sorted.csv
silent unshuffled-labels --model "$net" --data good.csv --no-shuffle
fires class-imbalance --model "$net" --data rare.csv
silent class-imbalance --model "$net" --data rare.csv --class-weight auto
fires unscaled-inputs --model "$net" --data large.csv
silent unscaled-inputs --model "$net" --data large.csv --standardise
silent unscaled-inputs --model "normalization $net" --data large.csv
fires constant-feature --model "$net" --data flat.csv
silent constant-feature --model "$net" --data flat.csv --ignore flat
fires duplicate-samples --model "$net" --data copies.csv
silent duplicate-samples --model "$net" --data good.csv
fires leak-into-validation --model "$net" --data good.csv --validation copies.csv
silent leak-into-validation --model "$net" --data good.csv --validation other.csv
fires inconsistent-preprocessing --model "$net" --data good.csv --validation shifted.csv
silent inconsistent-preprocessing --model "$net" --data good.csv --validation other.csv
fires tiny-last-batch --model "$net" --data good.csv --batch 57
silent tiny-last-batch --model "$net" --data good.csv --batch 57 --drop-remainder
silent tiny-last-batch --model "$net" --data good.csv --batch 50
fires batchnorm-small-batch --model "dense(16) batchnorm relu dense(3,softmax)" --data good.csv --batch 4
silent batchnorm-small-batch --model "dense(16) batchnorm relu dense(3,softmax)" --data good.csv --batch 4 --accumulate 8
silent batchnorm-small-batch --model "dense(16) batchnorm relu dense(3,softmax)" --data good.csv --batch 50
law='dense(1,kernel_initializer=zeros)'
fires batch-below-noise --model "$law" --data noisy.csv --optimizer 'sgd(1e-5)' --batch 128
silent batch-below-noise --model "$law" --data clear.csv --optimizer 'sgd(1e-5)' --batch 64
fires batch-past-noise --model 'dense(1)' --data 'synth:line?n=500' --optimizer 'sgd(1e-4)' --batch 256
silent batch-past-noise --model "$law" --data clear.csv --optimizer 'sgd(1e-5)' --batch 64
fires learning-rate-too-high --model 'dense(1)' --data numbers.csv --optimizer 'sgd(3)'
silent learning-rate-too-high --model 'dense(1)' --data numbers.csv --optimizer 'sgd(0.03)'
fires learning-rate-too-low --model "$net" --data good.csv --optimizer 'adam(1e-6)'
silent learning-rate-too-low --model "$net" --data good.csv --optimizer 'adam(0.001)'
fires dead-units --model 'dense(32,relu,bias_initializer=constant(-30)) dense(3,softmax)' --data good.csv
silent dead-units --model 'dense(32,relu) dense(3,softmax)' --data good.csv
deep=
for _ in 1 2 3 4 5 6 7 8 9; do
    deep="$deep dense(16,sigmoid)"
done
fires vanishing-gradient --model "$deep dense(3,softmax)" --data good.csv
silent vanishing-gradient --model "${deep//sigmoid/relu} dense(3,softmax)" --data good.csv
wide='dense(64,relu,kernel_initializer=random_normal(stddev=2))'
fires exploding-gradient --model "$wide $wide $wide dense(3,softmax)" --data good.csv
silent exploding-gradient --model "${wide//random_normal(stddev=2)/he_normal} dense(3,softmax)" --data good.csv
cnn='conv2d(8,3,padding=same) batchnorm relu global_avgpool2d dense(3,softmax)'
pictures='synth:images?n=64&shape=64x64x3&classes=3'
fires capacity-bound --model "$cnn" --data "$pictures" --memory 1600K
silent capacity-bound --model "$cnn" --data "$pictures"

silent swapping --model "$net" --data good.csv

run doctor --help
for id in $(sed -n '/^findings:/,$p' out | tr ' ,' '\n\n' | grep -E '^[a-z]+(-[a-z]+)*$' | sort -u); do
    case " $seen findings swapping " in
    *" $id "*) ;;
    *) grep -qE "^[a-z_]+ $id " "$(dirname "$0")/findings_of_speed.sh" || fail "$id fires nowhere" ;;
    esac
done

# Nothing is wrong here. Notes about speed and the noise scale are no alarms.
clean() {
    run doctor "$@" --seconds 60 --json
    expect_code 0 "doctor $*"
    local found
    found=$(grep -oE '"id": "[a-z-]+", "severity": "(warning|error)"' out || true)
    expect_equal '' "$found" "an alarm: doctor $*"
}

clean --model "$net" --data good.csv --validation other.csv
clean --model 'dense(16,tanh) dense(1,sigmoid)' --data yes.csv --validation-split 0.2
clean --model 'dense(16,relu) dense(1)' --data numbers.csv --batch 16
clean --model "$law" --data clear.csv --optimizer 'sgd(0.01)'
clean --model 'flatten dense(32,relu) dense(10,softmax)' --data "$digits" --scale 1/16 --validation-split 0.2
clean --model 'flatten dense(32,relu) dense(10,softmax)' --data "$digits" --standardise
clean --model 'conv2d(8,3,relu) maxpool2d(2) flatten dense(10,softmax)' --data "$digits" --scale 1/16 --optimizer 'sgd(0.1,momentum=0.9)' --batch 64
clean --model 'conv2d(8,3) batchnorm relu flatten dense(10,softmax)' --data "$digits" --scale 1/16
clean --model 'conv2d(8,3,relu) maxpool2d(2) flatten dense(4,softmax)' --data 'synth:shapes?n=400'
clean --model 'dense(1)' --data 'synth:line?n=500' --optimizer 'adam(0.01)'

finish
