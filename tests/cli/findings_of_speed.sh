# doctor: the findings that rest on how long things take, from a model or data that must have them, and beside it from nearly the same
# that must not. How long they take depends on the machine and on what else it does, so this belongs to `make soak`; the rules
# themselves are tested on given facts in unit/insight.
. "$(dirname "$0")/run.sh"

export XDG_CACHE_HOME=$PWD/cache

# fires ID OPTION...: doctor finds it, in one of twenty attempts, since other programs may take the cores in the middle of a step
fires() {
    for _ in {1..20}; do
        run doctor "${@:2}" --seconds 0.5 --json
        ! grep -qF "\"id\": \"$1\"" out || return 0
    done
    fail "$1: doctor ${*:2}"
}

# How quick a step is beside what surrounds it depends on the machine, so doctor must find what profile measures there: in one of ten
# attempts both say that overhead takes a fifth of the time in which workers are busy, or both say that it does not.
finds_what_profile_measures() {
    local said measured
    shift
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

# A table of 400 samples with two normal columns and the class of their sum.
python3 - <<'PYTHON'
import random

draw = random.Random(7)
with open("good.csv", "w") as file:
    file.write("a,b,label\n")
    for _ in range(400):
        a, b = draw.gauss(0, 1), draw.gauss(0, 1)
        file.write(f"{a:.6f},{b:.6f},{int(a > 0) + int(a + b > 0)}\n")
PYTHON

finds_what_profile_measures overhead-bound --model 'dense(1)' --data 'synth:line?n=5000' --batch 1 --workers 1
silent overhead-bound --model 'dense(512,relu) dense(512,relu) dense(1)' --data 'synth:line?n=5000' --batch 256 --workers 1
fires data-bound --model 'flatten dense(3,softmax)' --data 'synth:images?n=96&shape=4x4x1&classes=3&delay=1ms'
silent data-bound --model 'flatten dense(512,relu) dense(512,relu) dense(3,softmax)' --data 'synth:images?n=96&shape=4x4x1&classes=3'

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
fires compute-bound "${heavy[@]}"
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

finish
