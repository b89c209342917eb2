#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# tc's hooks: packets that leave and packets that arrive, beside XDP, each hook with its own sets; TCP packets that
# await segmentation; interfaces without an Ethernet header.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
LISTED4=198.51.100.66 LISTED6=2001:db8:51::66
image "$WORK/c2.sieve" dst "$LISTED4" "$LISTED6" 203.0.113.66
image "$WORK/bad.sieve" src 203.0.113.1 2001:db8:a::1

# Makes a new veth pair. clsact and its filters go with the old pair.
fresh() {
    make_link
    ip -n "$IN" link set "$IN_IF" gso_max_segs 65535 2>/dev/null || true
}

# The packets that leave IN arrive at OUT as the table of packets says.
leaving() {
    verdicts --sender-drops --from "$IN/$IN_IF" --to "$OUT/$OUT_IF"
}

leaving_table() {
    cat <<END
drop udp $IN4 $LISTED4 1 2
drop tcp $IN4 203.0.113.66 1 2
pass udp $IN4 203.0.113.67 1 2
pass tcp $IN4 $OUT4 1 2
drop tcp 2001:db8:a::1 $LISTED6 1 2
pass udp 2001:db8:a::1 2001:db8:51::67 1 2
END
}

packets_that_leave() {
    fresh
    sieve -q load "$IN_IF" --hook egress "c2=$WORK/c2.sieve"
    leaving_table | leaving
    # Three rounds of six packets each.
    [ "$(counter_at egress 'sets[0].packets')" = 9 ] || fail "$(counter_at egress 'sets[0].packets') hits instead of 9"
    [ "$(counter_at egress dropped.packets)" = 9 ] || fail "$(counter_at egress dropped.packets) dropped instead of 9"
    # The egress hook does not judge packets that arrive.
    verdicts <<END
pass udp 203.0.113.1 $LISTED4 1 2
END
    sieve -q unload "$IN_IF"
    leaving_table | sed 's/^drop/pass/' | leaving
}

# Three tables on one interface: one for each hook.
all_hooks() {
    fresh
    sieve -q load "$IN_IF" "bad=$WORK/bad.sieve"
    printf '203.0.113.2\n' >"$WORK/in.txt"
    sieve -q load "$IN_IF" --hook ingress "in=$WORK/in.txt" "both=$WORK/in.txt,action=count"
    sieve -q load "$IN_IF" --hook egress "c2=$WORK/c2.sieve,action=drop" "both=$WORK/in.txt,action=count" --default pass
    leaving_table | leaving
    # A packet socket sees arriving packets before tc does, so the counters tell tc's verdicts.
    verdicts <<END
drop udp 203.0.113.1 $IN4 1 2
pass udp 203.0.113.2 $IN4 1 2
pass udp 203.0.113.3 $IN4 1 2
pass udp 203.0.113.4 $LISTED4 1 2
END
    [ "$(counter_at xdp dropped.packets)" = 3 ] || fail "xdp dropped $(counter_at xdp dropped.packets)"
    [ "$(counter_at ingress dropped.packets)" = 3 ] || fail "ingress dropped $(counter_at ingress dropped.packets)"
    [ "$(counter_at egress dropped.packets)" = 9 ] || fail "egress dropped $(counter_at egress dropped.packets)"
    [ "$(sieve --json status "$IN_IF" | jq -c '[.interfaces[].hook]')" = '["xdp","ingress","egress"]' ] ||
        fail "status does not show the three"
    sieve status "$IN_IF" | grep -q "^$IN_IF egress: " || fail "status does not name the hook"

    # The set's name says which table is meant. Where the name is ambiguous, the command must name the hook.
    printf '203.0.113.3\n' >"$WORK/other.txt"
    sieve swap "$IN_IF" "in=$WORK/other.txt" >"$WORK/told"
    grep -q "^$IN_IF ingress: in: 1 key, " "$WORK/told" || fail "swap says $(cat "$WORK/told")"
    verdicts <<END
pass udp 203.0.113.2 $IN4 1 2
pass udp 203.0.113.3 $IN4 1 2
pass udp 203.0.113.3 $IN4 3 4
END
    [ "$(counter_at ingress 'sets[0].packets')" = 9 ] || fail "ingress matched $(counter_at ingress 'sets[0].packets')"
    refused 2 sieve remove "$IN_IF" both
    refused 2 sieve unload "$IN_IF"
    refused 2 sieve unload "$IN_IF" --hook nowhere
    refused 2 sieve load "$IN_IF" --hook egress -m skb "c2=$WORK/c2.sieve"
    refused 2 sieve load "$IN_IF" --hook egress "c2=$WORK/c2.sieve,redirect=cpu:0"
    sieve remove "$IN_IF" both --hook egress >"$WORK/told"
    [ "$(cat "$WORK/told")" = "$IN_IF egress: removed both, 1 set left" ] || fail "remove says $(cat "$WORK/told")"
    [ "$(sieve --json status "$IN_IF" --hook egress | jq -r '.interfaces[0].sets | length')" = 1 ] ||
        fail "not one set is left"
    for hook in xdp ingress egress; do sieve -q unload "$IN_IF" --hook "$hook"; done
    refused 1 sieve unload "$IN_IF"
    refused 1 sieve unload "$IN_IF" --hook egress
}

