#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Shows a fleet of three nodes with a real etcd and a real nginx: a publication, a canary that catches a list which
# drops too much, and a rollback. The script removes everything that it made.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" -eq 0 ] || {
    echo "demo-fleet: network namespaces and XDP need root: sudo make demo-fleet" >&2
    exit 1
}
# shellcheck source=fleet_nodes.sh
. scripts/fleet_nodes.sh

step=0
say() {
    step=$((step + 1))
    printf '\n%d. %s\n' "$step" "$*"
}
# Prints a command as a user would type it, then runs it.
run() {
    local shown="xdp-sieve $*"
    echo "   \$ ${shown//$WORK\//}"
    fleet "$@" | sed 's/^/     /'
}
# addresses SEED COUNT: random addresses.
addresses() {
    python3 -c 'import random, sys
draw = random.Random(int(sys.argv[1]))
for _ in range(int(sys.argv[2])): print("%d.%d.%d.%d" % (draw.randrange(11, 100), *draw.randbytes(3)))' "$@"
}
# Packets of a customer to each node, without end.
send_packets() {
    hub ip address add 198.51.100.7/32 dev lo
    hub python3 -c 'import socket, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    sender.bind(("198.51.100.7", 0))
    while True:
        for node in (1, 2, 3): sender.sendto(b"hello", ("10.9.%d.2" % node, 9))
        time.sleep(0.0005)' &
}

addresses 1 120000 >"$WORK/threats.txt"
{
    addresses 2 120000
    echo 198.51.100.0/24
} >"$WORK/mistake.txt"

say "etcd, a store, three nodes. n1 is the canary. A customer sends packets to all of them."
start_servers
add_node 1 'labels = ["canary"]' 'report = "2s"'
add_node 2 'report = "2s"'
add_node 3 'report = "2s"'
send_packets

say "A list is published: once, signed, for every node."
run publish --key "$WORK/edge.key" "bad=$WORK/threats.txt" --soak 1
await all_current
await rollout_is complete
run fleet status

say "The next list holds the customer's network by mistake. The canary gets it first."
sleep 2 # the canary counts packets without it
run publish --key "$WORK/edge.key" "bad=$WORK/mistake.txt" --stages canary,100% --soak 30 --on-failure rollback
await rollout_is rolled_back
run fleet status

say "Two nodes never had it, and the canary has gone back. The operator publishes what was before, for all."
run fleet rollback --key "$WORK/edge.key"
await all_current
sleep 3 # each node reports what became of its packets
run fleet status
