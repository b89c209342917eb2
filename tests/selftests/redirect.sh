#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Redirection to another interface and to another CPU: which packets go there, and what happens once the target has
# gone.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
image "$WORK/a.sieve" src 203.0.113.1 2001:db8:a::1
image "$WORK/b.sieve" src 203.0.113.2

# A third namespace, SIDE: packets redirected out of IN's second interface arrive there.
SIDE_OUT=side-out SIDE_IN=side-in
add_side() {
    ip -n "$OUT" link del "$SIDE_OUT" 2>/dev/null || true
    ip -n "$OUT" link add "$SIDE_OUT" numtxqueues 1 numrxqueues 1 type veth \
        peer name "$SIDE_IN" netns "$IN" numtxqueues 1 numrxqueues 1
    ip -n "$OUT" link set "$SIDE_OUT" up
    ip -n "$IN" link set "$SIDE_IN" up
}
# A veth takes redirected frames only if its peer polls. The peer polls while it has a program.
make_side() {
    add_side
    ip -n "$OUT" link set dev "$SIDE_OUT" xdp obj "$OBJECT" sec xdp
}

# SIDE receives what the table of packets says. `fence` gets there by an ordinary route.
at_the_side() {
    verdicts --to "$OUT/$SIDE_OUT" --fence "$IN/$SIDE_IN"
}

to_device() {
    make_side
    attach "$1"
    sieve -q load "$IN_IF" "a=$WORK/a.sieve,redirect=$SIDE_IN" "b=$WORK/b.sieve,action=drop"
    at_the_side <<END
pass udp 203.0.113.1 $IN4 1 2
pass tcp 2001:db8:a::1 $IN6 1 2
drop udp 203.0.113.2 $IN4 1 2
drop udp 203.0.113.3 $IN4 1 2
END
    verdicts <<END
drop udp 203.0.113.1 $IN4 1 2
drop udp 203.0.113.2 $IN4 1 2
pass udp 203.0.113.3 $IN4 1 2
END
    [ "$(counter redirected.packets)" = 9 ] || fail "$(counter redirected.packets) redirected instead of 9"
    [ "$(counter redirect_failed)" = 0 ] || fail "$(counter redirect_failed) failed"
    [ "$(counter dropped.packets)" = 6 ] || fail "$(counter dropped.packets) dropped instead of 6"
    [ "$(counter 'sets[0].packets')" = 9 ] || fail "$(counter 'sets[0].packets') hits instead of 9"
    [ "$(counter 'sets[0].target')" = "$SIDE_IN" ] || fail "stats do not tell the target"
    [ "$(sieve --json status "$IN_IF" | jq -r '.interfaces[0].sets[0].target')" = "$SIDE_IN" ] ||
        fail "status does not tell the target"
}
native_device() { to_device xdpdrv; }
generic_device() { to_device xdpgeneric; }

# The packets still reach the host, on another CPU.
to_cpu() {
    local cpu
    cpu=$(($(nproc) - 1))
    attach "$1"
    sieve -q load --default drop "$IN_IF" "a=$WORK/a.sieve,redirect=cpu:$cpu"
    verdicts <<END
pass udp 203.0.113.1 $IN4 1 2
pass udp 2001:db8:a::1 $IN6 1 2
drop udp 203.0.113.3 $IN4 1 2
END
    [ "$(counter redirected.packets)" = 6 ] || fail "$(counter redirected.packets) redirected instead of 6"
    [ "$(counter dropped.packets)" = 3 ] || fail "$(counter dropped.packets) dropped instead of 3"
    [ "$(counter 'sets[0].target')" = "cpu:$cpu" ] || fail "stats do not tell the target"
}
native_cpu() { to_cpu xdpdrv; }
generic_cpu() { to_cpu xdpgeneric; }