sampling() { [ "$(sieve --json status "$IN_IF" | jq '.interfaces[0].sampling')" = 1 ]; }

# Inserting and deleting keys, events and counters work at tc as at XDP.
other_commands() {
    fresh
    printf '%s\n' 203.0.113.{100..199} >"$WORK/hundred"
    "$SIEVE" -q build --kind ddlcbf --bits-per-key 24 --key dst -o "$WORK/live.sieve" "$WORK/hundred"
    sieve -q load "$IN_IF" --hook egress "live=$WORK/live.sieve"
    leaving <<END
drop udp $IN4 203.0.113.100 1 2
pass udp $IN4 203.0.113.66 1 2
END
    sieve insert "$IN_IF" live 203.0.113.66 >"$WORK/told"
    sieve delete "$IN_IF" live 203.0.113.100 >>"$WORK/told"
    [ "$(grep -c "^$IN_IF egress: live: " "$WORK/told")" = 2 ] || fail "insert and delete say $(cat "$WORK/told")"
    sieve -q top "$IN_IF"
    sieve --json events "$IN_IF" --count 1 >"$WORK/events" 2>"$WORK/told" &
    await sampling
    leaving <<END
pass udp $IN4 203.0.113.100 1 2
drop udp $IN4 203.0.113.66 1 2
END
    wait $!
    [ "$(head -n 1 "$WORK/events" | jq -r '.verdict + " " + .key.dst')" = "drop 203.0.113.66" ] ||
        fail "the event is $(head -n 1 "$WORK/events")"
    [ "$(sieve --json top "$IN_IF" | jq -r '.keys[0].packets')" = 3 ] || fail "top says $(sieve --json top "$IN_IF")"
    sieve top "$IN_IF" | grep -q "^$IN_IF egress: " || fail "top does not name the hook"
}

# Plain tc attaches the program, and every command finds it.
plain_tc() {
    fresh
    inside "$IN" tc qdisc add dev "$IN_IF" clsact
    for hook in egress ingress; do
        inside "$IN" tc filter add dev "$IN_IF" "$hook" bpf da obj "$TC_OBJECT" sec "tc/$hook"
    done
    [ "$(sieve --json status "$IN_IF" | jq -c '[.interfaces[] | .hook, .attached_by]')" = \
        '["ingress","other","egress","other"]' ] || fail "status: $(sieve --json status "$IN_IF")"
    sieve -q load "$IN_IF" --hook egress "c2=$WORK/bad.sieve"
    sieve -q swap "$IN_IF" "c2=$WORK/c2.sieve"
    leaving_table | leaving
    [ "$(counter_at egress dropped.packets)" = 9 ] || fail "$(counter_at egress dropped.packets) dropped"
    sieve -q remove "$IN_IF" c2
    leaving_table | sed 's/^drop/pass/' | leaving
    sieve -q unload "$IN_IF" --hook egress
    inside "$IN" tc filter show dev "$IN_IF" ingress | grep -q sieve_ingress || fail "the other hook's filter has gone"
    [ -z "$(inside "$IN" tc filter show dev "$IN_IF" egress)" ] || fail "a filter is left"
}

