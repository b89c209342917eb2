#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Exceptions: what `except` lists is never hit, in images, in sets built on the way, and in verified sets. Key ranges:
# an address among several fields may be a prefix. What is in force, and how lists and images differ.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# 3,000 members; 1,500 non-members, of which 300 are exceptions, with 20 members.
address_lists 20261122 feed 3000 non-members 1500
{ head -n 300 "$WORK/non-members"; head -n 20 "$WORK/feed"; } >"$WORK/partners"
tail -n +21 "$WORK/feed" >"$WORK/members"

# packets VERDICT FILE: prints one packet from each address.
packets() { sed "s/.*/$1 udp & $IN4 1 2/" "$WORK/$2"; }

# At 9 bits a key (0.25% false positives) two filters have to be built, on average, until none of 300 matches.
no_exception_matches() {
    attach
    sieve build --json --bits-per-key 9 --except "$WORK/partners" -o "$WORK/bad.sieve" "$WORK/feed" \
        >"$WORK/built.json" 2>"$WORK/said"
    grep -q '20 exceptions were on the list and were taken out' "$WORK/said" || fail "$(cat "$WORK/said")"
    jq -e '.keys == 2980 and .exceptions == 320 and .excluded == 320 and .tries >= 1' "$WORK/built.json" >/dev/null ||
        fail "$(cat "$WORK/built.json")"
    sieve --json inspect "$WORK/bad.sieve" | jq -e '.exceptions == 320 and .excluded == 320' >/dev/null
    sieve inspect "$WORK/bad.sieve" | grep -q '^exceptions *320, checked with 320 questions: none matches'
    sieve load --json "$IN_IF" "bad=$WORK/bad.sieve" |
        jq -e '.sets[0].preflight.exceptions == 320' >/dev/null || fail "the preflight did not ask"
    { packets pass partners; packets drop members; } | verdicts --repeat 1
}

# A real list at 16 bits a key: some of a thousand would match (2.5e-4 each), and none does, in user space and in the
# kernel.
a_thousand_on_a_real_list() {
    local key count
    address_lists 20261125 strangers 980
    sed -n 's/^\([0-9][0-9.]*\).*/\1/p' "$DATA/ipsum.txt" | sort -u >"$WORK/ipsum"
    { cat "$WORK/strangers"; awk 'NR % 5000 == 1' "$WORK/ipsum" | head -n 20; } | sort -u >"$WORK/thousand"
    count=$(wc -l <"$WORK/thousand")
    [ "$count" -eq 1000 ] || fail "$count exceptions"
    sort -u "$WORK/ipsum" | comm -23 - "$WORK/thousand" | awk 'NR % 300 == 7' >"$WORK/some"
    sieve build --json --kind blocked --bits-per-key 16 --except "$WORK/thousand" -o "$WORK/ipsum.sieve" \
        "$DATA/ipsum.txt" >"$WORK/built.json" 2>"$WORK/said"
    for key in exceptions excluded; do
        [ "$(jq ".$key" "$WORK/built.json")" = "$count" ] || fail "$key: $(cat "$WORK/built.json")"
    done
    jq -e '.tries >= 1 and .seconds > 0' "$WORK/built.json" >/dev/null || fail "$(cat "$WORK/built.json")"
    sieve query "$WORK/ipsum.sieve" --stdin <"$WORK/thousand" >"$WORK/answers" || [ $? -eq 1 ]
    [ "$(grep -c ' absent$' "$WORK/answers")" = "$count" ] || fail "$(grep ' present$' "$WORK/answers")"
    sieve load --json "$IN_IF" "bad=$WORK/ipsum.sieve" | jq -e ".sets[0].preflight.exceptions == $count" >/dev/null ||
        fail "the preflight did not ask"
    { packets pass thousand; packets drop some; } | verdicts --repeat 1
}

sets_take_exceptions() {
    sieve -q load "$IN_IF" "bad=$WORK/feed,bits-per-key=9,except=$WORK/partners" 2>/dev/null
    { packets pass partners; packets drop members; } | verdicts --repeat 1
    sieve -q swap "$IN_IF" "bad=$WORK/feed,except=$WORK/partners" 2>/dev/null
    { packets pass partners; packets drop members; } | verdicts --repeat 1
}

