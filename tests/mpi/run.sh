# What the tests of ranks over MPI share; sourced by each of them, no test itself. $MPI is openmpi or mpich; $PROGRAM is program.c, $BITS
# tests/bits.
. "$(dirname "$0")/../cli/run.sh"

: "${MPI:=openmpi}"
if [ ! -f "$(dirname "$BATCHWISE")/libbatchwise_mpi_$MPI.so" ]; then
    echo "SKIPPED: there is no libbatchwise_mpi_$MPI.so beside $BATCHWISE: this MPI is not installed (tools/setup test installs Open MPI)"
    exit 77
fi
case $MPI in
openmpi) launcher="mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none --mca odls_base_sigkill_timeout 8" ;;
mpich) launcher="mpiexec.mpich" ;;
esac
command -v "${launcher%% *}" >/dev/null || launcher="mpirun${launcher#"${launcher%% *}"}" # where there is one MPI only
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1
unset BATCHWISE_MPI

# ranks COUNT COMMAND...: runs a command of Batchwise on several ranks, as run does on one
ranks() {
    local count=$1
    shift
    code=0
    # shellcheck disable=SC2086
    timeout 120 $launcher -n "$count" "$BATCHWISE" "$@" >out 2>err || code=$?
}

# programs PROGRAM COUNT ARGUMENTS...: the same of a program in C.
programs() {
    local program=$1 count=$2
    shift 2
    code=0
    # shellcheck disable=SC2086
    BATCHWISE_MPI=$(dirname "$BATCHWISE")/libbatchwise_mpi_$MPI.so timeout 120 $launcher -n "$count" "$program" "$@" >out 2>err || code=$?
}

# begin COUNT COMMAND...: starts ranks that train for hours, in the background ($process), and waits for their third epoch. $processes gets
# the numbers of the ranks' processes, in the order of ranks.
begin() {
    local count=$1 waited=0 number
    shift
    : >out
    : >err
    # shellcheck disable=SC2086
    $launcher -n "$count" "$BATCHWISE" "$@" >out 2>err &
    process=$!
    until grep -q 'Epoch 3/' err || ! kill -0 "$process" 2>/dev/null || [ "$waited" -ge 600 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    processes=
    for number in $(pgrep -f "$BATCHWISE $1"); do
        case $(tr '\0' ' ' <"/proc/$number/cmdline" 2>/dev/null) in
        "$BATCHWISE $1 "*)
            processes="$processes $(tr '\0' '\n' <"/proc/$number/environ" | sed -nE 's/^(OMPI_COMM_WORLD_RANK|PMI_RANK)=//p' | head -n 1):$number" ;;
        esac
    done
}

# process_of RANK
process_of() {
    local each
    for each in $processes; do
        [ "${each%%:*}" != "$1" ] || echo "${each#*:}"
    done
}

# wait_ranks SECONDS WHAT: the job has ended by itself within that time
wait_ranks() {
    local waited=0
    while kill -0 "$process" 2>/dev/null && [ "$waited" -lt $(($1 * 10)) ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    kill -0 "$process" 2>/dev/null && {
        fail "$2: the job still runs after $1 seconds"
        kill -KILL "$process"
    }
    code=0
    wait "$process" 2>/dev/null || code=$?
}
