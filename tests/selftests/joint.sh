#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# One lookup for many sets: verdicts, order and counters are those of the sets, through every change of the table.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# list NAME ADDRESS...
list() {
    local name=$1
    shift
    printf '%s\n' "$@" >"$WORK/$name"
}
list a 203.0.113.1 203.0.113.2 2001:db8:a::1
list b 203.0.113.2 203.0.113.3 203.0.113.4
list c 203.0.113.4 203.0.113.5
list other 203.0.113.6
image "$WORK/image.sieve" src 203.0.113.7

hits() { counter "sets[] | select(.name == \"$1\") | .packets"; }
joined() { sieve --json status "$IN_IF" | jq -r '[.interfaces[0].sets[] | select(.joined) | .name] | join(" ")'; }
expect_joined() { [ "$(joined)" = "$1" ] || fail "joined: $(joined), expected: $1"; }

begin() {
    attach
    sieve -q load --join "$IN_IF" "a=$WORK/a" "b=$WORK/b,action=pass" "c=$WORK/c"
    expect_joined "a b c"
}

as_by_themselves() {
    begin
    verdicts --repeat 1 <<END
drop udp 203.0.113.1 $IN4 1 2
drop tcp 203.0.113.2 $IN4 1 2
pass udp 203.0.113.3 $IN4 1 2
pass udp 203.0.113.4 $IN4 1 2
drop udp 203.0.113.5 $IN4 1 2
drop udp 2001:db8:a::1 $IN6 1 2
pass udp 203.0.113.9 $IN4 1 2
END
    [ "$(hits a)/$(hits b)/$(hits c)" = 3/2/1 ] || fail "hits $(hits a)/$(hits b)/$(hits c)"
    sieve status "$IN_IF" >"$WORK/out"
    grep -q 'one lookup answers for a, b and c' "$WORK/out" || fail "$(cat "$WORK/out")"
    # A member of b and c, and a member of none. The exit status of the latter is 1.
    sieve explain "$IN_IF" 203.0.113.4 >"$WORK/out"
    grep -q 'set b decides (pass)' "$WORK/out" || fail "$(cat "$WORK/out")"
    if sieve -q query "$IN_IF" 203.0.113.9 >/dev/null; then fail "a non-member is present"; fi
}

# The set that decides before may only count, and the next set decides.
actions_and_order() {
    begin
    sieve -q set "$IN_IF" a action=count
    expect_joined "a b c"
    verdicts --repeat 1 <<END
pass udp 203.0.113.1 $IN4 1 2
pass udp 203.0.113.2 $IN4 1 2
drop udp 203.0.113.5 $IN4 1 2
END
    [ "$(hits a)/$(hits b)/$(hits c)" = 2/1/1 ] || fail "hits $(hits a)/$(hits b)/$(hits c)"
    sieve -q set "$IN_IF" c before=a
    expect_joined "a b"
    verdicts --repeat 1 <<END
drop udp 203.0.113.4 $IN4 1 2
drop udp 203.0.113.5 $IN4 1 2
pass udp 203.0.113.2 $IN4 1 2
END
}

swap_and_remove() {
    begin
    sieve -q swap "$IN_IF" "b=$WORK/other"
    expect_joined "a c"
    verdicts --repeat 1 <<END
drop udp 203.0.113.2 $IN4 1 2
pass udp 203.0.113.3 $IN4 1 2
drop udp 203.0.113.4 $IN4 1 2
drop udp 203.0.113.5 $IN4 1 2
pass udp 203.0.113.6 $IN4 1 2
END
    [ "$(hits b)" = 1 ] || fail "b has $(hits b) hits"
    sieve -q remove "$IN_IF" a
    expect_joined ""
    verdicts --repeat 1 <<END
pass udp 203.0.113.2 $IN4 1 2
drop udp 203.0.113.4 $IN4 1 2
END
    sieve -q load --join "$IN_IF" "a=$WORK/a" "b=$WORK/b,action=pass" "c=$WORK/c"
    expect_joined "a b c"
    sieve -q load "$IN_IF" "a=$WORK/a" "c=$WORK/c"
    expect_joined ""
}

# An image holds no keys, so its set is asked by itself, in its place.
others() {
    attach
    sieve load --join "$IN_IF" "a=$WORK/a" "image=$WORK/image.sieve,action=count" "b=$WORK/b,action=pass" \
        "v=$WORK/c,verify" >"$WORK/out" 2>"$WORK/err"
    grep -q 'set image is not joined: an image does not list its keys' "$WORK/err" || fail "$(cat "$WORK/err")"
    grep -q 'set v is not joined: its matches are verified' "$WORK/err" || fail "$(cat "$WORK/err")"
    grep -q 'one lookup for a, b' "$WORK/out" || fail "$(cat "$WORK/out")"
    expect_joined "a b"
    verdicts --repeat 1 <<END
drop udp 203.0.113.1 $IN4 1 2
pass udp 203.0.113.7 $IN4 1 2
pass udp 203.0.113.4 $IN4 1 2
drop udp 203.0.113.5 $IN4 1 2
END
    [ "$(hits a)/$(hits image)/$(hits b)/$(hits v)" = 1/1/1/1 ] || fail "other hits"
    sieve load --join "$IN_IF" "image=$WORK/image.sieve" "a=$WORK/a" >"$WORK/out" 2>"$WORK/err"
    grep -q 'nothing is joined: that takes two sets' "$WORK/err" || fail "$(cat "$WORK/err")"
    expect_joined ""
}

sixteen() {
    local sets=() i lines=
    attach
    for i in {1..16}; do
        printf '203.0.113.%d\n203.0.113.200\n' "$i" >"$WORK/s$i"
        sets+=("s$i=$WORK/s$i")
        lines+="drop udp 203.0.113.$i $IN4 1 2"$'\n'
    done
    sieve -q load --join "$IN_IF" "${sets[@]}"
    verdicts --repeat 1 <<<"${lines}drop udp 203.0.113.200 $IN4 1 2"
    [ "$(hits s1)" = 2 ] || fail "s1: $(hits s1)"
    for i in {2..16}; do [ "$(hits "s$i")" = 1 ] || fail "s$i: $(hits "s$i")"; done
}

# The program takes the change back by itself; then the joint filter of before is in force again.
probation() {
    begin
    sieve -q swap --confirm 3600 "$IN_IF" "b=$WORK/other"
    expect_joined "a c"
    sieve -q confirm --take-back "$IN_IF"
    expect_joined "a b c"
    verdicts --repeat 1 <<END
pass udp 203.0.113.3 $IN4 1 2
drop udp 203.0.113.5 $IN4 1 2
END
}

ktap_run \
    "verdicts and counters are those of the sets" as_by_themselves \
    "actions and order may change" actions_and_order \
    "swapped and removed sets" swap_and_remove \
    "sets that are not joined keep their places" others \
    "sixteen sets" sixteen \
    "a change that is taken back" probation