# A whole network, at a rate at which the filter alone could not exclude it.
verified_sets_exclude_networks() {
    echo 10.0.0.0/8 >"$WORK/network"
    { echo 10.1.2.3; cat "$WORK/members"; } >"$WORK/mixed"
    refused 2 sieve -q load "$IN_IF" "bad=$WORK/mixed,kind=blocked,except=$WORK/network"
    echo 10.0.0.0/7 >"$WORK/networks"
    refused 2 sieve -q load "$IN_IF" "bad=$WORK/mixed,kind=blocked,except=$WORK/networks"
    # An exact kind has nothing to ask.
    sieve -q load "$IN_IF" "bad=$WORK/mixed,except=$WORK/network" 2>/dev/null
    { echo "pass udp 10.1.2.3 $IN4 1 2"; packets drop members; packets pass non-members; } | verdicts --repeat 1
    sieve -q load "$IN_IF" "bad=$WORK/mixed,verify,bits-per-key=4,except=$WORK/network" 2>/dev/null
    { echo "pass udp 10.1.2.3 $IN4 1 2"; packets drop members; packets pass non-members; } | verdicts --repeat 1
    # An image knows its exceptions: the feed that it was built from verifies it.
    sieve -q build --bits-per-key 9 --except "$WORK/partners" -o "$WORK/bad.sieve" --force "$WORK/feed" 2>/dev/null
    sieve -q load "$IN_IF" "bad=$WORK/bad.sieve,verify=$WORK/feed"
    { packets pass partners; packets drop members; packets pass non-members; } | verdicts --repeat 1
}

# draw SEED: writes a random list of addresses, prefixes and ranges, random exceptions, and how packets from
# 203.0.113.0/24 are to be judged. The list keeps a range, so that the set is exact.
draw() {
    python3 - "$WORK" "$IN4" "$1" <<'END'
import random, sys
work, to, seed = sys.argv[1:]
dice = random.Random(int(seed))

def some(entries, most_bits):
    lines, held = [], set()
    for _ in range(entries):
        first = last = dice.randrange(16, 256)
        text = f"203.0.113.{first}"
        form = dice.randrange(3)
        if form == 1:
            last = min(255, first + dice.randrange(1, 40))
            text += f"-203.0.113.{last}"
        elif form == 2:
            bits = dice.randrange(most_bits + 1)
            first &= ~(2**bits - 1)
            last = first + 2**bits - 1
            text = f"203.0.113.{first}/{32 - bits}"
        lines.append(text)
        held.update(range(first, last + 1))
    return lines, held

listed, members = some(2 + dice.randrange(12), 6)
excepted, others = some(dice.randrange(10), 4)
with open(f"{work}/drawn", "w") as out: out.writelines(f"{line}\n" for line in ["203.0.113.0-203.0.113.9", *listed])
with open(f"{work}/drawn-except", "w") as out: out.writelines(f"{line}\n" for line in excepted)
members = (members | set(range(10))) - others
with open(f"{work}/drawn-verdicts", "w") as out:
    for address in range(256):
        out.write(f"{'drop' if address in members else 'pass'} udp 203.0.113.{address} {to} 1 2\n")
END
}
drawn_judged() { verdicts --repeat 1 <"$WORK/drawn-verdicts"; }

