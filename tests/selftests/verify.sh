#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Verification: behind a filter with a false positive rate of one in seven, no verdict is wrong.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# 3,000 members, and 1,500 non-members.
address_lists 20261121 feed 3000 newer 3000 non-members 1500
"$SIEVE" -q build --kind blocked --bits-per-key 4 --seed 5 -o "$WORK/bad.sieve" "$WORK/feed"
"$SIEVE" -q build --kind blocked --bits-per-key 4 --seed 6 -o "$WORK/newer.sieve" "$WORK/newer"

# packets VERDICT FILE: prints one packet from each address.
packets() { sed "s/.*/$1 udp & $IN4 1 2/" "$WORK/$2"; }

# Thousands of packets: sending each once is enough.
all_verdicts() { verdicts --repeat 1 "$@"; }

# avoided_as_expected: the number of false positives that verification avoided must agree with the filter's rate,
# within five sigma.
avoided_as_expected() {
    sieve --json stats "$IN_IF" | jq -e '.interfaces[0].sets[0].verify | . as $v |
        (.non_members == 1500) and (.avoided > 100) and
        ((.avoided - 1500 * .expected_rate) / (1500 * .expected_rate * (1 - .expected_rate) | sqrt)
            | . > -5 and . < 5) and (.rate == .avoided / .non_members)' >/dev/null ||
        fail "$(sieve --json stats "$IN_IF" | jq -c '.interfaces[0].sets[0].verify')"
}

no_false_positive() {
    attach
    # Without verification there are many false positives, or this test shows nothing.
    sieve -q load "$IN_IF" "bad=$WORK/bad.sieve"
    ! packets pass non-members | all_verdicts --patience 0 >"$WORK/wrong" || fail "the filter makes no mistakes"
    [ "$(wc -l <"$WORK/wrong")" -gt 100 ] || fail "only $(wc -l <"$WORK/wrong") non-members matched"
    sieve -q load "$IN_IF" "bad=$WORK/bad.sieve,verify=$WORK/feed"
    { packets drop feed; packets pass non-members; } | all_verdicts
    [ "$(counter 'sets[0].verify.non_members')" = 1500 ] || fail "$(counter 'sets[0].verify')"
    avoided_as_expected
    sieve --json status "$IN_IF" | jq -e '.interfaces[0].sets[0] | .verify and .verify_bytes > 3000 * 16 and
        .verify_bytes < 3000 * 20' >/dev/null || fail "an address takes more than 20 bytes to verify"
    sieve status "$IN_IF" | grep -q 'verified' || fail "status does not say it"
    sieve stats "$IN_IF" | grep -q 'avoided by verifying bad' || fail "stats does not say it"
}

# An allowlist that no non-member gets through.
allowlist() {
    attach
    sieve -q load --default drop "$IN_IF" "friends=$WORK/bad.sieve,action=pass,verify=$WORK/feed"
    { packets pass feed; packets drop non-members; } | all_verdicts
    avoided_as_expected
}

feed_with_itself() {
    sieve -q load "$IN_IF" "bad=$WORK/feed,kind=blocked,bits-per-key=4,verify"
    [ "$(sieve --json status "$IN_IF" | jq '.interfaces[0].sets[0].verify')" = true ] || fail "not verified"
    { packets drop feed; packets pass non-members; } | all_verdicts
    avoided_as_expected
}

# A list of single addresses goes to an exact kind, unless something else is asked for: there is nothing to verify.
addresses_are_exact() {
    attach
    sieve load "$IN_IF" "bad=$WORK/feed,verify" >"$WORK/said" 2>&1
    grep -q 'set bad: kind exact is exact, so its matches need no verification' "$WORK/said" ||
        fail "$(cat "$WORK/said")"
    [ "$(sieve --json status "$IN_IF" | jq -c '.interfaces[0].sets[0] | [.kind, .verify]')" = '["exact",false]' ] ||
        fail "$(sieve --json status "$IN_IF" | jq -c '.interfaces[0].sets[0]')"
    { packets drop feed; packets pass non-members; } | all_verdicts
    sieve swap "$IN_IF" "bad=$WORK/newer,verify" >"$WORK/said" 2>&1
    grep -q 'need no verification' "$WORK/said" || fail "$(cat "$WORK/said")"
    { packets drop newer; packets pass non-members; packets pass feed; } | all_verdicts
}

