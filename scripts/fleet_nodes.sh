# shellcheck shell=bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# A fleet on one machine, for demo-fleet.sh and fleet_scale.sh: a namespace with etcd and nginx, and one for each node,
# joined to the first by a veth pair. Nothing remains when the script ends.

WORK=$(mktemp -d)
HUB=sieve-hub-$$
SIEVE=build/fleet/xdp-sieve SIEVED=build/fleet/xdp-sieved
NODES=() DAEMONS=()

cleanup() {
    local status=$? namespace process
    trap '' HUP INT PIPE TERM
    disown -a # their ends need no line each
    for namespace in "$HUB" "${NODES[@]}"; do
        for process in $(ip netns pids "$namespace" 2>/dev/null); do kill -KILL "$process" 2>/dev/null || true; done
        ip netns del "$namespace" 2>/dev/null || true
    done
    rm -rf "$WORK"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

hub() { ip netns exec "$HUB" "$@"; }
# await COMMAND...: until it succeeds, for a minute at most.
await() {
    local end=$((SECONDS + 60))
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || {
            echo "$(basename "$0"): not within a minute: $*" >&2
            exit 1
        }
        sleep 0.02
    done
}

# start_servers: etcd and nginx in the hub, a pair of keys, and a configuration for publishing in $WORK/hub.toml.
start_servers() {
    ip netns add "$HUB"
    hub ip link set lo up
    mkdir -p "$WORK/store"
    chmod 755 "$WORK"
    chmod 777 "$WORK/store"
    hub etcd --data-dir "$WORK/etcd" --listen-client-urls http://0.0.0.0:2379 \
        --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380 \
        --initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster default=http://127.0.0.1:2380 \
        >"$WORK/etcd.log" 2>&1 &
    scripts/nginx_conf.sh "$WORK" 0.0.0.0:8080 "$WORK/store" put >"$WORK/nginx.conf"
    hub nginx -c "$WORK/nginx.conf" >"$WORK/nginx.log" 2>&1 &
    await hub curl -fs http://127.0.0.1:2379/health
    await hub curl -s http://127.0.0.1:8080/
    "$SIEVE" -q fleet keygen --key "$WORK/edge.key"
    fleet_part 127.0.0.1 >"$WORK/hub.toml"
}

# fleet_part ADDRESS [LINES...]: the [fleet] of a host that reaches the servers at the address.
fleet_part() {
    local address=$1
    shift
    printf '%s\n' '[fleet]' 'name = "edge"' "trusted-keys = [\"$WORK/edge.key.pub\"]" "$@" \
        '[fleet.etcd]' "endpoints = [\"http://$address:2379\"]" '[fleet.store]' "url = \"http://$address:8080\""
}

# add_node NUMBER [LINES...]: a namespace, its link, and its daemon, with further lines for its [fleet].
add_node() {
    local number=$1 node=sieve-n$1-$$ config=$WORK/n$1.toml
    shift
    NODES+=("$node")
    ip netns add "$node"
    ip -n "$node" link set lo up
    ip link add name "v$number" netns "$HUB" type veth peer name eth0 netns "$node"
    ip -n "$HUB" address add "10.9.$number.1/24" dev "v$number"
    ip -n "$HUB" link set "v$number" up
    ip -n "$node" address add "10.9.$number.2/24" dev eth0
    ip -n "$node" link set eth0 up
    ip -n "$node" route add default via "10.9.$number.1"
    {
        printf '%s\n' '[service]' "state-directory = \"$WORK/n$number\"" 'listen = ""' '[[interface]]' 'name = "eth0"' \
            'sets = ["bad"]' '[set.bad]' 'guards = { most-growth = 1e9, most-shrink = 1.0 }' \
            "sources = [\"$WORK/n$number/fleet/current/bad\"]"
        fleet_part "10.9.$number.1" "node = \"n$number\"" "$@"
    } >"$config"
    ip netns exec "$node" "$SIEVED" --config "$config" --log stderr 2>"$WORK/n$number.log" &
    DAEMONS+=($!)
}

fleet() { hub "$SIEVE" "$@" --fleet edge --config "$WORK/hub.toml"; }
publish() { fleet -q publish --key "$WORK/edge.key" "$@"; }
# How many nodes have the published manifest in force.
current() { fleet --json fleet status | gojq .current; }
all_current() { [ "$(current)" = "${#NODES[@]}" ]; }
rollout_is() { [ "$(fleet --json fleet status | gojq -r .rollout.state)" = "$1" ]; }
