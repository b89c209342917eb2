#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Shows all of xdp-sieve in a minute: two network namespaces, a real threat feed, real packets both ways, and a swap
# under traffic. A receiver checks the verdict on every single packet. The script removes everything that it made.
# Exits with 0 if every verdict was right.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" -eq 0 ] || {
    echo "demo: network namespaces and XDP need root: sudo make demo" >&2
    exit 1
}

WORLD=sieve-world-$$ HOST=sieve-host-$$
WORK=$(mktemp -d)
step=0

cleanup() {
    local status=$?
    trap '' HUP INT PIPE TERM
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

wrong=0
say "Install what is missing, and build"
echo "   \$ scripts/install-deps.sh && make"
scripts/install-deps.sh
make --no-print-directory -j"$(nproc)" build/xdp-sieve build/xdp_sieve.bpf.o >"$WORK/make.log" 2>&1 || {
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

say "Build a filter from a threat feed: 120,000 addresses that attacked somebody (and some IPv6 ones)"
run scripts/demo_traffic.py lists tests/data/ipsum.txt "$WORK"
run build/xdp-sieve build -o "$WORK/old.sieve" "$WORK/old.txt"

say "Put it in force: whoever is on the list is dropped"
sieve load eth0 "feed=$WORK/old.sieve,action=drop"

say "Build the next version of the list: half of it taken off, other addresses added"
run build/xdp-sieve -q build -o "$WORK/new.sieve" "$WORK/new.txt"
echo "     Choose senders, and ask both filters about each, so that every verdict is known before it is sent:"
run scripts/demo_traffic.py flows build/xdp-sieve 198.51.100.2 "$WORK"

say "Send packets: UDP, TCP and ICMP, IPv4 and IPv6, from spoofed sources; the old list is in force"
start_traffic old
tell "more 40000"
stop_traffic "the old list is in force"

say "Swap the list while packets flow"
start_traffic swap
tell "more 20000"
tell begin
sieve swap eth0 "feed=$WORK/new.sieve"
tell end
tell "more 20000"
stop_traffic "a swap under traffic"

say "Send the same again; the new list is in force"
start_traffic new
tell "more 40000"
stop_traffic "the new list is in force"
cat <<'END'

  (*) A filter of 16 bits per key mistakes a few non-members in ten thousand for members. Here such non-members were
      looked for: even their verdicts were known in advance, by `xdp-sieve query`. The next build, with other
      secret hash keys, mistakes others.
END

say "What the program says of itself"
sieve status eth0
sieve stats eth0

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
