#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# No packet that the stack delivers from a listed source gets past the filter: packets in known disguises, and random
# frames. The stack is the oracle (stack.py); each frame is first sent without a filter.
#
#     FRAMES=1000000 SEED=7 tests/selftests/stack.sh      more random frames than `make check` sends, and different ones
#     TIME=600 SEED=7 tests/selftests/stack.sh            ten minutes of random frames in each mode
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
: "${FRAMES:=4000}" "${SEED:=1}"
amount=(--frames "$FRAMES")
[ -z "${TIME:-}" ] || amount=(--seconds "$TIME")
"$here/stack.py" feeds "$WORK"
"$SIEVE" -q build --key src -o "$WORK/hosts.sieve" "$WORK/hosts"
"$SIEVE" -q build --key src,dport -o "$WORK/ports.sieve" "$WORK/ports"

# fresh [MTU]: makes new namespaces, so that no fragment of another test waits for its rest.
fresh() {
    make_namespaces
    make_link "$@"
    ipv6_up
    inside "$IN" sysctl -qw net.ipv4.conf.all.rp_filter=0 "net.ipv4.conf.$IN_IF.rp_filter=0"
}

against_stack() {
    "$here/stack.py" "$@" --from "$OUT/$OUT_IF" --to "$IN/$IN_IF" --to-address "$IN4" --to-address "$IN6"
}

load_lists() { sieve -q load "$IN_IF" "hosts=$WORK/hosts.sieve" "ports=$WORK/ports.sieve" "$@"; }

# One random run. Frames that got past the filter are kept in the build folder.
frames() {
    local name=$1
    shift
    against_stack random "${amount[@]}" --seed "$SEED" --pcap "$BUILD/stack-$name-$SEED.pcap" "$@"
}

known_unfiltered() {
    fresh
    against_stack known
}

# known_filtered OPTION...: the arguments are options of `load`.
known_filtered() {
    fresh
    load_lists "$@"
    against_stack known --filtered
    [ "$(sieve --json stats "$IN_IF" | jq '.interfaces[0].unreadable.reasons | .deep_vlan, .long_chain' |
        sort -un | head -1)" -gt 0 ] || fail "nothing was unreadable: $(sieve stats "$IN_IF")"
    sieve stats "$IN_IF"
}
known_native() { known_filtered -m native; }
known_skb() { known_filtered -m skb; }
known_ingress() { known_filtered --hook ingress; }

# With --unreadable pass, packets that the parser cannot read pass, and nothing else.
known_passed() {
    local delivered
    fresh
    load_lists --unreadable pass
    [ "$(sieve --json status "$IN_IF" | jq -r '.interfaces[0].unreadable.action')" = pass ] || fail "status"
    against_stack known --filtered >"$WORK/passed" && fail "--unreadable pass has no effect"
    delivered=$(grep '^delivered' "$WORK/passed")
    echo "$delivered"
    if grep -Evq 'behind (65|200) tags|behind (65|150) extension headers|in the second fragment' <<<"$delivered"; then
        fail "more than that was delivered"
    fi
    grep -q 'behind 65 tags' <<<"$delivered" || fail "65 tags were not passed"
}

random_unfiltered() {
    fresh
    frames none
}

random_filtered() {
    local name=$1
    shift
    fresh
    load_lists "$@"
    frames "$name" --filtered
    sieve stats "$IN_IF"
}
random_native() { random_filtered native -m native; }
random_skb() { random_filtered skb -m skb; }
random_ingress() { random_filtered ingress --hook ingress; }

# Headers in later buffers of a jumbo frame, which direct access does not reach.
random_jumbo() {
    fresh 9000
    frames jumbo-none --longest 9000
    load_lists -m native
    [ "$(sieve --json status "$IN_IF" | jq -r '.interfaces[0].program')" = xdp_sieve_frags ] ||
        skip "no jumbo frames with a program here"
    fresh 9000
    load_lists -m native
    frames jumbo --longest 9000 --filtered
    sieve stats "$IN_IF"
}

# big_packets INTERFACE: lets TCP hand it more than 64 KiB at once. iproute2 6.1 lacks the attribute for IPv4.
big_packets() {
    inside "$OUT" python3 - "$1" 100000 <<'END'
import socket, struct, sys
IFLA_GSO_MAX_SIZE, IFLA_GSO_IPV4_MAX_SIZE, RTM_NEWLINK, NLM_F_REQUEST_ACK = 41, 63, 16, 5
link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
for attribute in IFLA_GSO_MAX_SIZE, IFLA_GSO_IPV4_MAX_SIZE:
    body = struct.pack("BxHiII", 0, 0, socket.if_nametoindex(sys.argv[1]), 0, 0)
    body += struct.pack("HHI", 8, attribute, int(sys.argv[2]))
    link.send(struct.pack("IHHII", 16 + len(body), RTM_NEWLINK, NLM_F_REQUEST_ACK, 1, 0) + body)
    error = struct.unpack_from("i", link.recv(4096), 16)[0]
    if error: sys.exit(f"attribute {attribute}: error {-error}")
END
}

hit_twice() { [ "$(counter 'sets[0].packets')" -ge 2 ]; }

# big_tcp ADDRESS SOURCE: segments too long for the IP header's length field, at the generic hook. They are counted,
# then dropped. The set asks for the protocol, which is behind a hop-by-hop header.
big_tcp() {
    local packets bytes total
    fresh
    big_packets "$OUT_IF" || skip "no packets beyond 64 KiB here"
    tcp "$OUT" "$IN" "$1"
    printf '%s tcp\n' "$2" >"$WORK/sender"
    sieve -q load "$IN_IF" -m skb "sender=$WORK/sender,key=src,proto,action=count"
    # TCP makes longer packets once it has ramped up. Check first what the program saw, then what it could read.
    for total in 20000000 40000000 60000000 80000000; do
        tell_tcp "transfer 20000000"
        packets=$(counter packets) bytes=$(counter bytes)
        [ $((bytes / packets)) -le 65549 ] || break
    done
    echo "$packets packets of $((bytes / packets)) bytes"
    [ "$(counter unreadable.packets)" = 0 ] || fail "$(sieve stats "$IN_IF")"
    [ $((bytes / packets)) -gt 65549 ] || skip "TCP made packets of $((bytes / packets)) bytes only"
    [ "$(counter 'sets[0].bytes')" -gt "$total" ] || fail "not all of them were read: $(sieve stats "$IN_IF")"
    sieve -q load "$IN_IF" "sender=$WORK/sender,key=src,proto,action=drop"
    tcp_is_stopped hit_twice
    [ "$(counter unreadable.packets)" = 0 ] || fail "$(sieve stats "$IN_IF")"
    end_tcp
}
big_tcp4() { big_tcp "$IN4" "$OUT4"; }
big_tcp6() { big_tcp "$IN6" "$OUT6"; }

ktap_run "each disguise is seen through by the stack" known_unfiltered \
    "no disguise helps: native" known_native \
    "no disguise helps: skb" known_skb \
    "no disguise helps: tc ingress" known_ingress \
    "--unreadable pass" known_passed \
    "the stack takes random frames of listed sources" random_unfiltered \
    "and none of them behind the filter: native" random_native \
    "and none of them behind the filter: skb" random_skb \
    "and none of them behind the filter: tc ingress" random_ingress \
    "the same in jumbo frames" random_jumbo \
    "TCP in packets beyond 64 KiB, IPv4, skb" big_tcp4 \
    "TCP in packets beyond 64 KiB, IPv6, skb" big_tcp6
