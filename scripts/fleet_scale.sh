#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Measures a fleet on this machine: from `publish` to in force on every node, and back, with real etcd and nginx. Prints
# a table, what a node asked of the servers, and the figures beside their goals. NODES (20 if not given) and SIZES
# (numbers of keys) choose.
set -euo pipefail
cd "$(dirname "$0")/.."

[ "$(id -u)" -eq 0 ] || {
    echo "fleet_scale: network namespaces and XDP need root" >&2
    exit 1
}
WANTED=${NODES:-20}
# shellcheck source=fleet_nodes.sh
. scripts/fleet_nodes.sh

read -ra SIZES <<<"${SIZES:-120000 10000000}"

# milliseconds COMMAND...: runs it, and then waits until every node has what is published. $took is the time.
milliseconds() {
    local before
    before=$(date +%s%N)
    "$@"
    await all_current
    took=$((($(date +%s%N) - before) / 1000000))
}
# make_image SEED COUNT NAME: an image of random addresses, and their list.
make_image() {
    python3 -c 'import random, sys
draw = random.Random(int(sys.argv[1]))
for _ in range(int(sys.argv[2])): print("%d.%d.%d.%d" % (draw.randrange(11, 100), *draw.randbytes(3)))' "$1" "$2" \
        >"$WORK/$3.txt"
    "$SIEVE" -q build --bits-per-key 16 -o "$WORK/$3.sieve" "$WORK/$3.txt"
}
# etcd_counts: requests that etcd has answered, and bytes that it has sent.
etcd_counts() {
    hub curl -fs http://127.0.0.1:2379/metrics | awk '
        /^grpc_server_handled_total/ && $NF > 0 { requests += $NF }
        /^etcd_network_client_grpc_sent_bytes_total/ { sent = $NF }
        END { printf "%d %d\n", requests, sent }'
}

start_servers
for ((number = 1; number <= WANTED; number++)); do add_node "$number" 'report = "60s"'; done
echo 192.0.2.1 >"$WORK/first.txt"
publish "bad=$WORK/first.txt"
await all_current

echo "$WANTED nodes, $(nproc) processors"
goals=()
# goal WHAT SIZE MILLISECONDS LIMIT: notes a figure that has a goal.
goal() { goals+=("$1 on $WANTED nodes, $2 keys: $3 ms (goal: under $4 ms)"); }

echo "| what | keys | bytes | publish to in force on all nodes, ms | rollback, ms |"
echo "| --- | --- | --- | --- | --- |"
for size in "${SIZES[@]}"; do
    make_image 1 "$size" a
    make_image 2 "$size" b
    for what in sieve txt; do
        # A node builds its own filter of a list, so large lists take each node's time.
        [ "$what" = sieve ] || [ "$size" -le 1000000 ] || continue
        name=$([ "$what" = sieve ] && echo image || echo feed)
        # From one list to another one as long, and back.
        publish "bad=$WORK/a.$what"
        await all_current
        milliseconds publish "bad=$WORK/b.$what"
        forth=$took
        milliseconds fleet -q fleet rollback --key "$WORK/edge.key"
        echo "| $name | $size | $(stat -c %s "$WORK/b.$what") | $forth | $took |"
        limit=$([ "$size" -le 120000 ] && echo 2000 || echo 10000)
        goal "publish of the $name to in force" "$size" "$forth" "$limit"
        goal "rollback to the $name before" "$size" "$took" 2000
    done
    rm -f "$WORK"/[ab].txt "$WORK"/[ab].sieve
done

read -r requests sent < <(etcd_counts)
sleep 60
read -r requests_after sent_after < <(etcd_counts)
echo "at rest, per node and minute: $(((requests_after - requests) / WANTED)) requests to etcd," \
    "$(((sent_after - sent) / WANTED)) bytes from it"
printf '%s\n' "${goals[@]}"