# An interface that vanishes takes its entry in the kernel's map along: its packets get the default and are counted.
vanished() {
    make_side
    attach
    sieve -q load "$IN_IF" "a=$WORK/a.sieve,redirect=$SIDE_IN"
    at_the_side <<<"pass udp 203.0.113.1 $IN4 1 2"
    ip -n "$IN" link del "$SIDE_IN"
    verdicts <<END
pass udp 203.0.113.1 $IN4 1 2
pass udp 203.0.113.3 $IN4 1 2
END
    [ "$(counter redirect_failed)" = 3 ] || fail "$(counter redirect_failed) failed instead of 3"
    sieve status "$IN_IF" | grep -q gone || fail "status does not say that it is gone"
    # Other sets can still change, and so can this set's filter.
    sieve -q swap "$IN_IF" "a=$WORK/b.sieve"
    verdicts <<<"pass udp 203.0.113.2 $IN4 1 2"
    # A new interface of that name needs a new load.
    make_side
    sieve -q load --default drop "$IN_IF" "a=$WORK/a.sieve,redirect=$SIDE_IN"
    at_the_side <<<"pass udp 203.0.113.1 $IN4 1 2"
}

swap_keeps() {
    make_side
    attach
    sieve -q load "$IN_IF" "a=$WORK/a.sieve,redirect=$SIDE_IN"
    sieve -q swap "$IN_IF" "a=$WORK/b.sieve"
    at_the_side <<END
pass udp 203.0.113.2 $IN4 1 2
drop udp 203.0.113.1 $IN4 1 2
END
}

refusals() {
    local before
    attach
    sieve -q load "$IN_IF" "b=$WORK/b.sieve,action=count"
    before=$(state)
    refused 4 sieve load "$IN_IF" "a=$WORK/a.sieve,redirect=nobody"
    refused 4 sieve load "$IN_IF" "a=$WORK/a.sieve,redirect=cpu:4095"
    refused 2 sieve load "$IN_IF" "a=$WORK/a.sieve,redirect=cpu:x"
    refused 2 sieve load "$IN_IF" "a=$WORK/a.sieve,redirect="
    refused 2 sieve load "$IN_IF" "a=$WORK/a.sieve,action=drop,redirect=$IN_IF"
    refused 2 sieve swap "$IN_IF" "b=$WORK/a.sieve,redirect=$IN_IF"
    unchanged "$before"
}

# A frame sent back keeps its receiver's address: at egress it would even pass the program again.
to_itself() {
    local before hook
    attach
    sieve -q load "$IN_IF" "b=$WORK/b.sieve,action=count"
    before=$(state)
    refused 2 sieve load "$IN_IF" "a=$WORK/a.sieve,redirect=$IN_IF"
    for hook in ingress egress; do
        refused 2 sieve load "$IN_IF" --hook "$hook" "a=$WORK/a.sieve,redirect=$IN_IF"
    done
    unchanged "$before"
}

# A target that is down is refused. `status` shows a target that goes down later.
is_down() {
    local hook
    make_side
    ip -n "$IN" link set "$SIDE_IN" down
    for hook in xdp ingress egress; do
        refused 4 sieve load "$IN_IF" --hook "$hook" "a=$WORK/a.sieve,redirect=$SIDE_IN"
    done
    [ -z "$(program_id)" ] || fail "a program is attached nevertheless"
    ip -n "$IN" link set "$SIDE_IN" up
    ip -n "$OUT" link set "$SIDE_OUT" down
    sieve load -m skb "$IN_IF" "a=$WORK/a.sieve,redirect=$SIDE_IN" 2>"$WORK/err"
    grep -q 'no carrier' "$WORK/err" || fail "no warning of the carrier: $(cat "$WORK/err")"
    [ "$(target_state)" = ready ] || fail "status tells $(target_state) of a target that is up"
    ip -n "$IN" link set "$SIDE_IN" down
    [ "$(target_state)" = down ] || fail "status tells $(target_state) of a target that is down"
    sieve status "$IN_IF" | grep -q "redirect=$SIDE_IN (down)" || fail "status does not say that it is down"
    sieve stats "$IN_IF" | grep -q "redirect=$SIDE_IN (down)" || fail "stats do not say that it is down"
}
target_state() { sieve --json status "$IN_IF" | jq -r '.interfaces[0].sets[0].target_state'; }