# A filter before ours that accepts a packet hides it from ours, and from the noting program.
filters_before() {
    fresh
    inside "$IN" tc qdisc add dev "$IN_IF" clsact
    inside "$IN" tc filter add dev "$IN_IF" egress prio 10 protocol all bpf da bytecode '1,6 0 0 0,' # TC_ACT_OK
    sieve load "$IN_IF" --hook egress "c2=$WORK/c2.sieve" 2>"$WORK/err"
    grep -q "$IN_IF egress: xdp-sieve does not see packets .* accept: bpf, priority 10; .*--priority" "$WORK/err" ||
        fail "load says $(cat "$WORK/err")"
    leaving_table | sed 's/^drop/pass/' | leaving
    sieve status "$IN_IF" | grep -q 'asked first: *bpf, priority 10$' || fail "status: $(sieve status "$IN_IF")"
    sieve --json status "$IN_IF" |
        jq -e '.interfaces[0].programs[0] == {"kind": "bpf", "id": null, "name": null, "priority": 10}' >/dev/null ||
        fail "JSON: $(sieve --json status "$IN_IF")"
    sieve load "$IN_IF" "bad=$WORK/bad.sieve" --replies pass 2>"$WORK/err"
    grep -q "$IN_IF egress: the program that notes flows does not .* as replies: bpf, priority 10$" "$WORK/err" ||
        fail "load says $(cat "$WORK/err")"
    sieve status "$IN_IF" --hook xdp | grep -q 'before the program that notes flows: bpf, priority 10$' ||
        fail "status: $(sieve status "$IN_IF")"
    sieve --json status "$IN_IF" | jq -e '.interfaces[0].flows.filters_before[0].priority == 10' >/dev/null ||
        fail "JSON: $(sieve --json status "$IN_IF")"
    # Once ours comes first, its list holds.
    sieve -q unload "$IN_IF" --hook egress
    sieve load "$IN_IF" --hook egress --priority 5 "c2=$WORK/c2.sieve" 2>"$WORK/err"
    [ ! -s "$WORK/err" ] || fail "load says $(cat "$WORK/err")"
    leaving_table | leaving
    for hook in xdp egress; do sieve -q unload "$IN_IF" --hook "$hook"; done
}

# Policers and shapers set up the queueing discipline `ingress`. It takes filters for egress and asks them about
# packets that arrive.
without_egress() {
    local before
    fresh
    inside "$IN" tc qdisc add dev "$IN_IF" ingress
    echo "$OUT4" >"$WORK/listed"
    refused_with 4 'instead of a queueing discipline .ingress.,' \
        sieve load "$IN_IF" --hook egress "c2=$WORK/listed,key=dst"
    [ -z "$(inside "$IN" tc filter show dev "$IN_IF" ingress)" ] || fail "a filter is left"
    sieve -q load "$IN_IF" --hook ingress "in=$WORK/bad.sieve"
    before=$(sieve --json status "$IN_IF")
    refused 4 sieve load "$IN_IF" --hook egress --replace "c2=$WORK/listed,key=dst"
    refused 4 sieve load "$IN_IF" --default drop "few=$WORK/listed"
    [ "$(sieve --json status "$IN_IF")" = "$before" ] || fail "status: $(sieve --json status "$IN_IF")"
    [ "$(jq -c '[.interfaces[].hook]' <<<"$before")" = '["ingress"]' ] || fail "hooks: $before"
    sieve -q unload "$IN_IF"
}

hit_twice() { [ "$(counter_at egress 'sets[0].packets')" -ge 2 ]; }

