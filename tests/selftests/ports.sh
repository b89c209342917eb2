#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Conditions of a set on ports and protocol, with real packets: what matches, what has no ports, and every command that
# shows, changes or judges a condition.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# shellcheck source=service.sh
. "$here/service.sh"

BAD=203.0.113.1 OTHER=203.0.113.9
printf '%s\n' "$BAD" 2001:db8:a::1 >"$WORK/bad.txt"
printf '%s\n' "$BAD" "$OTHER" >"$WORK/more.txt"

hits() { counter "sets[] | select(.name == \"$1\") | .packets"; }
map_of() { sieve --json status "$IN_IF" | jq -r ".interfaces[0].sets[] | select(.name == \"$1\").map_id"; }
shows() { grep -Eq -- "$1" "$WORK/out" || fail "no /$1/ in: $(cat "$WORK/out")"; }

# One list, whatever its number of addresses, and ports of any protocol that has some.
ports_and_ranges() {
    sieve -q load "$IN_IF" "bad=$WORK/bad.txt,dport=22,443,8000-8100"
    verdicts --repeat 1 <<END
drop tcp $BAD $IN4 1 22
drop udp $BAD $IN4 1 22
drop sctp $BAD $IN4 1 443
drop tcp $BAD $IN4 1 8000
drop tcp $BAD $IN4 1 8100
drop tcp 2001:db8:a::1 $IN6 1 22
drop tcp $BAD $IN4 1 22 vlan=7
pass tcp $BAD $IN4 1 21
pass tcp $BAD $IN4 1 23
pass tcp $BAD $IN4 1 7999
pass tcp $BAD $IN4 1 8101
pass tcp $BAD $IN4 22 80
pass tcp 2001:db8:a::1 $IN6 1 80
pass tcp $OTHER $IN4 1 22
END
    [ "$(hits bad)" = 7 ] || fail "$(hits bad) hits instead of 7"
}

# All fields that are named must fit, and the order of the options means nothing.
ports_and_protocol() {
    sieve -q load "$IN_IF" "bad=$WORK/bad.txt,proto=tcp,sctp,dport=22,action=drop,sport=1024-65535"
    verdicts --repeat 1 <<END
drop tcp $BAD $IN4 1024 22
drop sctp $BAD $IN4 65535 22
pass udp $BAD $IN4 1024 22
pass tcp $BAD $IN4 1023 22
pass tcp $BAD $IN4 1024 23
END
    sieve -q load "$IN_IF" "bad=$WORK/bad.txt,proto=icmp,47"
    verdicts --repeat 1 <<END
drop icmp $BAD $IN4
drop 47 $BAD $IN4
pass tcp $BAD $IN4 1 22
END
}

# A packet without ports meets no condition on ports, not even one that lists them all: ICMP, later fragments.
without_ports() {
    sieve -q load "$IN_IF" "bad=$WORK/bad.txt,dport=0-65535"
    verdicts --repeat 1 <<END
drop udp $BAD $IN4 1 65535
drop udp $BAD $IN4 1 0
pass udp $BAD $IN4 fragment
pass icmp $BAD $IN4
pass 47 $BAD $IN4
END
    # The protocol of a fragment is known.
    sieve -q load "$IN_IF" "bad=$WORK/bad.txt,proto=udp"
    verdicts --repeat 1 <<END
drop udp $BAD $IN4 fragment
pass tcp $BAD $IN4 fragment
END
}

# A set whose condition a packet does not meet leaves it to the next set, alone or joined.
sets_in_order() {
    local join
    for join in "" --join; do
        # shellcheck disable=SC2086 # none or one word
        sieve -q load $join --default drop "$IN_IF" "ssh=$WORK/bad.txt,dport=22,action=pass" \
            "watch=$WORK/more.txt,dport=25,action=count" "web=$WORK/more.txt,dport=80,443,proto=tcp,action=pass" \
            --replies drop
        expect_joined "${join:+ssh watch web}"
        verdicts --repeat 1 <<END
pass tcp $BAD $IN4 1 22
drop tcp $OTHER $IN4 1 22
pass tcp $BAD $IN4 1 443
pass tcp $OTHER $IN4 1 80
drop udp $OTHER $IN4 1 80
drop tcp $OTHER $IN4 1 25
drop icmp $BAD $IN4
END
        [ "$(hits ssh)/$(hits watch)/$(hits web)" = 1/1/2 ] || fail "hits $(hits ssh)/$(hits watch)/$(hits web)"
    done
}

