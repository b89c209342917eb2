#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Sets that change in place, under traffic: what has changed since their last good image holds from the first packet
# that meets them.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# shellcheck source=service.sh
. "$here/service.sh"
needs_daemon

MOVES=${MOVES:-6}

# in_turn SET OTHER: configures the one set for what comes in, and the other for what leaves.
in_turn() {
    cat >"$CONFIG" <<END
[service]
state-directory = "$STATE"
listen = "127.0.0.1:9273"
[[interface]]
name = "$IN_IF"
sets = ["$1"]
[[interface]]
name = "$IN_IF"
hook = "egress"
sets = ["$2"]
[set.still]
sources = ["lists/still.txt"]
[set.live]
kind = "ddlcbf"
sources = ["lists/live.txt"]
END
}
in_force() {
    sieve --json status "$IN_IF" |
        jq -e --arg set "$1" '[.interfaces[] | select(.hook == "xdp") | .sets[].name] == [$set]' >/dev/null
}
# other SET: prints the name of the other one.
other() { [ "$1" = live ] && echo still || echo live; }

has_entries() { [ "$(metric "xdp_sieve_list_entries{set=\"$1\"}")" = "$2" ]; }

# Both lists name the stranger. The live set's image does not: it came when the set was in force already.
begin() {
    fresh_lists
    service_manager
    echo "$MEMBER" >"$LISTS/live.txt"
    echo "$STRANGER" >"$LISTS/still.txt"
    in_turn live still
    start
    says 'set still: a new list with 1 entry'
    await in_force live
    echo "$STRANGER" >>"$LISTS/live.txt"
    says 'set live: 1 came and 0 went'
    await has_entries live 2
    echo "kept drop drop udp $STRANGER $IN4 1 2" >"$WORK/flows"
    start_stream "$WORK/flows" "$WORK/report"
}

# take_turns COMMAND: puts the one set in the place of the other, again and again; the command has the daemon take the
# new configuration. Each set names the stranger, so it is dropped at every moment.
take_turns() {
    local number set
    begin
    for ((number = 0; number < MOVES; number++)); do
        for set in still live; do
            in_turn "$set" "$(other "$set")"
            "$1"
            await in_force "$set"
            stream_round
        done
    done
    stop_stream
    stop
}

reload() { kill -HUP "$daemon"; }
takes_the_place() { take_turns reload; }

# With a journal that a killed daemon has left.
die_and_start() {
    stop KILL 137
    start
}
at_a_start() { take_turns die_and_start; }

# another LIST ACTION: configures a live set of this list with this action.
another() {
    cat >"$CONFIG" <<END
[service]
state-directory = "$STATE"
[[interface]]
name = "$IN_IF"
sets = ["live"]
[set.live]
kind = "exact"
sources = ["lists/$1.txt"]
action = "$2"
END
}
has_action() { [ "$(of_set status live action)" = "$1" ]; }

# gets_both COMMAND: gives the set another list and another action, again and again; the command has the daemon take
# them. Nothing may drop the stranger: the list that names it is counted, and the other one does not name it.
gets_both() {
    local number
    fresh_lists
    service_manager
    echo "$MEMBER" >"$LISTS/foes.txt"
    echo "$STRANGER" >"$LISTS/counted.txt"
    another foes drop
    start
    await has_action drop
    echo "kept pass pass udp $STRANGER $IN4 1 2" >"$WORK/flows"
    start_stream "$WORK/flows" "$WORK/report"
    for ((number = 0; number < MOVES; number++)); do
        another counted count
        "$1"
        await has_action count
        another foes drop
        "$1"
        await has_action drop
        stream_round
    done
    stop_stream
    stop
    if grep 'which did not come' "$WORK/said"; then fail "a list came without its action"; fi
}
both_at_once() { gets_both reload; }

# At any moment on the way to both.
die_in_the_middle() {
    reload
    sleep "0.0$((RANDOM % 10))"
    die_and_start
}
both_after_a_kill() { gets_both die_in_the_middle; }

# differs ADDED GONE: says what `apply --diff` finds in the list of the live set.
differs() {
    sieve --json apply --diff "$CONFIG" | jq -e --argjson added "$1" --argjson gone "$2" \
        '.sets[0].list | .added == $added and .gone == $gone' >/dev/null || fail "$(sieve apply --diff "$CONFIG")"
}
shows_the_difference() {
    fresh_lists
    service_manager
    echo "$MEMBER" >"$LISTS/foes.txt"
    another foes drop
    start
    await has_action drop
    differs 0 0
    echo "$STRANGER" >>"$LISTS/foes.txt"
    says 'set live: 1 came and 0 went'
    differs 0 0
    stop
    printf '%s\n' "$STRANGER" 192.0.2.9 192.0.2.10 >"$LISTS/foes.txt"
    differs 2 1
}

# As `delete` refuses it.
keeps_who_must_get_in() {
    fresh_lists
    service_manager
    printf '%s\n' "$MEMBER" "$FRIEND" >"$LISTS/friends.txt"
    another friends pass
    sed -i "s/^sets = .*/&\ndefault = \"drop\"\nprotect = [\"$FRIEND\"]/" "$CONFIG"
    start
    await in_force live
    echo "$STRANGER" >"$LISTS/friends.txt"
    says "set live: $IN_IF xdp: no set lets $FRIEND pass, "
    [ "$(of_set status live keys)" = 2 ] || fail "the list has changed"
    inside "$IN" "$SIEVE" status "$IN_IF" >"$WORK/status"
    grep -q "no set lets $FRIEND pass" "$WORK/status" || fail "$(cat "$WORK/status")"
    verdicts <<END
pass udp $FRIEND $IN4 1 2
pass udp $MEMBER $IN4 1 2
drop udp $STRANGER $IN4 1 2
END
    echo "$FRIEND" >"$LISTS/friends.txt"
    says 'set live: 0 came and 1 went in .* ms; 1 entry is on the list'
    verdicts <<<"drop udp $MEMBER $IN4 1 2"
    stop
}

ktap_run \
    "a live set in another's place, and back, $MOVES times under traffic" takes_the_place \
    "the same when the daemon was killed before" at_a_start \
    "another list and another action come at once, $((2 * MOVES)) times under traffic" both_at_once \
    "the same when the daemon is killed meanwhile" both_after_a_kill \
    "apply --diff compares with what has changed in place" shows_the_difference \
    "an address that must get in does not leave a live set" keeps_who_must_get_in
