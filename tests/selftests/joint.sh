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
"$SIEVE" -q build --kind blocked -o "$WORK/image.sieve" - <<<203.0.113.7

hits() { counter "sets[] | select(.name == \"$1\") | .packets"; }
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
    sieve load --join "$IN_IF" "a=$WORK/a,kind=exact" "image=$WORK/image.sieve,action=count" "b=$WORK/b,action=pass" \
        "v=$WORK/c,verify,kind=xorsat" >"$WORK/out" 2>"$WORK/err"
    grep -q 'set image is not joined: an image does not list its keys' "$WORK/err" || fail "$(cat "$WORK/err")"
    grep -q 'set v is not joined: its matches are verified' "$WORK/err" || fail "$(cat "$WORK/err")"
    grep -q 'one lookup for a, b: 5 keys, .*, exact$' "$WORK/out" || fail "$(cat "$WORK/out")"
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

# Keys change while a change is on probation. The table that comes back has the set as well, and a joint filter of its
# old keys.
keys_on_probation() {
    local change
    attach
    for change in "swap $IN_IF b=$WORK/other" "remove $IN_IF b" "set $IN_IF c action=count"; do
        sieve -q load --join "$IN_IF" "a=$WORK/a,kind=exact" "b=$WORK/b,action=pass" "c=$WORK/c,kind=exact"
        # shellcheck disable=SC2086 # words
        sieve -q $change --confirm 3600
        sieve -q insert "$IN_IF" a 203.0.113.11
        sieve -q delete "$IN_IF" a 203.0.113.1
        verdicts --repeat 1 <<END
drop udp 203.0.113.11 $IN4 1 2
pass udp 203.0.113.1 $IN4 1 2
END
        sieve -q confirm --take-back "$IN_IF"
        expect_joined "b c"
        verdicts --repeat 1 <<END
drop udp 203.0.113.11 $IN4 1 2
pass udp 203.0.113.1 $IN4 1 2
drop udp 203.0.113.2 $IN4 1 2
pass udp 203.0.113.4 $IN4 1 2
drop udp 203.0.113.5 $IN4 1 2
END
    done
}

# A joint filter knows no ends.
keys_that_end() {
    attach
    sieve -q load --join "$IN_IF" "a=$WORK/a,kind=exact" "b=$WORK/b,action=pass" "c=$WORK/c"
    sieve -q insert --for 1s "$IN_IF" a 203.0.113.11
    expect_joined "b c"
    list longer 203.0.113.1 203.0.113.2 2001:db8:a::1 203.0.113.11
    sieve join "$IN_IF" "a=$WORK/longer" "b=$WORK/b" "c=$WORK/c" >/dev/null 2>"$WORK/err"
    grep -q 'set a is not joined: its keys may end' "$WORK/err" || fail "$(cat "$WORK/err")"
    expect_joined "b c"
    await is_gone 203.0.113.11
    verdicts --repeat 1 <<END
pass udp 203.0.113.11 $IN4 1 2
drop udp 203.0.113.1 $IN4 1 2
END
    # A filter that is built anew has no such keys.
    sieve -q swap "$IN_IF" "a=$WORK/a,kind=exact"
    sieve -q join "$IN_IF" "a=$WORK/a" "b=$WORK/b" "c=$WORK/c"
    expect_joined "a b c"
}
is_gone() { ! sieve list "$IN_IF" a | grep -qw "$1"; }

# join makes good for a swap, and refuses lists that are not those of the filters.
joined_again() {
    begin
    sieve -q swap "$IN_IF" "b=$WORK/other"
    verdicts --repeat 1 <<<"drop udp 203.0.113.1 $IN4 1 2"
    expect_joined "a c"
    refused 3 sieve join "$IN_IF" "a=$WORK/a" "b=$WORK/b" "c=$WORK/c"
    refused 1 sieve join "$IN_IF" "a=$WORK/a" "nope=$WORK/b"
    refused 2 sieve join "$IN_IF" "a=$WORK/a" "b=$WORK/image.sieve"
    refused 2 sieve join "$IN_IF" "a=$WORK/a" "b=$WORK/other,action=drop"
    expect_joined "a c"
    sieve --json join "$IN_IF" "c=$WORK/c" "a=$WORK/a" "b=$WORK/other" |
        jq -e '.joint.sets == ["a", "b", "c"] and .joint.keys == 6 and .joint.exact' >/dev/null || fail "other sets"
    expect_joined "a b c"
    verdicts --repeat 1 <<END
drop udp 203.0.113.2 $IN4 1 2
pass udp 203.0.113.3 $IN4 1 2
drop udp 203.0.113.4 $IN4 1 2
pass udp 203.0.113.6 $IN4 1 2
END
    # The counters went on.
    [ "$(hits a)/$(hits b)/$(hits c)" = 2/1/1 ] || fail "hits $(hits a)/$(hits b)/$(hits c)"
    if sieve join "$IN_IF" "a=$WORK/a" >"$WORK/out" 2>"$WORK/err"; then fail "one set was joined"; fi
    grep -q 'nothing is joined: that takes two sets' "$WORK/err" || fail "$(cat "$WORK/err")"
    expect_joined "a b c"
}

