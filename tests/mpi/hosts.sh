# Ranks on several machines, which are network namespaces of this one: the bits of one process, over a thin link and a long one too, and what
# is said when a machine disappears. Needs root and Open MPI. No part of `make test`: tests/mpi/hosts.sh, or make soak.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/run.sh"

skip() {
    echo "SKIPPED: $*"
    exit 77
}
[ "$(id -u)" = 0 ] || skip 'network namespaces need root'
command -v ip >/dev/null || skip 'there is no ip (Debian: iproute2)'
ip netns add bwhost0 2>/dev/null || skip 'this system has no network namespaces'
ip netns del bwhost0

relay=
take_down() {
    local host
    [ -z "$relay" ] || kill "$relay" 2>/dev/null || :
    nft delete table netdev bwgone 2>/dev/null || :
    ip link del bwlong 2>/dev/null || :
    for host in 1 2; do
        ip netns pids "bwhost$host" 2>/dev/null | xargs -r kill -KILL 2>/dev/null || :
        ip netns del "bwhost$host" 2>/dev/null || :
    done
    ip link del bwbridge 2>/dev/null || :
    rm -rf "$work"
}
trap take_down EXIT

# Two machines on a bridge; the launcher is the bridge's owner, and reaches them by an agent in place of ssh.
ip link add bwbridge type bridge
ip addr add 10.77.0.1/24 dev bwbridge
ip link set bwbridge up
for host in 1 2; do
    ip netns add "bwhost$host"
    ip link add "bwveth$host" type veth peer name eth0 netns "bwhost$host"
    ip link set "bwveth$host" master bwbridge up
    ip -n "bwhost$host" addr add "10.77.0.1$host/24" dev eth0
    ip -n "bwhost$host" link set eth0 up
    ip -n "bwhost$host" link set lo up
done
cat >agent <<'END'
#!/bin/sh
# agent HOST COMMAND...: the machine's number is the last digit of its address; its name is its own, too
host=$1
shift
exec ip netns exec "bwhost${host#"${host%?}"}" unshare --uts sh -c "hostname node${host#"${host%?}"}; exec sh -c '$*'"
END
chmod +x agent
launcher="$launcher --host 10.77.0.11:2,10.77.0.12:2 --mca plm_rsh_agent $PWD/agent --mca oob_tcp_if_include 10.77.0.0/24
    --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24"

mnist='flatten dense(64,relu) dense(10,softmax)'
run train --model "$mnist" --data "$digits" --scale 1/16 --epochs 3 --json
expect_code 0 'one process'
hash=$(value hash)
ranks 4 train --model "$mnist" --data "$digits" --scale 1/16 --epochs 3 --workers 1 --json
expect_code 0 'two machines'
expect_equal "$hash" "$(value hash)" 'two machines'

# over_link WHAT: trains over a link that is worse than a network of a cluster, and nobody is given up
run train --model "$mnist" --data "$digits" --scale 1/16 --epochs 1 --batch 128 --json
worse=$(value hash)
over_link() {
    local begun
    begun=$(date +%s)
    ranks 4 train --model "$mnist" --data "$digits" --scale 1/16 --epochs 1 --batch 128 --workers 1 --watchdog 4s --json
    expect_code 0 "$1"
    expect_equal "$worse" "$(value hash)" "$1"
    echo "$1: $(($(date +%s) - begun)) seconds"
}

# A thin link: two megabits a second.
if tc qdisc add dev bwveth2 root tbf rate 2mbit burst 16kbit latency 200ms 2>/dev/null; then
    over_link 'a thin link'
    tc qdisc del dev bwveth2 root
else
    echo 'a thin link: left out, since this kernel has no tbf'
fi

# A long link: 20 ms each way, by a relay in place of the bridge's own port.
if command -v python3 >/dev/null; then
    ip link add bwlong type veth peer name bwport
    ip link set bwlong up
    ip link set bwport master bwbridge up
    ip link set bwveth2 nomaster
    ip link set bwveth2 promisc on
    ip netns exec bwhost1 python3 "$here/relay.py" prepare eth0
    ip netns exec bwhost2 python3 "$here/relay.py" prepare eth0
    python3 "$here/relay.py" prepare bwbridge
    python3 "$here/relay.py" 20 bwlong bwveth2 &
    relay=$!
    over_link 'a long link'
    kill "$relay"
    relay=
    ip link del bwlong
    ip link set bwveth2 master bwbridge
else
    echo 'a long link: left out, since there is no python3'
fi

# A machine disappears: its ranks are named within the watchdog's time, and the run goes on without it.
begin 4 train --model "$mnist" --data "$digits" --scale 1/16 --epochs 1000000 --workers 1 --run gone --checkpoint-every epoch --watchdog 5s
if command -v nft >/dev/null; then
    nft add table netdev bwgone
    nft add chain netdev bwgone in '{ type filter hook ingress device bwveth2 priority 0; policy drop; }'
else
    ip link set bwveth2 down
fi
waited=0
until grep -q 'has given no sign of life' err || [ "$waited" -ge 300 ]; do
    sleep 0.1
    waited=$((waited + 1))
done
expect_pattern err 'rank [23] of 4 \(process [0-9]+ on node2\) has given no sign of life for 5 seconds' 'a machine that disappears'
echo "a machine that disappears was named after $((waited / 10)).$((waited % 10)) seconds"
sleep 1
kill -KILL "$process" 2>/dev/null || :
wait "$process" 2>/dev/null || :
expect_text err 'to go on from the checkpoint of step' 'a machine that disappears'
finish
