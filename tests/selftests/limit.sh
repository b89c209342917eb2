#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Limits on a set's matches, with real packets.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup

printf '%s\n' "$OUT4" >"$WORK/peer"

# burst COUNT BURST: sends COUNT packets and says how many arrived. More than BURST may pass only for each second that
# it took, at one packet per second.
burst() {
    python3 - "$OUT" "$IN" "$IN4" "$1" "$2" "$SIEVE" "$IN_IF" <<'END'
import json, os, socket, subprocess, sys, time
sys.path.insert(0, os.environ["HERE"])
from traffic import in_namespace
out, to, address, count, burst, sieve, interface = sys.argv[1:]
count, burst = int(count), int(burst)
receiver = in_namespace(to, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
receiver.bind((address, 0))
sender = in_namespace(out, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))


def over():
    stats = subprocess.run(["nsenter", f"--net=/run/netns/{to}", sieve, "--json", "stats", interface],
                           stdout=subprocess.PIPE, check=True).stdout
    row = json.loads(stats)["interfaces"][0]["sets"][0]
    return row["packets"], row["over_limit"]["packets"]


begin = time.monotonic()
matched_before, over_before = over()
for i in range(count):
    sender.sendto(bytes(18), receiver.getsockname())
limit = time.monotonic() + int(os.environ["PATIENCE"])
while (now := over())[0] - matched_before < count:
    assert time.monotonic() < limit, "not all packets were judged"
passed = count - (now[1] - over_before)
seconds = time.monotonic() - begin
receiver.setblocking(False)
arrived = 0
try:
    while True:
        receiver.recv(100)
        arrived += 1
except BlockingIOError:
    pass
print(f"{count} sent, {passed} passed, {arrived} arrived, in {seconds:.3f} s")
assert arrived == passed, "what passed has not arrived"
assert burst <= passed <= burst + 1 + seconds, f"expected {burst} and one for each second"
END
}
export HERE=$here

a_burst_passes_and_the_rest_is_dropped() {
    sieve -q load "$IN_IF" "odd=$WORK/peer,limit=1/50"
    burst 500 50
    sieve --json stats "$IN_IF" | jq -e '.interfaces[0].sets[0] |
        .action == "limit" and .limit == {"packets_per_second": 1, "burst": 50} and .packets == 500' >/dev/null
    sieve stats "$IN_IF" | grep -q 'over its limit: odd'
    sieve status "$IN_IF" | grep -q 'limit=1/50'
    [ "$(counter dropped.packets)" = "$(counter 'sets[0].over_limit.packets')" ]
}

# The same limit from a configuration.
a_configured_limit() {
    cat >"$WORK/xdp-sieve.toml" <<END
[service]
state-directory = "$WORK/state"
[[interface]]
name = "$IN_IF"
sets = ["odd"]
[set.odd]
sources = ["$WORK/peer"]
limit = "1/40"
END
    sieve -q apply "$WORK/xdp-sieve.toml"
    burst 300 40
    sieve status "$IN_IF" | grep -q 'limit=1/40'
    sieve apply "$WORK/xdp-sieve.toml" | grep -qx 'nothing to do'
    sed -i 's|1/40|1/60|' "$WORK/xdp-sieve.toml"
    sieve apply "$WORK/xdp-sieve.toml" | grep -q 'limit=1/40 -> limit=1/60'
    burst 300 60
    sed -i 's|^name|default = "drop"\nname|' "$WORK/xdp-sieve.toml"
    refused 3 sieve apply "$WORK/xdp-sieve.toml"
    sieve status "$IN_IF" | grep -q 'limit=1/60'
}

senseless_limits_are_refused() {
    local value
    for value in 0 -1 1.5 x '' 1/0 1/ /1 100000001 1/86401 1e30 18446744073709551616 1/2/3; do
        refused 2 sieve load "$IN_IF" "odd=$WORK/peer,limit=$value"
    done
    refused 2 sieve load "$IN_IF" "odd=$WORK/peer,limit=5" --default drop
    refused 2 sieve load "$IN_IF" "odd=$WORK/peer,limit=5,action=drop"
    [ -z "$(program_id)" ]
}

# Packets that came an hour after each other meet the limit at once, and the command says so.
replayed_packets_meet_it_at_once() {
    PYTHONPATH=$here python3 -B - "$WORK/pcap" <<'END'
import struct, sys
from traffic import udp_packet
frame = bytes(12) + b"\x08\0" + udp_packet("192.0.2.1", "203.0.113.1", b"", (1, 2))
with open(sys.argv[1], "wb") as out:
    out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for hour in range(9):
        out.write(struct.pack("<IIII", hour * 3600, 0, len(frame), len(frame)) + frame)
END
    echo 192.0.2.1 >"$WORK/one"
    "$SIEVE" --json replay "odd=$WORK/one,limit=1/2" --pcap "$WORK/pcap" >"$WORK/out" 2>"$WORK/err"
    jq -s -e 'map(.verdict) | .[:2] == ["pass", "pass"] and .[8] == "drop"' "$WORK/out" >/dev/null ||
        fail "$(cat "$WORK/out")"
    [ "$(grep -c 'at the pace of this replay' "$WORK/err")" = 1 ] || fail "says $(cat "$WORK/err")"
    "$SIEVE" replay "odd=$WORK/one" --pcap "$WORK/pcap" >"$WORK/out" 2>"$WORK/err"
    ! grep -q pace "$WORK/err" || fail "says $(cat "$WORK/err")"
}

ktap_run \
    "a burst passes and the rest is dropped" a_burst_passes_and_the_rest_is_dropped \
    "a limit from a configuration" a_configured_limit \
    "senseless limits are refused" senseless_limits_are_refused \
    "packets of a capture meet a limit at once" replayed_packets_meet_it_at_once