at_other_hooks() {
    sieve -q load "$IN_IF" --hook ingress "bad=$WORK/bad.txt,dport=22"
    # The receiver stands before tc, so the counters tell.
    verdicts --repeat 1 <<END
pass tcp $BAD $IN4 1 22
pass tcp $BAD $IN4 1 80
END
    [ "$(counter_at ingress 'dropped.packets')/$(counter_at ingress 'sets[0].packets')" = 1/1 ] ||
        fail "$(sieve stats "$IN_IF" --hook ingress)"
    sieve -q unload "$IN_IF" --hook ingress
    sieve -q load "$IN_IF" --hook egress "c2=$WORK/bad.txt,key=dst,dport=443"
    verdicts --repeat 1 --sender-drops --from "$IN/$IN_IF" --to "$OUT/$OUT_IF" <<END
drop tcp $IN4 $BAD 1 443
pass tcp $IN4 $BAD 443 80
END
    sieve -q unload "$IN_IF" --hook egress
}

# Another condition comes in place: the filter stays, the counters start anew.
in_place() {
    local map
    sieve -q load "$IN_IF" "bad=$WORK/bad.txt,dport=22"
    map=$(map_of bad)
    verdicts --repeat 1 <<<"drop tcp $BAD $IN4 1 22"
    sieve set "$IN_IF" bad dport=80,443 proto=tcp >"$WORK/out"
    shows 'bad: drop,dport=80,443,proto=tcp, was drop,dport=22; its counters start at zero'
    [ "$(map_of bad)" = "$map" ] || fail "another filter"
    verdicts --repeat 1 <<END
pass tcp $BAD $IN4 1 22
drop tcp $BAD $IN4 1 443
pass udp $BAD $IN4 1 443
END
    [ "$(hits bad)" = 1 ] || fail "$(hits bad) hits instead of 1"
    sieve set "$IN_IF" bad dport=443,80 | grep -q 'nothing to change' || fail "the same ports in another order"
    # What else is changed leaves it alone.
    sieve -q swap "$IN_IF" "bad=$WORK/more.txt"
    sieve -q set "$IN_IF" bad action=count
    sieve -q add "$IN_IF" "first=$WORK/bad.txt,proto=icmp" first
    sieve --json status "$IN_IF" | jq -e '.interfaces[0].sets | .[0].proto == ["icmp"] and .[1].dport == ["80", "443"]
        and .[1].proto == ["tcp"] and .[1].action == "count" and (.[1] | has("sport") | not)' >/dev/null ||
        fail "$(sieve --json status "$IN_IF")"
    sieve -q set "$IN_IF" bad action=drop dport=any proto=any
    verdicts --repeat 1 <<END
drop udp $OTHER $IN4 1 22
drop icmp $OTHER $IN4
END
    sieve --json status "$IN_IF" | jq -e '.interfaces[0].sets[1] | has("dport") or has("proto") | not' >/dev/null ||
        fail "$(sieve --json status "$IN_IF")"
}

shown_everywhere() {
    sieve load "$IN_IF" "bad=$WORK/bad.txt,dport=22,8000-8100,proto=tcp" >"$WORK/out"
    shows 'drop,dport=22,8000-8100,proto=tcp'
    sieve status "$IN_IF" >"$WORK/out"
    shows 'drop,dport=22,8000-8100,proto=tcp'
    sieve stats "$IN_IF" >"$WORK/out"
    shows 'drop,dport=22,8000-8100,proto=tcp'
    sieve --json stats "$IN_IF" | jq -e '.interfaces[0].sets[0] | .dport == ["22", "8000-8100"] and
        .proto == ["tcp"] and .action == "drop"' >/dev/null || fail "$(sieve --json stats "$IN_IF")"
    # The address is in the list, and what becomes of it depends on the packet.
    sieve -q query "$IN_IF" "$BAD" >"$WORK/out" || fail "not in the list: $(cat "$WORK/out")"
    sieve explain "$IN_IF" "$BAD" >"$WORK/out"
    shows 'no set decides, so the default does \(pass\)'
    shows 'unless the packet has dport=22,8000-8100,proto=tcp: then set bad decides \(drop\)'
    sieve explain --key src,dport,proto "$IN_IF" "$BAD 8050 tcp" >"$WORK/out"
    shows 'set bad decides \(drop,dport'
    sieve explain --key src,dport,proto "$IN_IF" "$BAD 80 tcp" >"$WORK/out"
    shows 'no set decides'
    shows 'holds the key, but only for other packets'
    sieve --json explain --key src,dport "$IN_IF" "$BAD 22" >"$WORK/out"
    jq -e '.set == null and .unless == ["bad"] and (.sets[0] | .matched and .condition_met == "perhaps" and
        .condition == "dport=22,8000-8100,proto=tcp")' "$WORK/out" >/dev/null || fail "$(cat "$WORK/out")"
}