# through_egress ADDRESS BYTES: transfers data in packets of more than BYTES on average. A set stops the transfer;
# without the set, the transfer goes on.
through_egress() {
    local packets bytes
    tcp "$IN" "$OUT" "$1"
    sieve -q load "$IN_IF" --hook egress "c2=$WORK/bad.sieve,action=drop" "all=$WORK/c2.sieve,action=count"
    tell_tcp "transfer 20000000"
    packets=$(counter_at egress passed.packets) bytes=$(counter_at egress passed.bytes)
    echo "$packets packets of $((bytes / packets)) bytes"
    [ $((bytes / packets)) -gt "$2" ] || fail "the packets did not await segmentation"
    # The transferred bytes are all in packets whose key was read. Neighbour discovery may have sent others besides.
    [ "$(counter_at egress 'sets[1].bytes')" -gt 20000000 ] || fail "not all of them were read"
    sieve -q load "$IN_IF" --hook egress "c2=$WORK/c2.sieve,action=drop"
    tcp_is_stopped hit_twice
    sieve -q remove "$IN_IF" c2 --hook egress
    tell_tcp "finish"
    end_tcp
}

segmented() {
    fresh
    ip -n "$OUT" address add "$LISTED4/24" dev "$OUT_IF"
    # An XDP program judges the way in, by which TCP's acknowledgements arrive.
    sieve -q load "$IN_IF" "bad=$WORK/bad.sieve"
    through_egress "$LISTED4" 3000
}

big_tcp() {
    fresh
    ip -n "$IN" link set "$IN_IF" gso_max_size 200000 2>/dev/null || skip "no packets beyond 64 KiB here"
    ipv6_up
    ip -n "$OUT" address add "$LISTED6/64" dev "$OUT_IF" nodad
    through_egress "$LISTED6" 3000
    ipv6_down
}

# An interface that carries bare IP. Packets from a listed source arrive, and packets to a listed destination leave.
bare_ip() {
    fresh
    ip -n "$IN" tuntap add dev bare mode tun 2>/dev/null || skip "this kernel has no tun"
    ip -n "$IN" link set bare up
    ip -n "$IN" address add 192.0.2.1/24 dev bare
    printf '192.0.2.66\n' >"$WORK/listed"
    sieve -q load bare "in=$WORK/listed,key=src"
    sieve -q load bare --hook ingress "tc=$WORK/c2.sieve"
    sieve -q load bare --hook egress "out=$WORK/listed,key=dst"
    PYTHONPATH=$here inside "$IN" python3 -B - <<'END'
import fcntl, os, select, socket, struct, sys
from traffic import udp_packet
tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH22x", b"bare", 0x1001))  # TUNSETIFF, IFF_TUN | IFF_NO_PI
host = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
host.bind(("192.0.2.1", 5000))
host.settimeout(float(os.environ["PATIENCE"]))
os.write(tun, udp_packet("192.0.2.66", "192.0.2.1", b"listed"))
os.write(tun, udp_packet("192.0.2.67", "192.0.2.1", b"other"))
if host.recv(100) != b"other": sys.exit("a listed source got in")
try: host.sendto(b"66", ("192.0.2.66", 5000))
except OSError: pass
# The interface has its carrier once a reader opens it, but its queue may start a little later.
for _ in range(int(os.environ["PATIENCE"]) * 5):
    host.sendto(b"67", ("192.0.2.67", 5000))
    if select.select([tun], [], [], 0.2)[0]:
        left = os.read(tun, 2000)
        if left[0] >> 4 == 4 and left[9] == 17: break
else: sys.exit("nothing left")
if left[28:] != b"67": sys.exit("a packet to a listed destination left")
END
    for hook in xdp egress; do
        [ "$(sieve --json stats bare --hook "$hook" | jq -r '.interfaces[0].dropped.packets')" = 1 ] ||
            fail "$hook has not dropped one"
    done
    for hook in xdp ingress egress; do sieve -q unload bare --hook "$hook"; done
    ip -n "$IN" link del bare
}