# Whatever builds the set: the exceptions are no members, and the others are.
lists_of_prefixes_take_exceptions() {
    local seed except="except=$WORK/drawn-except"
    cat >"$WORK/drawn.toml" <<END
[service]
state-directory = "$WORK/drawn-state"
[[interface]]
name = "$IN_IF"
sets = ["bad"]
[set.bad]
sources = ["drawn"]
except = "drawn-except"
guards = { most-shrink = 1, most-growth = 1000 }
END
    for seed in 1 2 3; do
        reset_interfaces
        attach
        draw "$seed"
        sieve -q build --force --except "$WORK/drawn-except" -o "$WORK/drawn.sieve" "$WORK/drawn" 2>/dev/null
        sieve -q load "$IN_IF" "bad=$WORK/drawn.sieve" 2>/dev/null
        drawn_judged
        sieve -q load "$IN_IF" "bad=$WORK/drawn,verify,$except" 2>/dev/null
        drawn_judged
        draw "2$seed"
        sieve -q swap "$IN_IF" "bad=$WORK/drawn,$except" 2>/dev/null
        drawn_judged
        draw "3$seed"
        sieve -q apply "$WORK/drawn.toml" 2>/dev/null
        drawn_judged
    done
    # Exceptions that leave one address of a range.
    echo 203.0.113.0/24 >"$WORK/drawn"
    echo 203.0.113.1-203.0.113.255 >"$WORK/drawn-except"
    sieve -q apply "$WORK/drawn.toml" 2>/dev/null
    verdicts --repeat 1 <<END
drop udp 203.0.113.0 $IN4 1 2
pass udp 203.0.113.1 $IN4 1 2
END
}

key_ranges() {
    cat >"$WORK/services" <<END
192.0.2.0/24          443 tcp
198.51.100.7-198.51.100.9  * udp
2001:db8::/32         53  udp
END
    sieve build --key dst,dport,proto -o "$WORK/services.sieve" "$WORK/services" | grep '^probes' >"$WORK/probes"
    grep -q 'IPv4: dst proto, dst/24 dport proto; IPv6: dst/32 dport proto$' "$WORK/probes" ||
        fail "$(cat "$WORK/probes")"
    sieve query "$WORK/services.sieve" "192.0.2.77 443 tcp" "198.51.100.8 9 udp" "2001:db8:1::1 53 udp" >/dev/null
    local status=0
    sieve -q query "$WORK/services.sieve" "192.0.3.1 443 tcp" || status=$?
    [ "$status" -eq 1 ] || fail "a stranger is present"
    echo "$IN4/31 2 udp" >"$WORK/here"
    sieve -q load "$IN_IF" "bad=$WORK/here,key=dst,dport,proto"
    verdicts --repeat 1 <<END
drop udp 192.0.2.1 $IN4 1 2
pass udp 192.0.2.1 $IN4 1 3
END
}

wide_and_crooked_lists() {
    echo 0.0.0.0/0 >"$WORK/route"
    refused 3 sieve build -o "$WORK/x.sieve" "$WORK/route"
    sieve -q build --allow-wide -o "$WORK/route.sieve" "$WORK/route"
    printf '8000::/1\n192.0.2.1\n' >"$WORK/half"
    sieve -q build -o "$WORK/half.sieve" "$WORK/half"
    refused 3 sieve load "$IN_IF" "bad=$WORK/route"
    # Addresses drawn at random that a wide list holds are no false positives.
    echo 16.0.0.0/4 >"$WORK/wide"
    sieve load "$IN_IF" "bad=$WORK/wide" >"$WORK/said" 2>/dev/null
    grep -Eq 'of 4,096 random keys are members and did \(256 expected\)$' "$WORK/said" || fail "$(cat "$WORK/said")"
    sieve -q unload "$IN_IF"
    printf '192.0.2.77/24\n10.0.0.1\n2001:db8::1/32\n' >"$WORK/crooked"
    refused 3 sieve build -o "$WORK/x.sieve" "$WORK/crooked"
    sieve -q build --host-bits mask -o "$WORK/crooked.sieve" "$WORK/crooked" 2>"$WORK/said"
    sieve build --host-bits mask -o "$WORK/crooked.sieve" "$WORK/crooked" 2>"$WORK/said" >/dev/null
    grep -q '2 prefixes had bits set behind the length' "$WORK/said" || fail "$(cat "$WORK/said")"
    sieve -q query "$WORK/crooked.sieve" 192.0.2.1 192.0.2.255 2001:db8:ffff::1 10.0.0.1
    printf '192.0.2.1\n' >"$WORK/bad-lines"
    for i in $(seq 20); do echo "x$i"; done >>"$WORK/bad-lines"
    sieve build --skip-invalid --skipped "$WORK/skipped" -o "$WORK/some.sieve" "$WORK/bad-lines" \
        >/dev/null 2>"$WORK/said"
    [ "$(wc -l <"$WORK/skipped")" -eq 21 ] || fail "$(cat "$WORK/skipped")"
    grep -q 'bad-lines:21: found "x20"' "$WORK/skipped" || fail "$(cat "$WORK/skipped")"
    ! grep -q 'found "x' "$WORK/said" || fail "$(cat "$WORK/said")"
}

