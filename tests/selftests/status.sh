#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# What status says about how the program was attached, and the options that choose its rank.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
image "$WORK/bad.sieve" src 203.0.113.7

told() { sieve --json status "$IN_IF" | jq -r ".interfaces[0].$1"; }

# The program alone, attached in each way. tests/vm/coexistence.sh covers it behind a dispatcher.
by_ip_link() {
    attach
    [ "$(told attached_by)" = other ] || fail "status tells that $(told attached_by) attached it"
    [ "$(told dispatcher)" = false ] || fail "status tells of a dispatcher"
    sieve status "$IN_IF" | grep -q 'alone, by ip link or another tool' || fail "told: $(sieve status "$IN_IF")"
    # Sets that are loaded later do not change who attached the program.
    sieve -q load "$IN_IF" "bad=$WORK/bad.sieve"
    [ "$(told attached_by)" = other ] || fail "status tells that $(told attached_by) attached it"
}

by_load() {
    sieve load --priority 20 --chain pass,drop "$IN_IF" "bad=$WORK/bad.sieve" 2>"$WORK/err"
    [ "$(told attached_by)" = load ] || fail "status tells that $(told attached_by) attached it"
    if [ "$(told dispatcher)" = true ]; then
        [ "$(told priority) $(told chain)" = "20 drop,pass" ] || fail "told: $(sieve status "$IN_IF")"
        [ ! -s "$WORK/err" ] || fail "load says: $(cat "$WORK/err")"
    else
        sieve status "$IN_IF" | grep -Eq ', alone(,|$)' || fail "told: $(sieve status "$IN_IF")"
        # The command could not do what the option asked for, and says so.
        grep -q 'attached alone' "$WORK/err" || fail "load does not say that it is alone"
        grep -q -- '--priority and --chain have no effect' "$WORK/err" || fail "load does not say what was in vain"
    fi
    verdicts <<<"pass udp 203.0.113.8 $IN4 1 2"
    sieve -q unload "$IN_IF"
}

nothing() {
    local status=0
    sieve status "$IN_IF" >"$WORK/out" || status=$?
    [ "$status" = 1 ] || fail "exit code $status instead of 1"
    grep -q 'does not run xdp-sieve' "$WORK/out" || fail "told: $(cat "$WORK/out")"
    [ "$(sieve --json status | jq '.interfaces | length')" = 0 ] || fail "status tells of something"
}

# A daemon's note counts while a process holds it.
managed() {
    local note holder
    note=/run/xdp-sieve/net-$(ip netns exec "$IN" stat -L -c %i /proc/self/ns/net).manager
    mkdir -m 700 /run/xdp-sieve 2>/dev/null || [ -d /run/xdp-sieve ]
    printf '{"pid": 812, "started": 1, "listen": "127.0.0.1:19273", "state": "/s", "version": "1.\\u001b2"}' >"$note"
    ! sieve status | grep -q managed || fail "a note that nobody holds counts"
    # The holder says when it has the lock, and ends with its input.
    coproc HOLDER { flock -x "$note" sh -c 'echo held; cat >/dev/null'; }
    holder=$HOLDER_PID
    read -r _ <&"${HOLDER[0]}"
    sieve status | grep -qF 'managed by xdp-sieved 1.\x1b2, process 812; status page: http://127.0.0.1:19273/' ||
        fail "told: $(sieve status)"
    [ "$(sieve --json status | jq -r '"\(.manager.pid) \(.manager.status_page)"')" = "812 http://127.0.0.1:19273/" ] ||
        fail "told: $(sieve --json status)"
    eval "exec ${HOLDER[1]}>&-"
    wait "$holder"
    rm "$note"
    [ "$(sieve --json status | jq .manager)" = null ] || fail "a daemon that has gone counts"
}

wrong_options() {
    refused 2 sieve load --chain pass,maybe "$IN_IF" "bad=$WORK/bad.sieve"
    refused 2 sieve load --chain "" "$IN_IF" "bad=$WORK/bad.sieve"
    refused_with 2 'priority' sieve load --priority 0 "$IN_IF" "bad=$WORK/bad.sieve"
    refused_with 2 'priority' sieve load --priority first "$IN_IF" "bad=$WORK/bad.sieve"
    [ -z "$(program_id)" ] || fail "attached something"
    attach
    refused 2 sieve load --priority 20 "$IN_IF" "bad=$WORK/bad.sieve"
    refused 2 sieve load --chain none "$IN_IF" "bad=$WORK/bad.sieve"
    [ "$(told 'sets | length')" = 0 ] || fail "a refused load has loaded something"
}

ktap_run \
    "attached by ip link" by_ip_link \
    "attached by load, with a place" by_load \
    "nothing attached" nothing \
    "managed by a daemon" managed \
    "wrong options" wrong_options
