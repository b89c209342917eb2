#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# A person beside the daemon: changes of a hook that it manages are refused, unless that is meant; and a pause takes the
# program off and keeps it off, whatever starts, ends or changes.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# shellcheck source=service.sh
. "$here/service.sh"
needs_daemon
image "$WORK/bad.sieve" src 203.0.113.1

fresh() {
    fresh_lists "$@"
    service_manager
}

all_pass() {
    verdicts <<END
pass udp $MEMBER $IN4 1 2
pass udp $FRIEND $IN4 1 2
pass udp $STRANGER $IN4 1 2
END
}

# Of pause and resume: a daemon that runs is asked for its state directory, and otherwise the configuration.
pause() { sieve pause "$@" --config "$CONFIG"; }
resume() { sieve resume "$@" --config "$CONFIG"; }

managed() {
    local before command
    fresh
    printf '[set.live]\nsources = ["lists/live.txt"]\nkind = "ddlcbf"\n' >>"$CONFIG"
    sed -i 's/"friends", "bad"/"friends", "bad", "live"/' "$CONFIG"
    echo 203.0.113.9 >"$LISTS/live.txt"
    start
    varies+=(daemon)
    says 'set bad: a new list with 2 entries'
    await_set live
    before=$(sieve --json status "$IN_IF" | jq -c .interfaces)
    for command in "unload $IN_IF" "load $IN_IF bad=$WORK/bad.sieve" "add $IN_IF more=$WORK/bad.sieve" \
        "remove $IN_IF friends" "set $IN_IF bad action=count" "default $IN_IF drop" "swap $IN_IF bad=$WORK/bad.sieve" \
        "insert $IN_IF live 203.0.113.10" "delete $IN_IF live 203.0.113.9" "join $IN_IF bad=$LISTS/bad.txt"; do
        # shellcheck disable=SC2086
        refused 4 sieve $command
    done
    [ "$(sieve --json status "$IN_IF" | jq -c .interfaces)" = "$before" ] || fail "something has changed"
    refused 4 sieve unload "$IN_IF"
    # Nor does another configuration replace the table. What it would do can be asked.
    sed -e "s|$STATE|$WORK/another-state|" -e 's/"friends", "bad", "live"/"friends"/' "$CONFIG" |
        sed '/^\[set\.\(bad\|live\)\]/,/^$/d' >"$WORK/another.toml"
    refused 4 sieve apply --config "$WORK/another.toml"
    [ "$(sieve --json status "$IN_IF" | jq -c .interfaces)" = "$before" ] || fail "something has changed"
    [ ! -e "$WORK/another-state" ] || fail "a state directory was made"
    sieve -q apply --check --config "$WORK/another.toml"
    sieve apply --diff --config "$WORK/another.toml" | grep -q -- '- set bad' ||
        fail "$(sieve apply --diff --config "$WORK/another.toml")"
    says_anew "$IN_IF: changed: " sieve apply --force --config "$WORK/another.toml" >"$WORK/out" 2>"$WORK/err"
    grep -q "manages it and puts the configuration in force again" "$WORK/err" || fail "$(cat "$WORK/err")"
    judged
    # Nor may a hook be changed that the configuration names and that has no program yet. Any one set that had its list
    # would bring the program.
    stop
    reset_interfaces
    rm -r "$STATE" "$LISTS/bad.txt" "$LISTS/friends/a.txt" "$LISTS/live.txt"
    start
    says "$IN_IF: nothing is in force yet"
    refused 4 sieve load "$IN_IF" "bad=$WORK/bad.sieve"
    [ -z "$(program_id)" ] || fail "a program is there"
    printf '%s\n' "$MEMBER" 203.0.113.64/28 >"$LISTS/bad.txt"
    echo "$FRIEND" >"$LISTS/friends/a.txt"
    echo 203.0.113.9 >"$LISTS/live.txt"
    says 'set bad: a new list with 2 entries'
    await_set bad
    # Another hook is nobody's.
    sieve -q load "$IN_IF" --hook egress "out=$WORK/bad.sieve,action=count"
    sieve -q unload "$IN_IF" --hook egress
    # What is meant is done, and soon undone.
    says_anew "$IN_IF: attached" sieve -q unload "$IN_IF" --hook xdp --force 2>"$WORK/err"
    judged
    sieve unload "$IN_IF" --force 2>"$WORK/err" >"$WORK/out"
    grep -q "manages it and puts the configuration in force again" "$WORK/err" || fail "$(cat "$WORK/err")"
    stop
    # Nobody manages it any more.
    sieve -q load "$IN_IF" "bad=$WORK/bad.sieve"
    sieve -q unload "$IN_IF"
}
await_set() { await set_in_force "$1"; }
set_in_force() {
    sieve --json status "$IN_IF" | jq -e --arg set "$1" '.interfaces[0].sets[] | select(.name == $set)' >/dev/null
}