swap_keeps() {
    attach
    sieve -q load "$IN_IF" "bad=$WORK/bad.sieve,verify=$WORK/feed"
    packets pass non-members | all_verdicts
    refused 2 sieve swap "$IN_IF" "bad=$WORK/newer.sieve"
    sieve -q swap "$IN_IF" "bad=$WORK/newer.sieve,verify=$WORK/newer"
    # The counter starts anew with the new filter.
    [ "$(counter 'sets[0].verify.non_members')" = 0 ] || fail "counted: $(counter 'sets[0].verify')"
    { packets drop newer; packets pass non-members; } | all_verdicts
    avoided_as_expected
    packets pass feed | all_verdicts
    # A feed brings its own exact set.
    sieve -q swap "$IN_IF" "bad=$WORK/feed,kind=blocked"
    [ "$(sieve --json status "$IN_IF" | jq '.interfaces[0].sets[0].verify')" = true ] || fail "no longer verified"
    { packets drop feed; packets pass newer; } | all_verdicts
}

prefixes() {
    printf '%s\n' 203.0.113.0/25 198.18.0.0/20 192.0.2.1 2001:db8:5::/48 >"$WORK/nets"
    attach
    sieve -q load "$IN_IF" "nets=$WORK/nets,verify"
    verdicts <<END
drop udp 203.0.113.127 $IN4 1 2
pass udp 203.0.113.128 $IN4 1 2
drop udp 198.18.15.255 $IN4 1 2
pass udp 198.18.16.0 $IN4 1 2
drop udp 192.0.2.1 $IN4 1 2
pass udp 192.0.2.0 $IN4 1 2
drop udp 2001:db8:5:ffff::1 $IN6 1 2
pass udp 2001:db8:6::1 $IN6 1 2
END
    "$SIEVE" -q build -o "$WORK/nets.sieve" "$WORK/nets"
    sieve -q load "$IN_IF" "nets=$WORK/nets.sieve,verify=$WORK/nets"
    verdicts <<END
drop udp 203.0.113.127 $IN4 1 2
pass udp 203.0.113.128 $IN4 1 2
END
}

# A list with a prefix goes to an exact kind: there is nothing to verify, and the swap goes on.
swap_to_prefixes() {
    attach
    sieve -q load "$IN_IF" "bad=$WORK/feed,kind=blocked,verify"
    echo 203.0.113.0/24 >"$WORK/net"
    sieve -q swap "$IN_IF" "bad=$WORK/net" 2>/dev/null
    verdicts <<END
drop udp 203.0.113.127 $IN4 1 2
pass udp 203.0.114.0 $IN4 1 2
END
    [ "$(sieve --json status "$IN_IF" | jq '.interfaces[0].sets[0].verify')" = false ] || fail "still verified"
    sieve -q swap "$IN_IF" "bad=$WORK/feed,kind=blocked,verify"
    [ "$(sieve --json status "$IN_IF" | jq '.interfaces[0].sets[0].verify')" = true ] || fail "not verified again"
    { packets drop feed; packets pass non-members; } | all_verdicts
}

refusals() {
    local before
    attach
    sieve -q load "$IN_IF" "plain=$WORK/newer.sieve"
    before=$(state)
    refused 2 sieve load "$IN_IF" "bad=$WORK/bad.sieve,verify"
    refused 3 sieve load "$IN_IF" "bad=$WORK/bad.sieve,verify=$WORK/newer"
    head -n 2999 "$WORK/feed" >"$WORK/short"
    refused 3 sieve load "$IN_IF" "bad=$WORK/bad.sieve,verify=$WORK/short"
    refused 3 sieve load "$IN_IF" "bad=$WORK/bad.sieve,verify=$WORK/missing"
    refused 2 sieve swap "$IN_IF" "plain=$WORK/bad.sieve,verify=$WORK/feed"
    refused 2 sieve load "$IN_IF" "bad=$WORK/bad.sieve,verify="
    unchanged "$before"
}

ktap_run \
    "no non-member is dropped, and as many would have been as predicted" no_false_positive \
    "an allowlist without a hole" allowlist \
    "a feed verifies itself" feed_with_itself \
    "a list of addresses needs no verification" addresses_are_exact \
    "a swap keeps verification" swap_keeps \
    "a swap to a list with a prefix" swap_to_prefixes \
    "prefixes" prefixes \
    "lists that do not belong to the image" refusals