# A session is the packets of its own ports.
lockout() {
    local port
    varies+=(port)
    tcp "$OUT" "$IN" "$IN4"
    port=$(inside "$IN" ss -Htn state established | awk '{ print $3 }' | sed -n 's/.*://p' | head -n 1)
    printf '%s\n' "$OUT4" >"$WORK/peer.txt"
    refused 3 sieve load "$IN_IF" "bad=$WORK/peer.txt,dport=$port" --admin-ports "$port"
    refused 3 sieve load "$IN_IF" "bad=$WORK/peer.txt,dport=1-65535" --admin-ports "$port"
    sieve -q load "$IN_IF" "bad=$WORK/peer.txt,dport=$((port ^ 1))" --admin-ports "$port"
    refused 3 sieve set "$IN_IF" bad "dport=$port" --admin-ports "$port"
    refused 3 sieve set "$IN_IF" bad dport=any --admin-ports "$port"
    # An allowlist for other ports lets no session in.
    refused 3 sieve load "$IN_IF" "good=$WORK/peer.txt,dport=$((port ^ 1))" --default drop --admin-ports "$port"
    sieve -q load "$IN_IF" "good=$WORK/peer.txt,dport=$port" --default drop --admin-ports "$port"
    end_tcp
}

configured() {
    local map
    fresh_lists '' 'dport = [22, "8000-8100"]
proto = "tcp"'
    sieve -q apply "$CONFIG"
    map=$(map_of bad)
    verdicts --repeat 1 <<END
drop tcp $MEMBER $IN4 1 22
pass tcp $MEMBER $IN4 1 80
pass udp $MEMBER $IN4 1 22
END
    [ "$(sieve apply "$CONFIG")" = "nothing to do" ] || fail "$(sieve apply "$CONFIG")"
    configure '' 'dport = 80
proto = "tcp"'
    sieve apply "$CONFIG" >"$WORK/out"
    if grep -q 'new filter' "$WORK/out"; then fail "built again: $(cat "$WORK/out")"; fi
    [ "$(map_of bad)" = "$map" ] || fail "another filter"
    verdicts --repeat 1 <<END
pass tcp $MEMBER $IN4 1 22
drop tcp $MEMBER $IN4 1 80
END
    configure
    sieve -q apply "$CONFIG"
    judged
    configure '' 'dport = "ssh"'
    refused 3 sieve apply "$CONFIG"
}

mistakes() {
    refused 2 sieve load "$IN_IF" "bad=$WORK/bad.txt,dport=ssh"
    refused 2 sieve load "$IN_IF" "bad=$WORK/bad.txt,dport=443-22"
    refused 2 sieve load "$IN_IF" "bad=$WORK/bad.txt,dport=1,3,5,7,9,11,13,15,17"
    refused 2 sieve load "$IN_IF" "bad=$WORK/bad.txt,dport=22,dport=80"
    refused 2 sieve load "$IN_IF" "bad=$WORK/bad.txt,proto=tpc"
    refused 2 sieve load "$IN_IF" "bad=$WORK/bad.txt,proto=icmp,dport=8"
    [ -z "$(program_id)" ] || fail "attached"
    sieve -q load "$IN_IF" "bad=$WORK/bad.txt,dport=22"
    refused 2 sieve set "$IN_IF" bad proto=icmp
    refused 2 sieve set "$IN_IF" bad sport=
    verdicts --repeat 1 <<<"drop tcp $BAD $IN4 1 22"
}

ktap_run \
    "ports and ranges of them" ports_and_ranges \
    "ports and protocol together" ports_and_protocol \
    "packets without ports" without_ports \
    "sets are asked in order, alone and joined" sets_in_order \
    "at tc's hooks" at_other_hooks \
    "set changes a condition in place" in_place \
    "every command shows it" shown_everywhere \
    "sessions on other ports are not locked out" lockout \
    "the configuration's keys" configured \
    "mistakes are named" mistakes
