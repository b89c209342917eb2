#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Compares the packet paths of two builds: nanoseconds per packet of the real program. The builds take turns in one
# run, so that other work on the machine slows both alike. The filter stays in the processor's cache, because one
# packet is judged again and again.
#
#     compare_path.sh OLD_TREE NEW_TREE [ROUNDS] [KIND] [OPTIONS] [BUILD_OPTIONS]
#
# Both trees must be built. Each program judges with a set of 100,000 addresses that its own build made, of kind
# `xorsat` unless another one is named: the builds need not agree on what addresses get by default. The new build's set
# has the options, such as `dport=2`, and its image those of `build`, such as `--hits`, so that two times the same tree
# shows what they cost; the packets are UDP from port 1 to port 2. IPV6=20000 adds as many IPv6 addresses to the list.
# Compare the minimum first: other work on the machine disturbs it least.
set -euo pipefail

[ $# -ge 2 ] || {
    echo "usage: compare_path.sh OLD_TREE NEW_TREE [ROUNDS] [KIND] [OPTIONS] [BUILD_OPTIONS]" >&2
    exit 2
}
[ "$(id -u)" -eq 0 ] || {
    echo "compare_path.sh: loading programs needs root" >&2
    exit 1
}
trees=("$(realpath "$1")" "$(realpath "$2")")
names=(old new)
rounds=${3:-25}
kind=${4:-xorsat}
options=("" "${5:+,$5}")
build_options=("" "${6-}")
ipv6=${IPV6:-0}
repeat=1000000

WORK=$(mktemp -d)
spaces=("sieve-old-$$" "sieve-new-$$")
cleanup() {
    local status=$? space
    trap '' HUP INT TERM
    # Interrupted early, not every namespace exists.
    for space in "${spaces[@]}"; do ip netns del "$space" 2>/dev/null || true; done
    rm -rf "$WORK"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Addresses of 10.0.0.0/8. `member` is the first of them; no list contains 203.0.113.9 or 2001:db8::9.
awk 'BEGIN { srand(1); for (i = 0; i < 100000; i++)
    printf "10.%d.%d.%d\n", rand() * 256, rand() * 256, rand() * 256 }' >"$WORK/feed"
for ((i = 0; i < ipv6; i++)); do printf '2001:db8:1::%x\n' "$i"; done >>"$WORK/feed"
python3 - "$WORK" "$(head -n 1 "$WORK/feed")" "$ipv6" <<'EOP'
import ipaddress
import struct
import sys

work, member, ipv6 = sys.argv[1:]
UDP = struct.pack("!HHHH", 1, 2, 26, 0) + bytes(18)


def packet(source):
    address = ipaddress.ip_address(source)
    if address.version == 4:
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(UDP), 1, 0, 64, 17, 0)
        return b"\x08\x00" + head + address.packed + ipaddress.ip_address("192.0.2.1").packed
    head = struct.pack("!IHBB", 6 << 28, len(UDP), 17, 64)
    return b"\x86\xdd" + head + address.packed + ipaddress.ip_address("2001:db8::1").packed


packets = [("member", member), ("non-member", "203.0.113.9"), ("IPv6 non-member", "2001:db8::9")]
if int(ipv6) > 0:
    packets.append(("IPv6 member", "2001:db8:1::0"))
for name, source in packets:
    with open(f"{work}/{name}.packet", "wb") as file:
        file.write(bytes(12) + packet(source) + UDP)
EOP

programs=()
for i in 0 1; do
    space=${spaces[i]}
    ip netns add "$space"
    ip -n "$space" link add sieve0 type veth peer name sieve1
    ip -n "$space" link set sieve0 up
    ip -n "$space" link set sieve1 up
    sieve=${trees[i]}/build/xdp-sieve
    # shellcheck disable=SC2086 # several options
    "$sieve" -q build --kind "$kind" --seed 1 ${build_options[i]} -o "$WORK/$i.sieve" "$WORK/feed"
    nsenter --net="/run/netns/$space" "$sieve" -q load sieve0 "listed=$WORK/$i.sieve${options[i]}"
    programs+=("$(ip -n "$space" -j link show sieve0 | gojq '.[0].xdp.prog.id')")
done

printf '%-16s %-5s %5s %7s\n' packet build least median
for file in "$WORK"/*.packet; do
    for ((round = 0; round < rounds; round++)); do
        for i in 0 1; do
            bpftool -j prog run id "${programs[i]}" data_in "$file" repeat "$repeat" | gojq .duration >>"$file.$i"
        done
    done
    for i in 0 1; do
        sort -n "$file.$i" | awk -v packet="$(basename "$file" .packet)" -v build="${names[i]}" \
            '{ ns[NR] = $1 } END { printf "%-16s %-5s %5d %7d\n", packet, build, ns[1], ns[int((NR + 1) / 2)] }'
    done
done
