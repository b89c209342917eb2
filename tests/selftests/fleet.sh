#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# A fleet of one node, with a real etcd and a real nginx: what is published comes into force, and what fails changes
# no verdict.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# The programs that have a fleet, and those that every host has.
PLAIN=$SIEVE
SIEVE=$(dirname "$PLAIN")/fleet/xdp-sieve SIEVED=${SIEVED:-$BUILD/fleet/xdp-sieved}
# shellcheck source=service.sh
. "$here/service.sh"
needs_daemon
for tool in etcd etcdctl nginx; do
    command -v "$tool" >/dev/null || skip_all "$tool is not installed"
done

KEY=$WORK/edge.key
STORE=$WORK/store
NODE_PREFIX=/xdp-sieve/edge

etcd_up() {
    # Not by inside(): $! is to be the server itself.
    nsenter --net="/run/netns/$IN" etcd --data-dir "$WORK/etcd" --listen-client-urls http://127.0.0.1:2379 \
        --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380 \
        --initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster default=http://127.0.0.1:2380 \
        --heartbeat-interval 10 --election-timeout 100 --unsafe-no-fsync >>"$WORK/etcd.log" 2>&1 &
    etcd=$!
    await ctl endpoint health
}
ctl() {
    ETCDCTL_API=3 inside "$IN" etcdctl --endpoints http://127.0.0.1:2379 --command-timeout "${PATIENCE}s" "$@" \
        >"$WORK/ctl" 2>&1
}

nginx_up() {
    "$here/../../scripts/nginx_conf.sh" "$WORK" 127.0.0.1:8080 "$STORE" put >"$WORK/nginx.conf"
    nsenter --net="/run/netns/$IN" nginx -c "$WORK/nginx.conf" >>"$WORK/nginx.log" 2>&1 &
    nginx=$!
    await inside "$IN" curl -s -o /dev/null http://127.0.0.1:8080/
}

# end etcd|nginx|daemon: by SIGKILL.
end() {
    kill -9 "${!1}"
    wait "${!1}" 2>/dev/null || true
}

# Servers, a pair of keys, and the configuration of a node.
fresh() {
    rm -rf "$WORK/etcd" "$STORE" "$STATE" "$KEY"*
    mkdir -p "$STORE"
    chmod 777 "$STORE"
    chmod 755 "$WORK"
    sieve -q fleet keygen --key "$KEY"
    etcd_up
    nginx_up
    cat >"$CONFIG" <<END
[service]
state-directory = "$STATE"
listen = "127.0.0.1:19273"
[[interface]]
name = "$IN_IF"
sets = ["bad"]
[set.bad]
sources = ["$STATE/fleet/current/bad"]
fpr = 1e-9
[fleet]
name = "edge"
node = "n1"
report = "2s"
trusted-keys = ["$KEY.pub"]
[fleet.etcd]
endpoints = ["http://127.0.0.1:2379", "http://203.0.113.77:2379"]
[fleet.store]
url = "http://127.0.0.1:8080"
END
    printf '%s\n' "$MEMBER" >"$WORK/one.txt"
    printf '%s\n' "$MEMBER" "$STRANGER" >"$WORK/two.txt"
    service_manager
}

publish() { sieve -q publish --fleet edge --config "$CONFIG" --key "$KEY" "$@"; }
fleet() { sieve --json fleet "$1" --fleet edge --config "$CONFIG" "${@:2}"; }
# node JQ-PATH: prints a member of the node's report. The status of the command tells of what is published.
node() { { fleet status || true; } | jq -r ".nodes[0].$1"; }
node_is() { [ "$(node state)" = "$1" ] || { node state >"$WORK/awaited" && return 1; }; }
node_says() { node error | grep -q -- "$1" || { node error >"$WORK/awaited" && return 1; }; }
current() { [ "$(fleet status | jq -r '.current')" = 1 ] || { fleet status >"$WORK/awaited" && return 1; }; }
rollout_complete() { [ "$(fleet status | tee "$WORK/awaited" | jq -r .rollout.state)" = complete ]; }
# page_says STATE: whether metrics and status page say how the node stands in its fleet.
page_says() {
    inside "$IN" curl -sf http://127.0.0.1:19273/metrics >"$WORK/metrics"
    inside "$IN" curl -sf http://127.0.0.1:19273/status.json | jq .fleet >"$WORK/awaited"
    grep -qFx "xdp_sieve_fleet_state{state=\"$1\"} 1" "$WORK/metrics" &&
        [ "$(jq -r .state "$WORK/awaited")" = "$1" ]
}
in_force() { [ -n "$(identity bad 2>/dev/null)" ]; }
# has_stranger drop|pass
has_stranger() { verdicts <<<"$1 udp $STRANGER $IN4 1 2"; }

