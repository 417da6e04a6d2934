# doctor: every finding from data, a model or options that must have it, and beside it from nearly the same that must not; and no finding
# but notes about speed on ten problems in which nothing is wrong.
. "$(dirname "$0")/run.sh"

export XDG_CACHE_HOME=$PWD/cache
seen=

# fires ID OPTION...: doctor finds it
fires() {
    local id=$1
    shift
    run doctor "$@" --seconds 0.5 --json
    expect_code 0 "doctor $*"
    expect_text out "\"id\": \"$id\"" "$id: doctor $*"
    seen="$seen $id"
}

# fires_when_alone ID OPTION...: the same, in one of twenty attempts, since other programs may take the cores in the middle of a step
fires_when_alone() {
    for _ in {1..19}; do
        run doctor "${@:2}" --seconds 0.5 --json
        if grep -qF "\"id\": \"$1\"" out; then
            seen="$seen $1"
            return
        fi
    done
    fires "$@"
}

# How quick a step is beside what surrounds it depends on the machine, so doctor must find what profile measures there: in one of ten
# attempts both say that overhead takes a fifth of the time in which workers are busy, or both say that it does not.
finds_the_overhead_of_profile() {
    local said measured
    for _ in {1..10}; do
        run doctor "$@" --seconds 0.5 --json
        expect_code 0 "doctor $*"
        said=$(grep -c '"id": "overhead-bound"' out || true)
        run profile "$@" --seconds 0.1 --json
        expect_code 0 "profile $*"
        measured=$(python3 -c '
import json
facts = json.load(open("out"))
parts = {name: us / facts["step_us"] for name, us in facts["parts"].items()}
print(int(parts["overhead"] >= 0.2 * (1 - parts["idle"]) and parts["data wait"] < 0.2 and facts["parts"]["overhead"] <= 50))')
        if [ "$said" = "$measured" ]; then
            seen="$seen overhead-bound"
            return
        fi
    done
    fail "doctor said $said of overhead-bound where profile measured $measured: $*"
}

# silent ID OPTION...: doctor does not find it
silent() {
    local id=$1
    shift
    run doctor "$@" --seconds 0.5 --json
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
finds_the_overhead_of_profile --model 'dense(1)' --data 'synth:line?n=5000' --batch 1 --workers 1
silent overhead-bound --model 'dense(512,relu) dense(512,relu) dense(1)' --data 'synth:line?n=5000' --batch 256 --workers 1
fires_when_alone data-bound --model 'flatten dense(3,softmax)' --data 'synth:images?n=96&shape=4x4x1&classes=3&delay=1ms'
silent data-bound --model 'flatten dense(512,relu) dense(512,relu) dense(3,softmax)' --data 'synth:images?n=96&shape=4x4x1&classes=3'
cnn='conv2d(8,3,padding=same) batchnorm relu global_avgpool2d dense(3,softmax)'
pictures='synth:images?n=64&shape=64x64x3&classes=3'
fires capacity-bound --model "$cnn" --data "$pictures" --memory 1600K
silent capacity-bound --model "$cnn" --data "$pictures"

# Limits are those of the file that keeps them, so other numbers there make another machine: one that computes little, one that moves
# little, one that does much of both. What is moved counts only up to a quarter beyond the limit, so limits around what a profile
# measured are tried, in case other programs run.
heavy=(--model 'dense(1024,relu) dense(1024,relu) dense(3,softmax)' --data good.csv --batch 256 --workers 1)
run profile "${heavy[@]}" --seconds 0.3 --json
cp out profiled

# machine FLOPS BYTES: the limits of the machine from now on
machine() {
    "$BATCHWISE" --version | python3 -c '
import json, os, re, sys
machine, version = json.load(open("profiled"))["machine"], sys.stdin.read().split()[1]
flops, moved, cores = float(sys.argv[1]), float(sys.argv[2]), machine["cores"]
os.makedirs("cache/batchwise", exist_ok=True)
name = "-".join(["limits", re.sub("[^A-Za-z0-9]", "_", machine["cpu"]), str(cores), machine["instruction_set"], version])
json.dump(dict(cpu=machine["cpu"], instruction_set=machine["instruction_set"], cores=cores, version=version, cache_bytes=0, core_flops=flops,
               flops=flops, core_bandwidth=moved, bandwidth=moved, cache_bandwidth=moved, exchange_bandwidth=moved, meeting_seconds=1e-6,
               growth=[[cores, 1, 1]]), open("cache/batchwise/" + name + ".json", "w"))' "$1" "$2"
}

machine 1e9 1e15
fires_when_alone compute-bound "${heavy[@]}"
machine 1e15 1e15
silent compute-bound "${heavy[@]}"
silent bandwidth-bound "${heavy[@]}"
for moved in $(python3 -c 'import json
ops = json.load(open("profiled"))["ops"]
rate = 1e9 * sum(o["gb_per_s"] * o["us"] for o in ops) / sum(o["us"] for o in ops)
print(*("%g" % (rate * factor) for factor in (1.15, 1.7, 0.8, 2.5, 0.5, 4, 0.3)))'); do
    machine 1e15 "$moved"
    run doctor "${heavy[@]}" --seconds 0.3 --json
    ! grep -qF '"id": "bandwidth-bound"' out || break
done
expect_text out '"id": "bandwidth-bound"' 'bandwidth-bound: one of the machines'
seen="$seen bandwidth-bound"
silent swapping --model "$net" --data good.csv

run doctor --help
for id in $(sed -n '/^findings:/,$p' out | tr ' ,' '\n\n' | grep -E '^[a-z]+(-[a-z]+)*$' | sort -u); do
    case " $seen findings swapping " in
    *" $id "*) ;;
    *) fail "$id fires nowhere in this test" ;;
    esac
done

# Nothing is wrong here. Notes about speed and the noise scale are no alarms.
clean() {
    run doctor "$@" --seconds 0.5 --json
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