# The pause is on the disk before the command answers, and whatever the daemon does then, no packet is judged.
lasts() {
    fresh
    start
    says 'set bad: a new list with 2 entries'
    judged
    pause "$IN_IF" >"$WORK/out"
    grep -q "$IN_IF: paused; .*\`xdp-sieve resume $IN_IF\`" "$WORK/out" || fail "$(cat "$WORK/out")"
    [ -z "$(program_id)" ] || fail "the program is there"
    [ -e "$STATE/paused.$IN_IF" ] || fail "not noted"
    says "$IN_IF: is paused"
    all_pass
    # A reload, new lists, and restarts.
    echo 203.0.113.99 >>"$LISTS/bad.txt"
    says 'set bad: a new list with 3 entries'
    says_anew 'the configuration was read anew' kill -HUP "$daemon"
    [ -z "$(program_id)" ] || fail "the program is there"
    stop KILL 137
    start
    says "$IN_IF: is paused"
    [ -z "$(program_id)" ] || fail "the program is there"
    sieve status | grep -q "^paused: $IN_IF; " || fail "$(sieve status)"
    [ "$(sieve --json status | jq -c .paused)" = "{\"everywhere\":false,\"interfaces\":[\"$IN_IF\"]}" ] ||
        fail "$(sieve --json status)"
    await_line "$WORK/notified" "STATUS=.*$IN_IF is paused"
    await paused_metric 1
    # By hand, too, the program is kept away, unless that is meant.
    varies+=(daemon)
    refused 4 sieve load "$IN_IF" "bad=$WORK/bad.sieve"
    sieve resume "$IN_IF" | grep -q "resumed; xdp-sieved (process $daemon)" || fail "another answer"
    says "$IN_IF: attached; in force: friends, bad"
    judged
    verdicts <<<"drop udp 203.0.113.99 $IN4 1 2"
    await paused_metric 0
    [ "$(sieve --json status | jq -c .paused)" = null ] || fail "$(sieve --json status)"
    stop
}
paused_metric() {
    inside "$IN" curl -sf http://127.0.0.1:19273/metrics >"$WORK/metrics" || return 1
    grep -E "^xdp_sieve_hook_paused\{" "$WORK/metrics" >"$WORK/awaited"
    grep -q "^xdp_sieve_hook_paused{.*interface=\"$IN_IF\".*} $1\$" "$WORK/metrics"
}

# Without a daemon, for the next one, and for `apply`.
without_daemon() {
    fresh
    pause >"$WORK/out"
    [ -e "$STATE/paused" ] || fail "not noted"
    sieve apply "$CONFIG" >"$WORK/out"
    grep -q "$IN_IF: paused" "$WORK/out" || fail "$(cat "$WORK/out")"
    [ -z "$(program_id)" ] || fail "apply has attached the program"
    start
    says "$IN_IF: is paused"
    [ -z "$(program_id)" ] || fail "the program is there"
    refused 1 resume "$IN_IF"
    stop
    resume | grep -q 'xdp-sieved does not run' || fail "another answer"
    [ ! -e "$STATE/paused" ] || fail "still noted"
    resume | grep -q 'was not paused' || fail "another answer"
    sieve -q apply "$CONFIG"
    judged
    pause "$IN_IF" | grep -q unloaded || fail "another answer"
    all_pass
    resume "$IN_IF" >/dev/null
    # A configuration with mistakes is no hindrance.
    echo 'nonsense = 1' >>"$CONFIG"
    pause "$IN_IF" 2>/dev/null >&2
    [ -e "$STATE/paused.$IN_IF" ] || fail "not noted"
    resume 2>/dev/null >&2
    refused 2 pause ../../etc
}

# An allowlist admits everybody while it is paused.
allowlist() {
    fresh "default = \"drop\"
protect-host = false"
    start
    says "$IN_IF: attached; in force: friends, bad"
    verdicts <<<"drop udp $STRANGER $IN4 1 2"
    pause "$IN_IF" >/dev/null
    verdicts <<<"pass udp $STRANGER $IN4 1 2"
    says_anew "$IN_IF: attached; in force: friends, bad" sieve resume "$IN_IF" >/dev/null
    verdicts <<<"drop udp $STRANGER $IN4 1 2"
    stop
}

# Whatever the daemon is doing at that moment.
races() {
    local i
    fresh
    start
    says 'set bad: a new list with 2 entries'
    for i in $(seq 8); do
        kill -HUP "$daemon"
        pause "$IN_IF" >/dev/null
        [ -z "$(program_id)" ] || fail "round $i: the program is there"
        says_anew 'the configuration was read anew' kill -HUP "$daemon"
        [ -z "$(program_id)" ] || fail "round $i: the program is there again"
        says_anew "$IN_IF: attached" sieve resume "$IN_IF" >/dev/null
        judged
    done
    stop
}

# Whatever another name of the interface is asked for happens to the interface.
other_name() {
    ip -n "$IN" link property add dev "$IN_IF" altname uplink0 2>/dev/null || skip "no alternative names here"
    fresh
    start
    varies+=(daemon)
    says 'set bad: a new list with 2 entries'
    refused 4 sieve unload uplink0
    refused 4 sieve insert uplink0 bad 203.0.113.10
    pause uplink0 >"$WORK/out"
    grep -q "^$IN_IF: paused" "$WORK/out" || fail "$(cat "$WORK/out")"
    kill -s HUP "$daemon"
    says 'the configuration was read anew'
    [ -z "$(program_id)" ] || fail "the program is back"
    resume "$IN_IF"
    says "$IN_IF: attached"
    stop
}

ktap_run \
    "changes of a managed hook want --force" managed \
    "other names of an interface" other_name \
    "a pause outlasts reloads and restarts" lasts \
    "a pause without a daemon" without_daemon \
    "a paused allowlist admits everybody" allowlist \
    "a pause while the daemon works" races