# What every host has knows no fleet, and names the package; once that is installed, it becomes the program of the
# package.
package() {
    local host=$WORK/host
    fresh
    rm -rf "$host"
    mkdir -p "$host/bin" "$host/sbin" "$host/lib/xdp-sieve/fleet"
    cp "$PLAIN" "$host/bin/"
    cp "$(dirname "$PLAIN")/xdp-sieved" "$host/sbin/"
    refused_with 2 '"publish" is no command; .*package xdp-sieve-fleet' \
        "$host/bin/xdp-sieve" publish "bad=$WORK/one.txt"
    refused_with 3 '\[fleet\]: .*without the package xdp-sieve-fleet' "$host/sbin/xdp-sieved" --check "$CONFIG"
    # The host filters all the same.
    SIEVED=$host/sbin/xdp-sieved
    mkdir -p "$STATE/fleet/current"
    cp "$WORK/one.txt" "$STATE/fleet/current/bad"
    start
    says 'fleet edge is not followed: .*package xdp-sieve-fleet'
    await in_force
    verdicts <<<"drop udp $MEMBER $IN4 1 2"
    stop
    cp "$(dirname "$PLAIN")"/fleet/* "$host/lib/xdp-sieve/fleet/"
    [ -n "$("$host/bin/xdp-sieve" complete -- publ)" ] || fail "publish is not completed"
    "$host/bin/xdp-sieve" -q fleet keygen --key "$WORK/other.key"
    rm "$WORK"/other.key*
    rm -r "$STATE"
    publish "bad=$WORK/two.txt"
    start
    await current
    has_stranger drop
    stop
}

# The commands alone.
commands() {
    local first
    fresh
    [ "$(stat -c %a "$KEY")" = 600 ] || fail "$(stat -c %a "$KEY")"
    refused_with 3 'is there already' sieve fleet keygen --key "$KEY"
    refused_with 1 'nothing is published' sieve fleet pause --fleet edge --config "$CONFIG"
    refused_with 2 'is a configuration of fleet edge' sieve publish --fleet core --config "$CONFIG" --key "$KEY" \
        "bad=$WORK/one.txt"
    # A set whose bans change in place cannot change with its manifest.
    sed '/^fpr = /d; s|^sources = .*|sources = ["bans", "'"$STATE"'/fleet/current/bad"]|' "$CONFIG" >"$WORK/mixed.toml"
    refused_with 3 'has bans .* but has fleet/current among its sources' "$SIEVED" --check "$WORK/mixed.toml"
    publish "bad=$WORK/one.txt"
    [ "$(ls "$STORE")" = "$(sha256sum "$WORK/one.txt" | cut -d' ' -f1)" ] || fail "$(ls "$STORE")"
    refused_with 1 'no manifest before the present one' sieve fleet rollback --fleet edge --config "$CONFIG" \
        --key "$KEY"
    publish "bad=$WORK/two.txt" --stages 10%,100%
    first=$(fleet status | jq -c '[.manifest.sets[0].name, .manifest.rollout.stages[0].permille, .rollout.state]')
    [ "$first" = '["bad",100,"running"]' ] || fail "$first"
    sieve -q fleet pause --fleet edge --config "$CONFIG"
    [ "$(fleet status | jq -r .rollout.state)" = paused ] || fail "not paused"
    # What has not come to all nodes is not carried over.
    sieve publish --fleet edge --config "$CONFIG" --key "$KEY" "other=$WORK/two.txt" --stages 10% 2>"$WORK/said"
    grep -q 'set bad: is taken as manifest [0-9a-f]* has it, .* is paused at stage 1 of 2' "$WORK/said" ||
        fail "$(cat "$WORK/said")"
    [ "$(fleet status | jq .manifest.sets[0].entries)" = 1 ] || fail "$(fleet status)"
    sieve fleet rollback --fleet edge --config "$CONFIG" --key "$KEY" | grep -q 'takes back' || fail "no rollback"
    [ "$(fleet status | jq .manifest.sets[0].entries)" = 1 ] || fail "$(fleet status)"
    # Nobody follows, so the rollout goes nowhere, and what it covers stays what it is.
    refused_with 1 'the rollout is running, expected complete' \
        sieve fleet renew --fleet edge --config "$CONFIG" --key "$KEY"
    refused_with 2 'soak 604801: expected 0 to 604800 seconds' sieve publish --fleet edge --config "$CONFIG" \
        --key "$KEY" "bad=$WORK/one.txt" --soak 604801
    refused_with 2 'expected 1 to 3660 days' sieve fleet renew --fleet edge --config "$CONFIG" --key "$KEY" --valid 0
    chmod 644 "$KEY"
    refused_with 3 'others may read or write it' sieve publish --fleet edge --config "$CONFIG" --key "$KEY" \
        "bad=$WORK/one.txt"
}

# A node follows, as a feed and as an image, and back.
follows() {
    fresh
    publish "bad=$WORK/one.txt"
    start
    await current
    verdicts <<END
drop udp $MEMBER $IN4 1 2
pass udp $STRANGER $IN4 1 2
END
    await page_says followed
    publish "bad=$WORK/two.txt"
    await current
    has_stranger drop
    await page_says followed
    [ "$(jq '.in_force == .published and .in_force == .wanted and .rollout != null' "$WORK/awaited")" = true ] ||
        fail "$(cat "$WORK/awaited")"
    sieve -q fleet rollback --fleet edge --config "$CONFIG" --key "$KEY"
    await current
    has_stranger pass
    publish "bad=$WORK/two.txt" --as image
    await current
    has_stranger drop
    [ "$(node sets.bad)" = "$(identity bad)" ] || fail "reports $(node sets.bad)"
    # Without its set, the manifest is in force, and the node says what else is.
    publish "other=$WORK/one.txt" --only
    await current
    await node_says 'the manifest does not have bad, and what was in force of it stays'
    node_is in_force
    inside "$IN" curl -sf http://127.0.0.1:19273/status.json | jq -e '.fleet.error | test("does not have bad")'
    has_stranger drop
    stop
    has_stranger drop
}

# A reload takes a key that is there by now, or another one under the same name.
exchanged() {
    fresh
    publish "bad=$WORK/one.txt"
    mv "$KEY.pub" "$KEY.pub.away"
    start
    says 'fleet edge is not followed: .*edge.key.pub: cannot be read'
    mv "$KEY.pub.away" "$KEY.pub"
    kill -HUP "$daemon"
    await current
    rm "$KEY" "$KEY.pub"
    sieve -q fleet keygen --key "$KEY"
    kill -HUP "$daemon"
    await node_says 'which is not pinned here'
    has_stranger pass
    publish --force "bad=$WORK/two.txt"
    await current
    has_stranger drop
}

# Servers that are away, or come back without their data, change nothing; what follows heals.
away() {
    fresh
    publish "bad=$WORK/two.txt"
    start
    await current
    end etcd
    end nginx
    says 'fleet: etcd does not answer'
    await page_says etcd_away
    has_stranger drop
    stop
    start # a node that starts without them
    has_stranger drop
    rm -r "$WORK/etcd"
    etcd_up
    says 'fleet: .*nothing is published any more'
    has_stranger drop
    await node_is refused
    await page_says unpublished
    nginx_up
    publish "bad=$WORK/one.txt"
    await current
    has_stranger pass
}

# Whatever is not right is refused, and seen.
wrong() {
    local old digest now right
    fresh
    publish "bad=$WORK/one.txt"
    ctl get --print-value-only "$NODE_PREFIX/now/manifest"
    old=$(cat "$WORK/ctl")
    publish "bad=$WORK/two.txt"
    start
    await current
    # An older manifest, rightly signed: a replay.
    ctl put "$NODE_PREFIX/now/manifest" "$old"
    await node_says 'serial'
    node_is refused
    await page_says refused
    has_stranger drop
    # An altered one, and one that nobody signed.
    ctl put "$NODE_PREFIX/now/manifest" "${old/edge/core}"
    await node_says 'signature by key .* is wrong'
    ctl put "$NODE_PREFIX/now/manifest" "$(jq -c '.signatures = []' <<<"$old")"
    await node_says 'has no signature'
    has_stranger drop
    sieve fleet repair --fleet edge --config "$CONFIG" | grep -q 'took 1 manifest out of etcd' || fail "no repair"
    await node_says 'nothing is published any more'
    has_stranger drop
    sieve fleet repair --fleet edge --config "$CONFIG" | grep -q 'signed every manifest' || fail "repaired twice"
    ctl put "$NODE_PREFIX/now/manifest" "$(jq -c '.signatures = []' <<<"$old")"
    await node_says 'has no signature'
    sieve -q publish --force --fleet edge --config "$CONFIG" --key "$KEY" "bad=$WORK/two.txt"
    await current
    # Nodes refuse an old one, and nobody signs it anew by accident.
    await rollout_complete
    ctl get --print-value-only "$NODE_PREFIX/now/rollout"
    now=$(cat "$WORK/ctl")
    ctl get --print-value-only "$NODE_PREFIX/now/manifest"
    right=$(cat "$WORK/ctl")
    ctl put "$NODE_PREFIX/now/manifest" "$old"
    refused_with 3 'somebody has put back an old one' sieve publish --fleet edge --config "$CONFIG" --key "$KEY" \
        "other=$WORK/one.txt"
    ctl put "$NODE_PREFIX/now/manifest" "$right"
    ctl put "$NODE_PREFIX/now/rollout" "$now"
    # For another year; all the node has to do is to say so.
    await rollout_complete
    sieve fleet renew --fleet edge --config "$CONFIG" --key "$KEY" --valid 365 | grep -q 'may take it until' ||
        fail "not renewed"
    await current
    has_stranger drop
    # A blob that is not what its name says.
    digest=$(sha256sum "$WORK/one.txt" | cut -d' ' -f1)
    printf '198.51.100.99' >"$STORE/$digest.x" # as long as the right one
    truncate -s "$(stat -c %s "$WORK/one.txt")" "$STORE/$digest.x"
    mv "$STORE/$digest.x" "$STORE/$digest"
    publish "bad=$WORK/one.txt"
    await node_is failed
    node error | grep -q "expected $digest" || fail "$(node error)"
    await page_says store_away
    has_stranger drop
    publish --again "bad=$WORK/one.txt" # heals it
    await current
    has_stranger pass
    # Friends, which this node would drop.
    publish "bad=$WORK/two.txt,action=pass"
    await node_says 'the manifest says pass, and this node is configured to drop'
    has_stranger pass
    # Without etcd, or the store, nothing could take such a list back.
    printf '%s\n' 203.0.113.77 >"$WORK/cut.txt"
    publish "bad=$WORK/cut.txt"
    await node_says '203.0.113.77, etcd or the store of this host.s fleet'
    has_stranger pass
    # A list that a guard refuses.
    printf '%s\n' "$IN4" >"$WORK/own.txt"
    publish "bad=$WORK/own.txt"
    await node_says 'own address'
    node_is failed
    await page_says failed
    verdicts <<<"drop udp $MEMBER $IN4 1 2"
}

# A list that had more than doubled is taken back; a list that the guards refuse can be accepted.
sizes() {
    fresh
    address_lists 20261129 short 150 more 450
    cat "$WORK/short" "$WORK/more" >"$WORK/long"
    head -n 200 "$WORK/more" >"$WORK/cut"
    publish "bad=$WORK/short"
    start
    await current
    publish "bad=$WORK/long"
    await current
    sieve -q fleet rollback --fleet edge --config "$CONFIG" --key "$KEY"
    await current
    verdicts <<<"pass udp $(head -n 1 "$WORK/more") $IN4 1 2"
    publish "bad=$WORK/long"
    await current
    publish "bad=$WORK/cut"
    await node_is failed
    node_says 'most-shrink is 50%.* just this list, once, with `xdp-sieve accept bad' || fail "$(node error)"
    verdicts <<<"drop udp $(head -n 1 "$WORK/short") $IN4 1 2"
    sieve accept bad --config "$CONFIG"
    await current
    verdicts <<<"pass udp $(head -n 1 "$WORK/short") $IN4 1 2"
}

# flows_of LIST VERDICT: prints lines for the traffic.
flows_of() {
    head -n 200 "$WORK/$1" |
        awk -v group="$1" -v verdict="$2" -v to="$IN4" \
            '{ print group, verdict, verdict, "udp", $1, to, 1000 + NR, 53 }'
}
# judged_by one|two: whether packets are judged by that list, by an address of each.
judged_by() {
    local other
    for other in one two; do
        echo "$([ "$other" = "$1" ] && echo drop || echo pass) udp $(head -n 1 "$WORK/only-$other") $IN4 1 2"
    done | verdicts
}

# A manifest of two sets comes into force as a whole or not at all, while packets of both flow. Some addresses move
# from one set to the other with each manifest: a packet that met the new list of one set and the old list of the
# other would pass.
together() {
    local round reason of=(bad worse)
    fresh
    sed -i 's/^sets = .*/sets = ["bad", "worse"]/; /^fpr = /d' "$CONFIG"
    printf '[set.worse]\nsources = ["%s/fleet/current/worse"]\n' "$STATE" >>"$CONFIG"
    address_lists 20261122 moving 200 back 200 refused-bad 200 refused-worse 200
    cp "$WORK/moving" "$WORK/bad-0"
    cp "$WORK/back" "$WORK/worse-0"
    cp "$WORK/back" "$WORK/bad-1"
    cp "$WORK/moving" "$WORK/worse-1"
    {
        flows_of moving drop
        flows_of back drop
        flows_of refused-bad pass
        flows_of refused-worse pass
    } >"$WORK/flows"
    publish "bad=$WORK/bad-0" "worse=$WORK/worse-0"
    start
    await current
    start_stream "$WORK/flows" "$WORK/report"
    for ((round = 1; round <= 6; round++)); do
        publish "bad=$WORK/bad-$((round % 2))" "worse=$WORK/worse-$((round % 2))"
        await current
        stream_round
    done
    # The first or the second set is refused: by one guard, by another one, and since the store has something
    # else in its place.
    for round in 0 1; do
        for reason in own shrink blob; do
            cp "$WORK/refused-bad" "$WORK/new-bad"
            cp "$WORK/refused-worse" "$WORK/new-worse"
            echo "198.18.$round.1" >>"$WORK/new-${of[round]}"
            case $reason in
            own) echo "$IN4" >>"$WORK/new-${of[round]}" ;;
            shrink) sed -i 51,200d "$WORK/new-${of[round]}" ;;
            blob)
                # Hard to compress, so that there is no difference to the list in force.
                head -c 9000 /dev/urandom | base64 | sed 's/^/# /' >>"$WORK/new-${of[round]}"
                spoil "$WORK/new-${of[round]}"
                ;;
            esac
            publish "bad=$WORK/new-bad" "worse=$WORK/new-worse"
            await node_is failed
            case $reason in
            own) await node_says 'own address' ;;
            shrink) await node_says most-shrink ;;
            blob) await node_says 'expected [0-9a-f]\{64\}' ;;
            esac
            stream_round
        done
    done
    publish "bad=$WORK/bad-1" "worse=$WORK/worse-1"
    await current
    stream_round
    stop_stream || true
    jq -c '{packets, arrived, wrong}' "$WORK/report"
    jq -r '.examples[]' "$WORK/report"
    [ "$(jq .wrong "$WORK/report")" = 0 ] || fail "wrong verdicts"
}

