#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Shows all of xdp-sieve in a minute: two network namespaces, a real threat feed as an exact set, flows in filters, real
# packets both ways, and swaps under traffic. A receiver checks the verdict on every single packet. The script removes
# everything that it made. Exits with 0 if every verdict was right.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" -eq 0 ] || {
    echo "demo: network namespaces and XDP need root: sudo make demo" >&2
    exit 1
}

WORLD=sieve-world-$$ HOST=sieve-host-$$
WORK=$(mktemp -d)
step=0
daemon=

cleanup() {
    local status=$?
    trap '' HUP INT PIPE TERM
    if [ -n "$daemon" ]; then kill "$daemon" 2>/dev/null || true; fi
    ip netns del "$WORLD" 2>/dev/null || true
    ip netns del "$HOST" 2>/dev/null || true
    rm -rf "$WORK"
    [ "$status" -eq 0 ] || echo "demo: FAILED (all that it made has been taken away)" >&2
    exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

say() {
    step=$((step + 1))
    printf '\n%d. %s\n' "$step" "$*"
}

# Prints a command as a user would type it, then runs it.
run() {
    local shown="$*"
    shown=${shown//$WORK\//}
    echo "   \$ $shown"
    "$@" | sed 's/^/     /'
}

sieve() { run ip netns exec "$HOST" build/xdp-sieve "$@"; }

stats() { ip netns exec "$HOST" build/xdp-sieve --json stats eth0 >"$WORK/$1"; }

# Returns when the traffic has answered (see traffic.py's stream).
hear() {
    local answer
    read -r -t 300 answer <&"$stream_out" || {
        echo "demo: the traffic stopped by itself" >&2
        exit 1
    }
    : "$answer"
}

tell() {
    echo "$1" >&"$stream_in"
    hear
}

# start_traffic FLOWS: sends packets from the world to the host, and back, until stop_traffic. Returns once they flow.
start_traffic() {
    stats before
    rm -f "$WORK/tell" "$WORK/told"
    mkfifo "$WORK/tell" "$WORK/told"
    tests/selftests/traffic.py stream --from "$WORLD/eth0" --to "$HOST/eth0" --flows "$WORK/flows.$1" \
        --back-flows "$WORK/flows.back" --report "$WORK/report" <"$WORK/tell" >"$WORK/told" &
    traffic=$!
    exec {stream_in}>"$WORK/tell" {stream_out}<"$WORK/told"
    hear
}

# stop_traffic TITLE: ends the traffic and prints a table of its verdicts.
stop_traffic() {
    local status=0
    tell stop
    exec {stream_in}>&- {stream_out}<&-
    wait "$traffic" || status=$?
    [ "$status" -le 1 ] || exit "$status"
    stats after
    echo
    scripts/demo_traffic.py table "$WORK" "$1" report before after || wrong=1
}

# Waits until the daemon has logged a matching line, and prints that line.
await_said() {
    local line
    for ((line = 0; line < 1200; line++)); do
        if grep -E -- "$1" "$WORK/said" | tail -n 1 | grep . >"$WORK/line"; then
            fold -s -w 105 "$WORK/line" | sed 's/^/     /'
            return
        fi
        sleep 0.05
    done
    echo "demo: the daemon has not said /$1/: $(cat "$WORK/said")" >&2
    exit 1
}

# expect_ping VERDICT: three pings from the world to the host all come back, or none does.
expect_ping() {
    local back
    echo "   \$ ip netns exec $WORLD ping -c 3 -i 0.2 -W 1 198.51.100.2"
    ip netns exec "$WORLD" ping -c 3 -i 0.2 -W 1 198.51.100.2 >"$WORK/ping" || true
    grep transmitted "$WORK/ping" | sed 's/^/     /'
    back=$(sed -nE 's/.* ([0-9]+) received.*/\1/p' "$WORK/ping")
    case $1:$back in
    pass:3 | drop:0) ;;
    *) wrong=1 && echo "     WRONG: expected $1" ;;
    esac
}

# The metric of packets that matched the set, as Prometheus sees it.
show_metric() {
    echo "   \$ ip netns exec $HOST curl -s http://127.0.0.1:19273/metrics | grep set_matched_packets_total"
    ip netns exec "$HOST" curl -s http://127.0.0.1:19273/metrics >"$WORK/metrics"
    grep '^xdp_sieve_set_matched_packets_total' "$WORK/metrics" | sed 's/^/     /'
    matched=$(sed -nE 's/^xdp_sieve_set_matched_packets_total\{.*\} ([0-9.e+]+)$/\1/p' "$WORK/metrics" | head -n 1)
}

wrong=0
say "Install what is missing, and build"
echo "   \$ scripts/install-deps.sh && make"
scripts/install-deps.sh
make --no-print-directory -j"$(nproc)" build/xdp-sieve build/xdp-sieved build/xdp_sieve.bpf.o \
    >"$WORK/make.log" 2>&1 || {
    tail -n 20 "$WORK/make.log" >&2
    exit 1
}

say "Make a small world: two network namespaces with a cable between them"
run ip netns add "$WORLD"
run ip netns add "$HOST"
# Only the demo's own packets may flow, so that the counters can be compared exactly.
for namespace in "$WORLD" "$HOST"; do
    ip netns exec "$namespace" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
done
run ip -n "$WORLD" link add eth0 numtxqueues 1 numrxqueues 1 type veth peer name eth0 netns "$HOST" \
    numtxqueues 1 numrxqueues 1
