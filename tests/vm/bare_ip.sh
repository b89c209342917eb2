#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Interfaces whose packets begin with an IP header, each with a real peer: WireGuard, IP tunnels, PPP. Every hook
# reads these packets. GRE is refused, because the parser could only guess. tests/selftests/egress.sh tests tun.
# shellcheck source=../selftests/lib.sh
. "$(dirname "$0")/../selftests/lib.sh"

setup

# Addresses inside the tunnel: 1 and 2 are the ends; 66 to 68 are further addresses of the far end.
inner4=10.9.0. inner6=2001:db8:9::

# both COMMAND...: runs the command for each end, with its namespace, its own and the other end's outer address, its
# number and the other end's number.
both() {
    "$@" "$OUT" "$OUT4" "$IN4" 1 2
    "$@" "$IN" "$IN4" "$OUT4" 2 1
}

# Gives the interface `bare` its addresses. Duplicate detection does not work there, so it is switched off.
addresses() {
    local namespace=$1 number=$4 host
    sysctl_in "$namespace" net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.bare.disable_ipv6=0
    ip -n "$namespace" link set bare up
    for host in "$number" $([ "$number" = 2 ] || echo 66 67 68); do
        [ "$family" = 6 ] || ip -n "$namespace" address add "$inner4$host/24" dev bare
        [ "$family" = 4 ] || ip -n "$namespace" address add "$inner6$host/64" dev bare nodad
    done
}
sysctl_in() { inside "$1" sysctl -qw "${@:2}"; }

tunnel() { ip -n "$2" link add bare type "$1" local "$3" remote "$4" 2>/dev/null || skip "this kernel has no $1"; }

wireguard_end() {
    local namespace=$1 peer=$3 number=$4 other=$5
    inside "$namespace" wg set bare listen-port 51820 private-key "$WORK/private$number" \
        peer "$(cat "$WORK/public$other")" endpoint "$peer:51820" allowed-ips 0.0.0.0/0,::/0
}

# A dispatcher's pins outlive the interface.
remove_bare() {
    sieve -q unload bare --hook xdp 2>/dev/null || true
    ip -n "$OUT" link del bare 2>/dev/null || true
    ip -n "$IN" link del bare 2>/dev/null || true
}

# XDP drops one listed source, tc's ingress another one, and egress a listed destination. Packets of other addresses
# pass, both ways. The order stays: a packet that was sent before an arrived packet and has not arrived is dropped.
filters() {
    local base
    for base in $([ "$family" = 6 ] || echo "$inner4") $([ "$family" = 4 ] || echo "$inner6"); do
        printf '%s\n' "${base}66" >"$WORK/66"
        printf '%s\n' "${base}68" >"$WORK/68"
        sieve -q load bare -m skb "in=$WORK/66,key=src"
        sieve -q load bare --hook ingress "tc=$WORK/68,key=src"
        sieve -q load bare --hook egress "out=$WORK/66,key=dst"
        PYTHONPATH=$here python3 - "$OUT" "$IN" "$base" <<'PYTHON'
import os, socket, sys
from traffic import in_namespace
far, near, base = sys.argv[1:]
def opened(namespace, host):
    def make():
        made = socket.socket(socket.AF_INET6 if ":" in base else socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((f"{base}{host}", 5000))
        made.settimeout(float(os.environ["PATIENCE"]))
        return made
    return in_namespace(namespace, make)
host = opened(near, 2)
peers = {number: opened(far, number) for number in (66, 67, 68)}
for number in (67, 66, 68, 67):  # the first one makes WireGuard shake hands
    peers[number].sendto(b"%d" % number, (f"{base}2", 5000))
arrived = [host.recv(100) for _ in range(2)]
if arrived != [b"67", b"67"]: sys.exit(f"{arrived} arrived: a listed source got in")
for number in (66, 67, 68):
    try: host.sendto(b"%d" % number, (f"{base}{number}", 5000))
    except OSError: pass  # the local program dropped it, and the socket says so
for number in (67, 68):
    if peers[number].recv(100) != b"%d" % number: sys.exit(f"{number} was sent something else")
peers[66].setblocking(False)
try: sys.exit(f"{peers[66].recv(100)} left for a listed destination")
except BlockingIOError: pass
PYTHON
        for hook in xdp ingress egress; do
            [ "$(sieve --json stats bare --hook "$hook" | jq -r '.interfaces[0].dropped.packets')" = 1 ] ||
                fail "$hook has not dropped one: $(sieve stats bare --hook "$hook")"
        done
        for hook in xdp ingress egress; do sieve -q unload bare --hook "$hook"; done
    done
}

wireguard() {
    local family=46 number
    remove_bare
    command -v wg >/dev/null || skip "wg is not installed"
    ip -n "$OUT" link add bare type wireguard 2>/dev/null || skip "this kernel has no wireguard"
    ip -n "$IN" link add bare type wireguard
    for number in 1 2; do
        (umask 077 && wg genkey >"$WORK/private$number")
        wg pubkey <"$WORK/private$number" >"$WORK/public$number"
    done
    both wireguard_end
    both addresses
    filters
    remove_bare
}

ipip() {
    local family=4
    remove_bare
    both tunnel ipip
    both addresses
    filters
    remove_bare
}

sit() {
    local family=6
    remove_bare
    both tunnel sit
    both addresses
    filters
    remove_bare
}

gre() {
    local hook
    remove_bare
    both tunnel gre
    ip -n "$IN" link set bare up
    printf '%s\n' "${inner4}66" >"$WORK/66"
    for hook in xdp ingress egress; do
        refused_with 4 'bare has hardware type 778' sieve load bare --hook "$hook" "in=$WORK/66,key=src"
    done
    [ -z "$(ip -n "$IN" -j link show bare | jq -r '.[0].xdp.prog.id // empty')" ] || fail "a program is attached"
    remove_bare
}

# The far end's daemon starts the near end's daemon at the other side of a pseudo-terminal.
ppp() {
    local family=4 job host
    remove_bare
    command -v pppd >/dev/null || skip "pppd is not installed"
    [ -e /dev/ppp ] || skip "this kernel has no ppp"
    inside "$OUT" pppd nodetach noauth local ifname bare "${inner4}1:${inner4}2" \
        pty "nsenter --net=/run/netns/$IN pppd nodetach notty noauth local ifname bare" >"$WORK/pppd" 2>&1 &
    job=$!
    await address_of "$OUT" "${inner4}1"
    await address_of "$IN" "${inner4}2"
    for host in 66 67 68; do ip -n "$OUT" address add "$inner4$host/32" dev bare; done
    ip -n "$IN" route add "${inner4}0/24" dev bare
    filters
    kill "$job"
    wait "$job" || true
}
address_of() {
    tail -n 3 "$WORK/pppd" >"$WORK/awaited"
    ip -n "$1" address show dev bare 2>/dev/null | grep -F " $2 " >/dev/null
}

ktap_run "WireGuard" wireguard \
    "IPv4 in IPv4" ipip \
    "IPv6 in IPv4" sit \
    "GRE is refused" gre \
    "PPP" ppp