# Linux believes what the writer of such a device says of a packet, for instance that an IPv4 packet lies behind a VLAN
# tag. That tag may look like the beginning of an IPv6 header, and nothing in the packet tells.
stated_protocol() {
    local hook
    fresh
    ip -n "$IN" tuntap add dev bare mode tun pi 2>/dev/null || skip "this kernel has no tun"
    ip -n "$IN" link set bare up
    echo 192.0.2.66 >"$WORK/listed"
    for hook in xdp ingress egress; do
        refused 4 sieve load bare --hook "$hook" "in=$WORK/listed,key=src"
    done
    ip -n "$IN" link del bare
}

# way_out FUNCTION: runs a function of way_out.py between the two ends.
way_out() {
    python3 -B "$here/way_out.py" "$1" "$IN/$IN_IF" "$OUT/$OUT_IF" "$OUT4" "$OUT6" "$LISTED4" "$LISTED6"
}

unreadable_at_egress() { counter_at egress "unreadable.reasons.$1"; }

# A packet that goes by way of another host: its header names that host, and only the route names the end.
source_routes() {
    fresh
    ipv6_up
    # Without a list the kernel sends both, so that the test sees what the hook drops.
    way_out routes_arrive
    sieve -q load "$IN_IF" --hook egress "c2=$WORK/c2.sieve"
    way_out routes_end
    [ "$(unreadable_at_egress source_route)" = 2 ] || fail "$(unreadable_at_egress source_route) source routes"
    # Let through, they are judged by the header's destination, which is not listed.
    sieve -q load "$IN_IF" --hook egress "c2=$WORK/c2.sieve" --unreadable pass
    way_out routes_arrive
    ipv6_down
}

# What docs/hooks.md says about packets that a list at egress does not stop, and that Linux does not take for IP.
beside_the_list() {
    local others seen
    fresh
    sieve -q load "$IN_IF" --hook egress "c2=$WORK/c2.sieve"
    way_out bypass
    [ "$(counter_at egress dropped.packets)" = 1 ] || fail "$(counter_at egress dropped.packets) dropped"
    others=$(sieve --json stats "$IN_IF" | jq '.interfaces[0].outcomes.non_ip')
    way_out foreign
    seen=$(sieve --json stats "$IN_IF" | jq '.interfaces[0].outcomes.non_ip')
    [ "$seen" = $((others + 3)) ] || fail "$((seen - others)) frames without IP instead of 3"
}

replayed() {
    local verdicts
    PYTHONPATH=$here python3 -B - "$WORK/pcap" <<'END'
import struct, sys
from traffic import udp_packet
frames = [bytes(12) + b"\x08\0" + udp_packet("192.0.2.1", f"203.0.113.{last}", b"", (1, 2)) for last in (66, 67)]
with open(sys.argv[1], "wb") as out:
    out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for frame in frames: out.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)
END
    verdicts=$("$SIEVE" --json replay --hook egress "$WORK/c2.sieve" --pcap "$WORK/pcap" | jq -r .verdict)
    [ "$verdicts" = $'drop\npass' ] || fail "replayed: $verdicts"
    # The programs of all hooks judge these frames alike. The verbose log names the one that was loaded.
    "$SIEVE" -v replay --hook egress "$WORK/c2.sieve" --pcap "$WORK/pcap" >"$WORK/log" 2>&1
    grep -q "prog 'sieve_egress'" "$WORK/log" || fail "another program was asked"
}

ktap_run "packets that leave are dropped by an egress set" packets_that_leave \
    "XDP, ingress and egress on one interface, each with its own sets" all_hooks \
    "insert, delete, top and events at egress" other_commands \
    "what tc filter add attaches is found by every command" plain_tc \
    "filters before ours are shown and warned of" filters_before \
    "no egress hook where the queueing discipline is ingress" without_egress \
    "TCP that awaits segmentation is stopped and let go on" segmented \
    "the same beyond 64 KiB" big_tcp \
    "interfaces without an Ethernet header" bare_ip \
    "a tun device whose writer states the protocol is refused" stated_protocol \
    "a source route does not get past a list" source_routes \
    "packets beside the list, as the docs say" beside_the_list \
    "replay runs the hook's program" replayed
