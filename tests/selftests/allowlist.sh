#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# An allowlist with default drop must not cut the host off: ARP and IPv6 neighbour discovery work, and members get in.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
image "$WORK/friends.sieve" src "$OUT4" "$OUT6"
image "$WORK/nobody.sieve" src 203.0.113.250

# Empties the neighbour tables, so that each ping has to ask again.
forget() {
    ip -n "$OUT" neigh flush dev "$OUT_IF"
    ip -n "$IN" neigh flush dev "$IN_IF"
}

# ping_from NAMESPACE ADDRESS [SECONDS]: waits for an answer, however long it takes. With SECONDS, none may come by
# then.
ping_from() {
    forget
    inside "$1" ping -q -c 2 -i 0.2 -W "${3:-$PATIENCE}" "$2" | grep -q ' 0% packet loss'
}

ping4() {
    attach
    sieve -q load --default drop "$IN_IF" "friends=$WORK/friends.sieve"
    ping_from "$OUT" "$IN4" || fail "a friend's ping got no answer"
    ping_from "$IN" "$OUT4" || fail "a friend's answer to our ping did not get in"
    [ "$(counter outcomes.arp)" -gt 0 ] || fail "no ARP was seen: the test proves nothing"
}

ping6() {
    ipv6_up
    trap ipv6_down EXIT
    attach
    sieve -q load --default drop "$IN_IF" "friends=$WORK/friends.sieve"
    ping_from "$OUT" "$IN6" || fail "a friend's ping got no answer"
    ping_from "$IN" "$OUT6" || fail "a friend's answer to our ping did not get in"
    [ "$(counter outcomes.neighbour)" -gt 0 ] || fail "no neighbour discovery was seen: the test proves nothing"
}

# Without the set that holds it, the same peer is a non-member: it is resolved, but none of its packets get in.
non_members() {
    ipv6_up
    trap ipv6_down EXIT
    attach
    sieve -q load --default drop "$IN_IF" "friends=$WORK/nobody.sieve"
    ! ping_from "$OUT" "$IN4" 2 || fail "a non-member's ping got an answer"
    ip -n "$OUT" neigh show dev "$OUT_IF" "$IN4" | grep -q lladdr || fail "a non-member's ARP got no answer"
    ! ping_from "$OUT" "$IN6" 2 || fail "a non-member's ping got an answer over IPv6"
    ip -n "$OUT" neigh show dev "$OUT_IF" "$IN6" | grep -q lladdr ||
        fail "a non-member's neighbour solicitation got no answer"
}

# TCP through the allowlist, both ways: whole connections, not only single packets.
connection() {
    local got
    attach
    sieve -q load --default drop "$IN_IF" "friends=$WORK/friends.sieve"
    inside "$IN" python3 -c '
import socket, sys
server = socket.create_server((sys.argv[1], 7000))
server.settimeout(float(sys.argv[2]))
print("ready", flush=True)
peer = server.accept()[0]
while data := peer.recv(65536): peer.sendall(data)
' "$IN4" "$PATIENCE" >"$WORK/ready" &
    await_line "$WORK/ready" ready
    got=$(inside "$OUT" python3 -c '
import socket, sys
peer = socket.create_connection((sys.argv[1], 7000), timeout=float(sys.argv[2]))
sent = bytes(range(256)) * 1000
peer.sendall(sent); peer.shutdown(socket.SHUT_WR)
back = b""
while data := peer.recv(65536): back += data
print("same" if back == sent else "different")
' "$IN4" "$PATIENCE")
    wait
    [ "$got" = same ] || fail "the connection gave $got"
}

# Default drop drops every packet that has a key, and no packet without one.
no_key() {
    attach
    sieve -q load --default drop "$IN_IF" "friends=$WORK/friends.sieve"
    verdicts <<END
drop udp 203.0.113.1 $IN4 1 2
drop icmp 203.0.113.1 $IN4
drop 89 203.0.113.1 $IN4
drop udp 203.0.113.1 $IN4 fragment
drop icmp 2001:db8::1 $IN6
pass udp $OUT4 $IN4 1 2
pass udp $OUT4 $IN4 fragment
pass icmp $OUT6 $IN6
END
    [ "$(counter outcomes.non_ip)" -gt 0 ] || fail "the frames without IP were not counted"
}

ktap_run \
    "ping by IPv4 and ARP" ping4 \
    "ping by IPv6 and neighbour discovery" ping6 \
    "non-members are resolved but not heard" non_members \
    "a TCP connection" connection \
    "what has no key passes" no_key