# In native mode, the target's driver must be able to send. A veth can while its other end polls, here for GRO.
cannot_send() {
    local words="$SIDE_IN does not send"
    add_side
    if [ "$(printf '6.3\n%s\n' "$(uname -r)" | sort -V | head -n 1)" = 6.3 ]; then
        refused_with 4 "$words.*-m skb" sieve load -m native "$IN_IF" "a=$WORK/a.sieve,redirect=$SIDE_IN"
        [ -z "$(program_id)" ] || fail "a program is attached nevertheless"
    else
        sieve load -m native "$IN_IF" "a=$WORK/a.sieve,redirect=$SIDE_IN" 2>"$WORK/err"
        grep -q 'does not tell' "$WORK/err" || fail "no warning: $(cat "$WORK/err")"
        sieve -q unload "$IN_IF"
    fi
    sieve load -m skb "$IN_IF" "a=$WORK/a.sieve,redirect=$SIDE_IN" 2>"$WORK/err"
    if grep -E 'does not (send|tell)|checksums' "$WORK/err"; then fail "a warning that is for native mode"; fi
    at_the_side <<<"pass udp 203.0.113.1 $IN4 1 2"
    sieve -q unload "$IN_IF"
    inside "$OUT" ethtool -K "$SIDE_OUT" gro on
    sieve -q load -m native "$IN_IF" "a=$WORK/a.sieve,redirect=$SIDE_IN"
    at_the_side <<<"pass udp 203.0.113.1 $IN4 1 2"
}

# An interface that carries bare IP cannot send a packet that begins with an Ethernet header.
other_link() {
    ip -n "$IN" tuntap add dev bare mode tun 2>/dev/null || skip "this kernel has no tun"
    ip -n "$IN" link set bare up
    refused 4 sieve load -m skb "$IN_IF" "a=$WORK/a.sieve,redirect=bare"
    ip -n "$IN" link del bare
}

# For what a blocking write brings, the tap's driver calls the generic hook's code, and the Ethernet header stays.
# from_tap MODE NONBLOCKING LOST: how many of five packets from a listed source Linux drops.
from_tap() {
    local mode=$1 flag=$2 lost=$3
    ip -n "$IN" tuntap add dev tap mode tap 2>/dev/null || skip "this kernel has no tun"
    ip -n "$IN" link set tap address 02:00:00:00:00:02 up
    ip -n "$IN" address add 192.0.2.1/24 dev tap
    echo 192.0.2.66 >"$WORK/listed"
    sieve load -m "$mode" tap "a=$WORK/listed,key=src,redirect=cpu:0" 2>"$WORK/err"
    if [ "$mode" = native ]; then
        grep -q 'tap is a tap.*-m skb' "$WORK/err" || fail "no warning: $(cat "$WORK/err")"
    elif grep 'tap is a tap' "$WORK/err"; then
        fail "a warning that is for native mode"
    fi
    PYTHONPATH=$here inside "$IN" python3 -B - "$flag" "$lost" <<'END'
import fcntl, os, socket, struct, sys
from traffic import udp_packet
flag, lost = int(sys.argv[1]), int(sys.argv[2])
tap = os.open("/dev/net/tun", os.O_RDWR | (os.O_NONBLOCK if flag else 0))
fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", b"tap", 0x1002))  # TUNSETIFF, IFF_TAP | IFF_NO_PI
host = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
host.bind(("192.0.2.1", 5000))
host.settimeout(0.1)
def frame(source, text):
    return bytes.fromhex("020000000002020000000001") + b"\x08\0" + udp_packet(source, "192.0.2.1", text)
def bad_headers():
    names, values = [line.split() for line in open("/proc/net/snmp") if line.startswith("Ip:")]
    return int(values[names.index("InHdrErrors")])
before = bad_headers()
for _ in range(5): os.write(tap, frame("192.0.2.66", b"listed"))
arrived = 0
while arrived + bad_headers() - before < 5:  # each one ends in the socket or in the counter; a hang is the runner's
    try: host.recv(100)
    except TimeoutError: continue
    arrived += 1
if 5 - arrived != lost: sys.exit(f"{5 - arrived} of 5 packets were lost, expected {lost}")
END
    sieve -q unload tap
    ip -n "$IN" link del tap
}
tap_blocking() { from_tap native 0 5; }
tap_non_blocking() { from_tap native 1 0; }
tap_generic() { from_tap skb 0 0; }