# What is in force, and why.
explanations() {
    printf '192.0.2.1\n192.0.2.0/30\n' >"$WORK/few"
    echo "198.51.100.1 53 udp" >"$WORK/flows"
    printf '%s\n' 198.51.100.77 >"$WORK/odd"
    # The list of prefixes makes an exact set, and the single address is to be a filter.
    sieve -q load "$IN_IF" "seen=$WORK/few,action=count" "flows=$WORK/flows,key=src,dport,proto,action=pass" \
        "bad=$WORK/few" "odd=$WORK/odd,kind=xorsat,seed=1,limit=7/9" 2>/dev/null
    local before
    before=$(sieve --json stats "$IN_IF" | jq '.interfaces[0].sets')
    sieve explain "$IN_IF" 192.0.2.1 --feed "$WORK/few" >"$WORK/said"
    grep -q "set bad decides (drop)" "$WORK/said" || fail "$(cat "$WORK/said")"
    grep -q "the key is a member: $WORK/few:1" "$WORK/said" || fail "$(cat "$WORK/said")"
    grep -q "unless set flows matches first: the key lacks its dport,proto" "$WORK/said" || fail "$(cat "$WORK/said")"
    echo 203.0.113.9 >"$WORK/other"
    sieve --json explain "$IN_IF" 198.51.100.77 --feed "$WORK/other" |
        jq -e '.reason == "false_positive" and .set == "odd" and .action == "limit=7/9" and
            (.sets | map(.matched)) == [false, false, false, true]' >/dev/null ||
        fail "a match that the list does not have"
    sieve --json explain "$IN_IF" 198.51.100.77 | jq -e '.reason == "unknown"' >/dev/null
    sieve --json explain "$IN_IF" 192.0.2.3 |
        jq -e '.reason == "member" and .set == "bad" and (.sets | map(.matched)) == [true, false, true, false]' \
            >/dev/null || fail "an exact set's match"
    sieve explain "$IN_IF" 192.0.2.3 --feed "$WORK/other" >"$WORK/said"
    grep -q 'kind ranges is exact, but the list does not have it: the list has changed' "$WORK/said" ||
        fail "$(cat "$WORK/said")"
    local status=0
    sieve --json query "$IN_IF" 203.0.113.9 >"$WORK/said" || status=$?
    [ "$status" -eq 1 ] || fail "exit code $status"
    jq -e '.results[0] | .set == null and .reason == "default" and .action == "pass"' "$WORK/said" >/dev/null
    sieve explain "$IN_IF" "198.51.100.1 53 udp" | grep -q 'set flows decides (pass)'
    [ "$(sieve --json stats "$IN_IF" | jq '.interfaces[0].sets')" = "$before" ] || fail "asking was counted"
    sieve -q build -o "$WORK/few.sieve" --force "$WORK/few"
    sieve query "$WORK/few.sieve" 192.0.2.3 --feed "$WORK/few" | grep -q "present: $WORK/few:2"
    sieve query --feed "$WORK/other" --feed="$WORK/few" "$WORK/few.sieve" 192.0.2.3 |
        grep -q "present: $WORK/few:2"
    sieve query "$WORK/few.sieve" 192.0.2.3 --feed "$WORK/other" |
        grep -q 'present: a member, but the list does not have it'
    sieve -q build --kind blocked -o "$WORK/few.sieve" --force "$WORK/few"
    sieve query "$WORK/few.sieve" 192.0.2.3 --feed "$WORK/other" | grep -q 'present: a false positive'
    # Of a set of several lists, one does not tell.
    sieve -q swap "$IN_IF" "bad=$WORK/few,feed=$WORK/other" 2>/dev/null
    sieve explain "$IN_IF" 203.0.113.9 --feed "$WORK/few" >"$WORK/said"
    grep -q 'no list that was given has it, and the set was built of .*/few .*/other$' "$WORK/said" ||
        fail "$(cat "$WORK/said")"
    refused 3 sieve explain "$IN_IF" friend
    refused 3 sieve query "$IN_IF" friend
    # What a refusal says to write is a key of the sets.
    refused 3 sieve explain "$IN_IF" 198.51.100.77 80
    refused 2 sieve explain "$IN_IF" 198.51.100.1 53 udp
}