# A key that the filter matches by a false positive, in place of one of its keys: a joint filter of this list would miss
# that key.
mistaken_key() {
    local i mistaken=
    attach
    seq -f '203.0.113.%g' 1 200 >"$WORK/members"
    sieve -q load --join "$IN_IF" "a=$WORK/other" "m=$WORK/members,kind=blocked,fpr=0.2"
    expect_joined "a m"
    sieve -q swap "$IN_IF" "m=$WORK/members,kind=blocked,fpr=0.2"
    expect_joined ""
    for i in {1..254}; do
        if ! sieve -q query "$IN_IF" "198.51.100.$i" >/dev/null; then continue; fi
        mistaken=198.51.100.$i
        break
    done
    [ -n "$mistaken" ] || fail "no false positive among 254 addresses"
    sed "77s/.*/$mistaken/" "$WORK/members" >"$WORK/mistaken"
    refused 3 sieve join "$IN_IF" "a=$WORK/other" "m=$WORK/mistaken"
    expect_joined ""
    tac "$WORK/members" >"$WORK/turned"
    sieve -q join "$IN_IF" "a=$WORK/other" "m=$WORK/turned"
    expect_joined "a m"
}

# A set with exceptions is joined; it must come with the same exceptions again.
exceptions() {
    attach
    seq -f '203.0.113.%g' 1 200 >"$WORK/members"
    echo 198.51.100.0/24 >"$WORK/except"
    echo 203.0.113.7 >>"$WORK/except"
    sieve -q load "$IN_IF" "a=$WORK/other,action=pass,kind=xorsat" "m=$WORK/members,except=$WORK/except,kind=xorsat"
    refused 3 sieve join "$IN_IF" "a=$WORK/other" "m=$WORK/members"
    echo 203.0.113.7 >"$WORK/fewer"
    refused 3 sieve -q join "$IN_IF" "a=$WORK/other" "m=$WORK/members,except=$WORK/fewer"
    expect_joined ""
    sieve -q join "$IN_IF" "a=$WORK/other" "m=$WORK/members,except=$WORK/except"
    expect_joined "a m"
    {
        echo "pass udp 203.0.113.7 $IN4 1 2"
        echo "drop udp 203.0.113.8 $IN4 1 2"
        seq -f "pass udp 198.51.100.%g $IN4 1 2" 1 254
    } | verdicts --repeat 1
}

# succeeds ARGUMENTS...: runs xdp-sieve, which says why if it does not succeed.
succeeds() {
    local status=0
    # A command that was killed before may still hold the lock.
    insist sieve "$@" >"$WORK/said" 2>&1 || status=$?
    [ "$status" -eq 0 ] || fail "$1 ended with $status: $(cat "$WORK/said")"
}

# Swaps, removals and joins of the same lists, each killed at some moment in every second turn, while packets flow:
# every verdict is that of the lists.
under_traffic() {
    local i lists=() killed=0
    address_lists 20261122 la 3000 lb 3000 lc 3000 non-members 200
    head -n 500 "$WORK/la" >>"$WORK/lb"
    head -n 500 "$WORK/lb" >>"$WORK/lc"
    {
        head -n 100 "$WORK/la" | sed "s/.*/first drop drop udp & $IN4 1 53/"
        head -n 100 "$WORK/lb" | sed "s/.*/second pass pass udp & $IN4 1 53/"
        sed -n "1000,1099s/.*/third drop drop udp & $IN4 1 53/p" "$WORK/lc"
        sed "s/.*/none pass pass udp & $IN4 1 53/" "$WORK/non-members"
    } >"$WORK/flows"
    lists=("a=$WORK/la,fpr=1e-9" "b=$WORK/lb,fpr=1e-9" "c=$WORK/lc,fpr=1e-9")
    attach
    sieve -q load --join "$IN_IF" "${lists[0]}" "${lists[1]},action=pass" "${lists[2]}"
    start_stream "$WORK/flows" "$WORK/report"
    stream_round
    # cut_off MILLISECONDS COMMAND...: kills the command after that time if it still runs.
    cut_off() {
        local after=$1 status=0
        shift
        inside "$IN" timeout -s KILL "0.$(printf %03d "$after")" "$SIEVE" -q "$@" >/dev/null 2>&1 || status=$?
        if [ "$status" -eq 137 ]; then killed=$((killed + 1)); fi
    }
    for ((i = 0; i < ${JOINS:-12}; i++)); do
        if ((i % 2)); then
            cut_off $((40 + 37 * i % 900)) swap "$IN_IF" "${lists[i % 3]}"
            cut_off $((40 + 53 * i % 900)) join "$IN_IF" "${lists[@]}"
        else
            under_stream succeeds swap "$IN_IF" "${lists[i % 3]}"
            under_stream succeeds join "$IN_IF" "${lists[@]}"
            expect_joined "a b c"
        fi
    done
    echo "$killed commands were killed"
    stop_stream || true
    jq -c '{packets, wrong}' "$WORK/report"
    jq -r '.examples[]' "$WORK/report"
    [ "$(jq .wrong "$WORK/report")" = 0 ] || fail "wrong verdicts"
    [ "$killed" -gt 0 ] || fail "no command was killed"
}

ktap_run \
    "verdicts and counters are those of the sets" as_by_themselves \
    "actions and order may change" actions_and_order \
    "swapped and removed sets" swap_and_remove \
    "sets that are not joined keep their places" others \
    "sixteen sets" sixteen \
    "a change that is taken back" probation \
    "keys that change while a change is on probation" keys_on_probation \
    "keys that end" keys_that_end \
    "sets are joined again" joined_again \
    "a false positive in place of a key" mistaken_key \
    "sets with exceptions" exceptions \
    "swaps and joins under traffic, some of them killed" under_traffic
