#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# A guard's refusal is answered once, by hand: the very list that was refused comes into force, and no other.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# shellcheck source=service.sh
. "$here/service.sh"
needs_daemon

# many NUMBER: the list has so many addresses, from 11.0.0.0 on.
many() {
    local i
    for ((i = 0; i < $1; i++)); do echo "11.0.$((i >> 8)).$((i & 255))"; done >"$LISTS/next"
    mv "$LISTS/next" "$LISTS/bad.txt"
}
# The list with so many addresses is in force.
in_force() {
    local other=pass
    [ "$1" -lt 1000 ] || other=drop
    verdicts <<END
drop udp 11.0.0.7 $IN4 1 2
$other udp 11.0.3.7 $IN4 1 2
END
    [ "$(of_set status bad keys)" = "$1" ] || fail "$(sieve status "$IN_IF")"
}
accept() { sieve accept "$@" --config "$CONFIG"; }

fresh() {
    fresh_lists
    many 1000
    service_manager
}

daemon() {
    fresh
    start
    says 'set bad: a new list with 1000 entries'
    in_force 1000
    refused 1 accept bad
    many 100
    # shellcheck disable=SC2016 # a command for people
    says 'set bad: .*lost 90.0%.*, or take just this list, once, with `xdp-sieve accept bad --config .*` \(refused'
    in_force 1000
    await_line "$WORK/notified" "^STATUS=.*set bad: its new list was refused; .xdp-sieve accept bad"
    sieve status "$IN_IF" | grep -q 'xdp-sieve accept bad' || fail "$(sieve status "$IN_IF")"
    # Killed between refusal and answer, and between answer and swap.
    stop KILL 137
    accept bad >"$WORK/out"
    grep -qx "set bad: accepted, once: 100 entries (in force: 1000), 100 IPv4 addresses (in force: 1000); guard \
shrink had refused it" "$WORK/out" || fail "$(cat "$WORK/out")"
    grep -q 'xdp-sieved does not run' "$WORK/out" || fail "$(cat "$WORK/out")"
    # Another list meanwhile is refused still, and takes the answer with it.
    many 101
    start
    says 'warning: set bad: .*the new list has 101 entries'
    in_force 1000
    many 100
    says 'warning: set bad: .*the new list has 100 entries'
    in_force 1000
    sieve --json accept bad --config "$CONFIG" >"$WORK/out"
    jq -e '.accepted and .guard == "shrink" and .entries == 100 and .entries_before == 1000 and
        .addresses.ipv4 == 100' "$WORK/out" >/dev/null || fail "$(cat "$WORK/out")"
    says 'set bad: a new list with 100 entries \(before: 1000\)'
    in_force 100
    refused 1 accept bad
    await_line "$WORK/notified" "^STATUS=2 sets in force on $IN_IF\$"
    # It was for once.
    many 1000
    says 'set bad: a new list with 1000 entries \(before: 100\)'
    many 100
    says_anew 'warning: set bad: .*the new list has 100 entries' many 100
    in_force 1000
    stop
}

# A daemon that is killed while a person's answer waits takes the list at its next start.
killed() {
    fresh
    start
    says 'set bad: a new list with 1000 entries'
    many 100
    says 'warning: set bad: .*accept bad'
    kill -s STOP "$daemon"
    accept bad >/dev/null
    stop KILL 137
    in_force 1000
    start
    says 'set bad: its list is taken, since it was accepted by hand; guard shrink had refused it'
    says 'set bad: a new list with 100 entries'
    in_force 100
    stop
}

apply() {
    fresh
    sieve -q apply "$CONFIG"
    in_force 1000
    echo '# none' >"$LISTS/bad.txt"
    # shellcheck disable=SC2016 # a command for people
    refused 3 sieve apply "$CONFIG"
    in_force 1000
    accept bad >/dev/null
    sieve -q apply "$CONFIG"
    verdicts <<<"pass udp 11.0.0.7 $IN4 1 2"
    sieve apply "$CONFIG" | grep -qx 'nothing to do' || fail "it was not the last answer"
    refused 1 accept bad
    refused 1 accept friends
    refused 2 accept freinds
    refused 2 accept /etc/passwd
    # Who only looks changes nothing.
    many 3000
    printf '[set.bad.guards]\nmost-growth = 2\n' >>"$CONFIG"
    refused 3 sieve apply --check "$CONFIG"
    refused 1 accept bad
}

# The lists of sets that change in place have guards, too.
in_place() {
    fresh
    sed -i '/^fpr/d' "$CONFIG"
    printf 'kind = "ddlcbf"\n' >>"$CONFIG"
    start
    await set_in_force
    in_force_live 1000
    many 100
    says 'warning: set bad: .*the new list has 100 entries.*`xdp-sieve accept bad '
    in_force_live 1000
    accept bad >"$WORK/out"
    grep -qx "set bad: accepted, once: 100 entries (in force: 1000), 100 IPv4 addresses; guard shrink had refused it" \
        "$WORK/out" || fail "$(cat "$WORK/out")"
    says 'set bad: 0 came and 900 went'
    verdicts <<END
drop udp 11.0.0.7 $IN4 1 2
pass udp 11.0.3.7 $IN4 1 2
END
    refused 1 accept bad
    # Nor does an answer that comes too late bring it back.
    many 1000
    says 'set bad: 900 came and 0 went'
    says_anew 'warning: set bad: .*the new list has 100 entries' many 100
    kill -s STOP "$daemon"
    accept bad >/dev/null
    cp -p "$STATE/bad.refused" "$WORK/late"
    kill -s CONT "$daemon"
    await_gone "$STATE/bad.refused"
    mv "$WORK/late" "$STATE/bad.refused"
    says_anew 'set bad: 900 came and 0 went' many 1000
    await_gone "$STATE/bad.refused"
    says_anew 'warning: set bad: .*the new list has 100 entries' many 100
    in_force_live 1000
    stop
}
await_gone() { await test ! -e "$1"; }
set_in_force() { [ "$(of_set status bad name)" = bad ]; }
in_force_live() {
    verdicts <<END
drop udp 11.0.0.7 $IN4 1 2
drop udp 11.0.3.7 $IN4 1 2
END
}

ktap_run \
    "a list that lost 90% is taken once, by hand" daemon \
    "a daemon that is killed between answer and swap" killed \
    "an answer for apply" apply \
    "a list that changes in place" in_place