differences() {
    printf '192.0.2.1\n10.0.0.0/24\n' >"$WORK/old"
    printf '10.0.0.0/25\n192.0.2.9\n' >"$WORK/new"
    local status=0
    sieve diff "$WORK/old" "$WORK/new" >"$WORK/said" || status=$?
    [ "$status" -eq 1 ] || fail "exit code $status"
    [ "$(cat "$WORK/said")" = "$(printf -- '- 192.0.2.1\n- 10.0.0.128/25\n+ 192.0.2.9')" ] || fail "$(cat "$WORK/said")"
    cp "$WORK/old" "$WORK/copy"
    sieve diff "$WORK/old" "$WORK/copy" || fail "equal lists differ"
    sieve -q build --seed 1 -o "$WORK/old.sieve" "$WORK/old"
    sieve -q build --seed 1 --bits-per-key 20 -o "$WORK/new.sieve" "$WORK/new"
    status=0
    sieve --json diff "$WORK/old.sieve" "$WORK/new.sieve" >"$WORK/said" || status=$?
    [ "$status" -eq 1 ] || fail "exit code $status"
    jq -e '.changed | has("built from")' "$WORK/said" >/dev/null || fail "$(cat "$WORK/said")"
    refused 2 sieve diff "$WORK/old.sieve" "$WORK/new"
}

refusals() {
    printf '192.0.2.1\nx\n' >"$WORK/broken"
    refused 3 sieve build --except "$WORK/broken" -o "$WORK/x.sieve" "$WORK/feed"
    refused 3 sieve -q build --except "$WORK/feed" -o "$WORK/x.sieve" "$WORK/feed-copy"
    refused 2 sieve build --except - -o "$WORK/x.sieve" - <"$WORK/feed"
    refused 2 sieve build --kind ddlcbf --except "$WORK/partners" -o "$WORK/x.sieve" "$WORK/members"
    refused_with 2 'a rate of [0-9.e-]+, which takes [0-9]+ bits per key' \
        sieve build --bits-per-key 4 --except "$WORK/non-members" -o "$WORK/x.sieve" "$WORK/members"
    refused 2 sieve load "$IN_IF" "bad=$WORK/bad.sieve,except=$WORK/partners"
    printf '192.0.2.1 * tcp\n192.0.2.2 443 *\n* 53 udp\n' >"$WORK/open"
    refused 3 sieve build --max-probes 2 --key dst,dport,proto -o "$WORK/x.sieve" "$WORK/open"
    echo '* * *' >"$WORK/all"
    refused 3 sieve build --key dst,dport,proto -o "$WORK/x.sieve" "$WORK/all"
    echo '192.0.2.1/24 443 tcp' >"$WORK/host"
    refused 3 sieve build --key dst,dport,proto -o "$WORK/x.sieve" "$WORK/host"
    [ ! -e "$WORK/x.sieve" ] || fail "a refused build left an image"
}
cp "$WORK/feed" "$WORK/feed-copy"

ktap_run \
    "none of 320 exceptions matches" no_exception_matches \
    "none of a thousand exceptions matches a real list" a_thousand_on_a_real_list \
    "sets built on the way take exceptions" sets_take_exceptions \
    "verified sets exclude networks" verified_sets_exclude_networks \
    "lists of prefixes take exceptions" lists_of_prefixes_take_exceptions \
    "keys with prefixes and open fields" key_ranges \
    "wide lists, host bits, skipped lines" wide_and_crooked_lists \
    "explain and query an interface" explanations \
    "diff lists and images" differences \
    "lists that cannot be had" refusals
