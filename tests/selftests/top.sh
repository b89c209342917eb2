#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# The heavy keys: `top` finds known ones, in order, and every count is within the bound of the exact count.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# 300 members. The first three send more packets than the others.
python3 -c 'for i in range(300): print(f"203.0.{113 + i // 250}.{i % 250}")' >"$WORK/feed"
"$SIEVE" -q build --seed 1 -o "$WORK/a.sieve" "$WORK/feed"
image "$WORK/flows.sieve" src,dport "203.0.113.0 53" "203.0.113.7 80"

top() { sieve --json top "$IN_IF" "$@" 2>/dev/null; }

heavy() {
    attach
    sieve -q load "$IN_IF" "a=$WORK/a.sieve,action=drop"
    [ "$(sieve --json status "$IN_IF" | jq '.interfaces[0].tally')" = false ] || fail "counts without being asked"
    verdicts <<<"drop udp 203.0.113.9 $IN4 1 2"
    sieve top "$IN_IF" 2>"$WORK/remarks"
    grep -q 'from now on' "$WORK/remarks" || fail "$(cat "$WORK/remarks")"
    [ "$(sieve --json status "$IN_IF" | jq '.interfaces[0].tally')" = true ] || fail "status does not say it"
    sed "s/.*/drop udp & $IN4 1 2/" "$WORK/feed" | verdicts --repeat 2
    verdicts --repeat 500 <<<"drop udp 203.0.113.0 $IN4 1 2"
    verdicts --repeat 300 <<<"drop udp 203.0.113.1 $IN4 1 3"
    verdicts --repeat 100 <<<"drop tcp 203.0.113.2 $IN4 1 2"
    verdicts --repeat 50 <<<"pass udp 198.18.0.1 $IN4 1 2"
    top -n 5 >"$WORK/top"
    # Exact counts: 2 for each member, and 500, 300, 100 more for the first three. N = 600 + 900. An estimate is never
    # too low, and exceeds the exact count by more than N 4 / 4093 = 1.5 with a chance of 0.4% for each key.
    jq -e '.matches == 1500 and (.keys | length == 5) and
        ([.keys[:3][].key.src] == ["203.0.113.0", "203.0.113.1", "203.0.113.2"]) and
        ([.keys[:3][].packets] | .[0] >= 502 and .[0] <= 503 and .[1] >= 302 and .[1] <= 303 and .[2] >= 102 and
            .[2] <= 103) and
        (.keys[3].packets >= 2 and .keys[3].packets <= 3) and
        (.keys | all(.set == "a" and .key.dst == null and .key.sport == null)) and
        (.error > 1.4 and .error < 1.5) and .error_chance < 0.005' "$WORK/top" >/dev/null || fail "$(cat "$WORK/top")"
    sieve top "$IN_IF" -n 1 | grep -Eq '50[23] +33\.[0-9]+% +a +203.0.113.0$' || fail "$(sieve top "$IN_IF")"
    refused 2 sieve top "$IN_IF" --watch 0.05 --times 0
    top --watch 0.05 --times 2 -n 1 | jq -s -e 'length == 2' >/dev/null || fail "no two rounds"
}

# Two sets that match the same packet each count it, under their own fields.
two_sets() {
    attach
    sieve -q load "$IN_IF" "all=$WORK/a.sieve,action=count" "flows=$WORK/flows.sieve,action=drop"
    top >/dev/null
    verdicts --repeat 7 <<END
drop udp 203.0.113.0 $IN4 1 53
drop tcp 203.0.113.0 $IN4 2 53
pass udp 203.0.113.0 $IN4 1 54
END
    top | jq -e '.matches == 35 and .keys == [
        (.keys[0] | select(.set == "all" and .packets == 21 and .text == "203.0.113.0")),
        (.keys[1] | select(.set == "flows" and .packets == 14 and .text == "203.0.113.0 53"))]' >/dev/null ||
        fail "$(top)"
}

off() {
    attach
    sieve -q load "$IN_IF" "a=$WORK/a.sieve,action=drop"
    refused 1 sieve top "$IN_IF" --off
    # How to switch it off is said of this hook, and works beside another.
    sieve -q load "$IN_IF" --hook ingress "a=$WORK/a.sieve,action=drop"
    sieve top "$IN_IF" --hook ingress 2>"$WORK/err"
    grep -q "until \`xdp-sieve top $IN_IF --hook ingress --off\`" "$WORK/err" || fail "$(cat "$WORK/err")"
    sieve top "$IN_IF" --hook ingress --off
    sieve unload "$IN_IF" --hook ingress
    top >/dev/null
    verdicts <<<"drop udp 203.0.113.9 $IN4 1 2"
    [ "$(top | jq .matches)" = 3 ] || fail "$(top)"
    [ "$(top --reset | jq .matches)" = 0 ] || fail "$(top)"
    verdicts <<<"drop udp 203.0.113.9 $IN4 1 2"
    sieve top "$IN_IF" --off
    [ "$(sieve --json status "$IN_IF" | jq '.interfaces[0].tally')" = false ] || fail "still on"
    verdicts <<<"drop udp 203.0.113.9 $IN4 1 2"
    [ "$(top | jq .matches)" = 0 ] || fail "$(top)"
}

ktap_run \
    "known heavy keys" heavy \
    "keys of two sets" two_sets \
    "off, and from zero" off