smaller_mtu() {
    make_side
    ip -n "$IN" link set "$SIDE_IN" mtu 1400
    sieve load "$IN_IF" "a=$WORK/a.sieve,redirect=$SIDE_IN" 2>"$WORK/err"
    grep -q 'MTU is 1400.*is 1500' "$WORK/err" || fail "no warning of the MTU: $(cat "$WORK/err")"
}

# A sender leaves the checksum to its interface, and a veth computes none. Redirection loses the mark that says so,
# which is part of the socket buffer.
unfinished_checksums() {
    local before
    echo "$OUT4" >"$WORK/sender"
    inside "$OUT" ethtool -K "$OUT_IF" tx on >"$WORK/ethtool"
    sieve load -m skb "$IN_IF" "a=$WORK/sender,redirect=cpu:0" 2>"$WORK/err"
    if grep checksum "$WORK/err"; then fail "a warning that is for native mode"; fi
    before=$(damaged_segments)
    start_tcp
    transfer 1000000
    [ "$(damaged_segments)" = "$before" ] || fail "segments arrived damaged in skb mode"
    sieve -q unload "$IN_IF"

    sieve load -m native "$IN_IF" "a=$WORK/sender,redirect=cpu:0" 2>"$WORK/err"
    grep -q "unfinished checksums.*-m skb.*ethtool -K" "$WORK/err" || fail "no warning: $(cat "$WORK/err")"
    # The warning is right, and so is its advice.
    echo "transfer 1000000" >&"$tcp_in"
    await segments_are_damaged "$before"
    inside "$OUT" ethtool -K "$OUT_IF" tx off >"$WORK/ethtool"
    await_transfer 1000000
    [ "$(counter redirected.packets)" -gt 0 ] || fail "nothing was redirected"
    inside "$OUT" ethtool -K "$OUT_IF" tx on >"$WORK/ethtool"
}
# shellcheck disable=SC2016 # awk's own variable
damaged_segments() { inside "$IN" awk '/^Tcp:/ { value = $NF } END { print value }' /proc/net/snmp; }
segments_are_damaged() { [ "$(damaged_segments)" -gt "$1" ]; }

tcp_job='' tcp_in='' tcp_out=''
start_tcp() {
    local answer
    conversation tcp "$here/tcp_pair.py" "$OUT" "$IN" "$IN4"
    read -r -t "$PATIENCE" answer <&"$tcp_out" || fail "no connection"
    [ "$answer" = connected ] || fail "$answer"
}
await_transfer() {
    local answer
    read -r -t "$((PATIENCE * 2))" answer <&"$tcp_out" || fail "no answer: the connection stands still"
    [ "$answer" = "transferred $1" ] || fail "$answer"
}
transfer() {
    echo "transfer $1" >&"$tcp_in"
    await_transfer "$1"
}

ktap_run \
    "to an interface, native" native_device \
    "to an interface, generic" generic_device \
    "to a CPU, native" native_cpu \
    "to a CPU, generic" generic_cpu \
    "to an interface that has gone: the default" vanished \
    "a swap keeps the target" swap_keeps \
    "targets that are not there" refusals \
    "the interface itself as a target" to_itself \
    "a target that is down" is_down \
    "a target whose driver cannot send" cannot_send \
    "a target without Ethernet headers" other_link \
    "a target with a smaller MTU" smaller_mtu \
    "a tap's packets to a CPU, native, blocking writes: lost with a warning" tap_blocking \
    "the same, non-blocking writes" tap_non_blocking \
    "the same, generic" tap_generic \
    "checksums that the sender left unfinished" unfinished_checksums
