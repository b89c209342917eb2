#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# kill -9 of xdp-sieved at random moments, while packets flow and its list changes: no packet is judged otherwise, and
# the next start goes on from what is there. KILLS is how often; `make faults` takes 300. SEED draws the moments.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
SIEVED=${SIEVED:-$BUILD/xdp-sieved}
[ -x "$SIEVED" ] || skip_all "xdp-sieved is not built"
KILLS=${KILLS:-6} SEED=${SEED:-$RANDOM}
CONFIG=$WORK/xdp-sieve.toml STATE=$WORK/state

cat >"$CONFIG" <<END
[service]
state-directory = "$STATE"
[[interface]]
name = "$IN_IF"
sets = ["bad"]
[set.bad]
sources = ["bad.txt"]
# Filter and keys, two maps: a random address that happens to match would look like a wrong verdict.
kind = "xorsat"
verify = true
END

# `common` is on the list in every version, `non-members` in none, and the others come and go.
address_lists 20261122 common 2000 only-a 500 only-b 500 only-c 500 non-members 2000
version() {
    cat "$WORK/common" "$WORK/only-$1" >"$WORK/bad.new"
    mv "$WORK/bad.new" "$WORK/bad.txt"
}
# flows_of LIST VERDICT: prints lines for the traffic.
flows_of() {
    head -n 200 "$WORK/$1" |
        awk -v group="$1" -v verdict="$2" -v to="$IN4" \
            '{ print group, verdict, verdict, "udp", $1, to, 1000 + NR, 53 }'
}
{
    flows_of common drop
    flows_of non-members pass
} >"$WORK/flows"

# start: starts the daemon; $daemon is its process.
start() {
    nsenter --net="/run/netns/$IN" "$SIEVED" --config "$CONFIG" --log stderr 2>>"$WORK/said" &
    daemon=$!
}
end() {
    kill -s "$1" "$daemon" || fail "the daemon had ended: $(tail -n 5 "$WORK/said")"
    wait "$daemon" 2>/dev/null || true
}
# in_force VERSION: whether packets are judged by that version, by one address of each.
in_force() {
    local other
    for other in a b c; do
        echo "$([ "$other" = "$1" ] && echo drop || echo pass) udp $(head -n 1 "$WORK/only-$other") $IN4 1 2"
    done | verdicts
}
maps() { bpftool -j prog show id "$(program_id)" | jq '.map_ids | length'; }

kills() {
    local program number now=a before took maps_before
    echo "seed $SEED"
    RANDOM=$SEED
    : >"$WORK/said"
    version a
    # One whole start with a new list says how long the moments may be apart.
    before=$(date +%s%N)
    start
    await_line "$WORK/said" 'set bad: a new list with'
    took=$(($(date +%s%N) - before))
    in_force a
    program=$(program_id) maps_before=$(maps)
    end KILL
    start_stream "$WORK/flows" "$WORK/report"
    stream_round
    for ((number = 0; number < KILLS; number++)); do
        start
        if ((RANDOM % 2)); then
            [ "$now" = a ] && now=b || now=a
            version "$now"
        fi
        # A random moment of the start, the swap, or the time after it.
        sleep "$(awk -v r="$RANDOM" -v t="$took" 'BEGIN { printf "%.4f", r / 32768 * 1.2 * t / 1e9 }')"
        end KILL
    done
    stream_round
    stop_stream || true
    jq -c '{packets, arrived, wrong}' "$WORK/report"
    jq -r '.examples[]' "$WORK/report"
    [ "$(jq .wrong "$WORK/report")" = 0 ] || fail "wrong verdicts"
    # Every kill has left the program where it was, and the next start brings the newest list into force.
    [ "$(program_id)" = "$program" ] || fail "another program"
    : >"$WORK/said"
    version c
    start
    await_line "$WORK/said" "$IN_IF: changed: bad has a new filter"
    in_force c
    [ "$(maps)" = "$maps_before" ] || fail "$(maps) maps instead of $maps_before"
    end TERM
    [ "$(find "$STATE/sets/bad" -name '*.sieve' | wc -l)" = 1 ] || fail "images are left: $(ls "$STATE/sets/bad")"
    [ -z "$(find "$STATE" -name '*.tmp*' -o -name '*.new')" ] || fail "files are left: $(find "$STATE")"
}

ktap_run "kill -9 at $KILLS random moments under traffic" kills