run ip -n "$WORLD" link set eth0 up
run ip -n "$HOST" link set eth0 up
ip -n "$WORLD" address add 198.51.100.1/24 dev eth0
ip -n "$HOST" address add 198.51.100.2/24 dev eth0

say "Attach the program to the host's end with plain ip link; without a list it lets everything pass"
run ip -n "$HOST" link set dev eth0 xdp obj build/xdp_sieve.bpf.o sec xdp

say "Build a set from a threat feed: 120,000 addresses that attacked somebody (and some IPv6 ones), exactly"
run scripts/demo_traffic.py lists tests/data/ipsum.txt 198.51.100.2 "$WORK"
run build/xdp-sieve build -o "$WORK/old.sieve" "$WORK/old.txt"

say "Build a filter of flows: a blocked Bloom filter, whose keys choose between two lines and are rebalanced offline"
run build/xdp-sieve build --kind blocked --key src,dst,sport,dport,proto -o "$WORK/old-flows.sieve" \
    "$WORK/old-flows.txt"

say "Put both in force: whoever is on the first list is dropped, and so is a flow on the second"
sieve load eth0 "feed=$WORK/old.sieve,action=drop" "flows=$WORK/old-flows.sieve,action=drop"

say "Build the next version of each list: half of it taken off, others added; the flows in d-left fingerprints"
run build/xdp-sieve -q build -o "$WORK/new.sieve" "$WORK/new.txt"
run build/xdp-sieve build --kind dleft64 --key src,dst,sport,dport,proto -o "$WORK/new-flows.sieve" \
    "$WORK/new-flows.txt"
echo "     Choose packets, and ask all four sets about each, so that every verdict is known before it is sent:"
run scripts/demo_traffic.py flows build/xdp-sieve 198.51.100.2 "$WORK"

say "Send packets: UDP, TCP and ICMP, IPv4 and IPv6, from spoofed sources; the old lists are in force"
start_traffic old
tell "more 10000"
stop_traffic "the old lists are in force"

say "Swap the addresses while packets flow"
start_traffic swap
tell "more 5000"
tell begin
sieve swap eth0 "feed=$WORK/new.sieve"
tell end
tell "more 5000"
stop_traffic "a swap under traffic"

say "Swap the flows while packets flow: another list in another kind of filter, between two packets"
start_traffic swap-flows
tell "more 5000"
tell begin
sieve swap eth0 "flows=$WORK/new-flows.sieve"
tell end
tell "more 5000"
stop_traffic "a swap to another kind"

say "Send the same again; the new lists are in force"
start_traffic new
tell "more 10000"
stop_traffic "the new lists are in force"
cat <<'END'

  (*) The set of addresses is exact: it mistakes nobody. A filter of 16 bits per key mistakes a few non-members in ten
      thousand for members. Here such flows were looked for: even their verdicts were known in advance, by
      `xdp-sieve query`. The next build, with other secret hash keys, mistakes others.
END

say "What the program says of itself"
sieve status eth0
sieve stats eth0

say "Let the service keep a list fresh: xdp-sieved follows the file"
sieve unload eth0
ip -n "$HOST" link set lo up
mkdir -p "$WORK/lists"
grep -Em 400 '^[0-9]' "$WORK/old.txt" >"$WORK/lists/bad.txt"
cat >"$WORK/xdp-sieve.toml" <<END
[service]
state-directory = "$WORK/state"
[[interface]]
name = "eth0"
sets = ["bad"]
[set.bad]
sources = ["$WORK/lists/bad.txt"]
END
sed 's/^/     | /' "$WORK/xdp-sieve.toml" | sed "s|$WORK/||"
echo "   \$ ip netns exec $HOST build/xdp-sieved --config xdp-sieve.toml &"
: >"$WORK/said" # the daemon may begin later than we look
ip netns exec "$HOST" build/xdp-sieved --config "$WORK/xdp-sieve.toml" --log stderr 2>>"$WORK/said" &
daemon=$!
await_said 'set bad: a new list with 400 entries'
expect_ping pass
show_metric
before=$matched

say "Add the sender's address to the list file; nobody types anything else"
echo "   \$ echo 198.51.100.1 >>lists/bad.txt"
echo 198.51.100.1 >>"$WORK/lists/bad.txt"
await_said 'set bad: a new list with 401 entries'
expect_ping drop
show_metric
[ "$matched" != "$before" ] || wrong=1

say "Break the list: a server's error page, and a list that has lost nearly everything; the last good one stays"
echo "   \$ echo '<html>502 Bad Gateway</html>' >lists/bad.txt"
echo '<html>502 Bad Gateway</html>' >"$WORK/lists/bad.txt"
await_said 'set bad: .*HTML.*stays in force'
echo "   \$ echo 192.0.2.1 >lists/bad.txt"
echo 192.0.2.1 >"$WORK/lists/bad.txt"
await_said 'set bad: .*shrink.*stays in force'
expect_ping drop
run ip netns exec "$HOST" build/xdp-sieve status eth0

say "Stop the service: what is in force stays in force"
kill "$daemon"
wait "$daemon" || wrong=1
daemon=
await_said 'stopped'
expect_ping drop

say "Take it off and clean up"
sieve unload eth0
run ip netns del "$HOST"
run ip netns del "$WORLD"

echo
if [ "$wrong" -ne 0 ]; then
    echo "demo: a verdict was WRONG, see above"
    exit 1
fi
echo "Every single packet got the verdict that was known in advance. On your own interface: see README.md."