# spoil FILE: puts something else of its size into the store under its name.
spoil() {
    local digest
    digest=$(sha256sum "$1" | cut -d' ' -f1)
    tr 0-9 1-90 <"$1" >"$STORE/$digest.x"
    mv "$STORE/$digest.x" "$STORE/$digest"
}

# kill -9 of the daemon, of etcd and of nginx at random moments after a publication, while packets flow: none is
# judged otherwise, and the node comes to what etcd says. KILLS is how often; `make faults` takes 50.
killed() {
    local round now=two seed=${SEED:-$RANDOM}
    fresh
    # A random address that happens to match would look like a wrong verdict.
    sed -i '/^fpr = /d' "$CONFIG"
    # `common` is on both lists, `non-members` on none.
    address_lists 20261122 common 2000 only-one 500 only-two 500 non-members 2000
    cat "$WORK/common" "$WORK/only-one" >"$WORK/one.txt"
    cat "$WORK/common" "$WORK/only-two" >"$WORK/two.txt"
    {
        flows_of common drop
        flows_of non-members pass
    } >"$WORK/flows"
    echo "seed $seed"
    RANDOM=$seed
    publish "bad=$WORK/two.txt"
    start
    await current
    judged_by two
    start_stream "$WORK/flows" "$WORK/report"
    stream_round
    for ((round = 0; round < ${KILLS:-4}; round++)); do
        [ "$now" = one ] && now=two || now=one
        publish "bad=$WORK/$now.txt"
        sleep "$(awk -v r="$RANDOM" 'BEGIN { printf "%.4f", r / 32768 * 0.4 }')"
        case $((RANDOM % 4)) in
        0) end etcd && etcd_up ;;
        1) end nginx && nginx_up ;;
        *) end daemon && start ;;
        esac
        await current
        judged_by "$now"
    done
    stream_round
    stop_stream || true
    jq -c '{packets, arrived, wrong}' "$WORK/report"
    jq -r '.examples[]' "$WORK/report"
    [ "$(jq .wrong "$WORK/report")" = 0 ] || fail "wrong verdicts"
}

ktap_run \
    "only the package xdp-sieve-fleet has a fleet" package \
    "keys, publishing, status, pause and rollback" commands \
    "a node follows" follows \
    "a reload takes what the files of keys hold" exchanged \
    "servers that are away change nothing" away \
    "what is not right is refused" wrong \
    "lists that guards find too short" sizes \
    "the sets of a manifest come together or not at all" together \
    "a killed node comes to what is published" killed
