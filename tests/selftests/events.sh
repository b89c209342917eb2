#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Sampled matches: as text, as JSON, as a capture that another program reads. Nothing is left behind.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
image "$WORK/a.sieve" src 203.0.113.1 203.0.113.2 2001:db8:a::1
image "$WORK/b.sieve" src 203.0.113.2

# control MEMBER: prints a member of status's object that says whether and how often samples are taken.
sampling() { sieve --json status "$IN_IF" | jq -r '.interfaces[0].sampling'; }

sampled_one_in() { [ "$(sampling)" = "$1" ]; }

# listen OUTPUT OPTIONS...: listens in the background until end_listening. Returns once samples are taken.
listen() {
    local output=$1
    shift
    # No shell in between, because a shell would not forward signals.
    (exec nsenter --net="/run/netns/$IN" "$SIEVE" "$@") >"$output" 2>"$WORK/remarks" &
    listener=$!
    await samples_are_taken
}
# A listener that failed to start has printed the reason.
samples_are_taken() {
    cat "$WORK/remarks" >"$WORK/awaited"
    [ "$(sampling)" != 0 ]
}

end_listening() {
    local status=0
    kill "-$1" "$listener"
    wait "$listener" || status=$?
    [ "$status" = 0 ] || fail "the listener ended with $status: $(cat "$WORK/remarks")"
    [ "$(sampling)" = 0 ] || fail "samples are still taken"
}

load_both() {
    attach
    sieve -q load "$IN_IF" "seen=$WORK/a.sieve,action=count" "bad=$WORK/b.sieve,action=drop"
}

some_packets() {
    verdicts "$@" <<END
pass udp 203.0.113.1 $IN4 1000 53
drop tcp 203.0.113.2 $IN4 1001 80
pass icmp 2001:db8:a::1 $IN6
pass udp 203.0.113.9 $IN4 1 2
END
}

text() {
    local stamp before
    load_both
    before=$(date +%s)
    listen "$WORK/lines" events "$IN_IF"
    some_packets
    end_listening INT
    [ "$(wc -l <"$WORK/lines")" = 9 ] || fail "$(cat "$WORK/lines")"
    [ "$(grep -c ' pass seen .* 203.0.113.1 198.51.100.2 1000 53 udp$' "$WORK/lines")" = 3 ] ||
        fail "$(cat "$WORK/lines")"
    [ "$(grep -c ' drop seen,bad .* 203.0.113.2 198.51.100.2 1001 80 tcp$' "$WORK/lines")" = 3 ] ||
        fail "$(cat "$WORK/lines")"
    grep -q '9 events, 0 lost' "$WORK/remarks" || fail "$(cat "$WORK/remarks")"
    # The time stamps are the wall clock's.
    stamp=$(date -d "$(head -n 1 "$WORK/lines" | cut -d' ' -f1)" +%s)
    [ "$stamp" -ge "$((before - 1))" ] && [ "$stamp" -le "$(($(date +%s) + 1))" ] || fail "at $stamp"
}

json() {
    load_both
    listen "$WORK/lines" --json events "$IN_IF"
    some_packets
    end_listening TERM
    jq -s -e '(.[:-1] | length == 9 and
        ([.[] | select(.set == "bad")] | length == 3 and all(.verdict == "drop" and .hits == ["seen", "bad"] and
            .key.src == "203.0.113.2" and .key.dport == 80 and .length > 50)) and
        ([.[] | select(.set == null)] | length == 6 and all(.verdict == "pass" and .hits == ["seen"])) and
        ([.[].time] | sort == .)) and
        (.[-1].summary | .events == 9 and .lost == 0 and .sample == 1)' "$WORK/lines" >/dev/null ||
        fail "$(cat "$WORK/lines")"
}

# Python alone reads the capture back: nanosecond pcap, Ethernet, at most 256 bytes of each packet.
pcap() {
    local before
    load_both
    before=$(date +%s)
    listen "$WORK/lines" events "$IN_IF" --pcap "$WORK/matches.pcap"
    verdicts <<END
drop udp 203.0.113.2 $IN4 7 8
drop udp 203.0.113.2 $IN4 7 9 size=1000
pass udp 203.0.113.9 $IN4 7 8
END
    end_listening INT
    [ ! -s "$WORK/lines" ] || fail "lines beside the capture"
    python3 - "$WORK/matches.pcap" "$before" <<'END'
import struct, sys, time
data = open(sys.argv[1], "rb").read()
magic, major, minor, _, _, snap, link = struct.unpack_from("<IHHiIII", data)
assert (magic, snap, link) == (0xA1B23C4D, 256, 1), (hex(magic), snap, link)
at, packets = 24, []
while at < len(data):
    seconds, nanoseconds, captured, length = struct.unpack_from("<IIII", data, at)
    assert int(sys.argv[2]) - 1 <= seconds <= time.time() + 1 and nanoseconds < 10**9
    packets.append((length, data[at + 16 : at + 16 + captured]))
    assert len(packets[-1][1]) == captured == min(length, 256), (captured, length)
    at += 16 + captured
assert len(packets) == 6, len(packets)
for length, head in packets:
    assert head[12:14] == b"\x08\x00" and head[26:30] == bytes([203, 0, 113, 2]), head
    sport, dport, bytes_above = struct.unpack_from("!HHH", head, 34)
    assert sport == 7 and length == 34 + bytes_above and dport == (9 if length > 1000 else 8), (sport, dport)
END
    # Our own replay reads the capture, too.
    sieve --json replay --pcap "$WORK/matches.pcap" "b=$WORK/b.sieve" |
        jq -s -e 'length == 6 and all(.verdict == "drop")' >/dev/null || fail "replay reads another capture"
}

# 3,000 matches, sampled one in ten: 300, within five sigma (82).
sample() {
    load_both
    listen "$WORK/lines" events "$IN_IF" --sample 10
    [ "$(sampling)" = 10 ] || fail "$(sampling) instead of 10"
    verdicts --repeat 3000 <<<"drop udp 203.0.113.2 $IN4 7 8"
    end_listening INT
    [ "$(wc -l <"$WORK/lines")" -gt 218 ] && [ "$(wc -l <"$WORK/lines")" -lt 382 ] ||
        fail "$(wc -l <"$WORK/lines") of 3000"
}

count() {
    local status=0
    load_both
    listen "$WORK/lines" events "$IN_IF" --count 4
    some_packets
    wait "$listener" || status=$?
    [ "$status" = 0 ] && [ "$(wc -l <"$WORK/lines")" = 4 ] || fail "status $status: $(cat "$WORK/lines")"
    [ "$(sampling)" = 0 ] || fail "samples are still taken"
}

# A new listener takes over and gets the samples. The earlier listener ends and says why.
take_over() {
    local first
    load_both
    listen "$WORK/first" events "$IN_IF"
    first=$listener
    cp "$WORK/remarks" "$WORK/first-remarks"
    listen "$WORK/second" events "$IN_IF" --sample 1
    wait "$first" || fail "the first listener failed"
    some_packets
    end_listening TERM
    [ "$(wc -l <"$WORK/second")" = 9 ] || fail "the second listener saw: $(cat "$WORK/second")"
    [ "$(wc -l <"$WORK/first")" = 0 ] || fail "the first listener saw: $(cat "$WORK/first")"
}

# A killed listener leaves its ring in the kernel. The next listener removes it.
killed() {
    load_both
    listen "$WORK/lines" events "$IN_IF"
    kill -KILL "$listener"
    wait "$listener" 2>/dev/null || true
    [ "$(sampling)" = 1 ] || fail "$(sampling)"
    some_packets
    listen "$WORK/lines" events "$IN_IF" --sample 3
    await sampled_one_in 3
    end_listening TERM
}

# Packets that no set decided, and those whose match verification rejected; --matches adds the matches.
others() {
    local non_member other
    address_lists 20261125 feed 300 non-members 300
    "$SIEVE" -q build --bits-per-key 4 --seed 5 -o "$WORK/bad.sieve" "$WORK/feed"
    said_of "$WORK/bad.sieve" "$WORK/non-members" >"$WORK/said"
    non_member=$(sed -n '/ drop$/{s/ .*//p;q}' "$WORK/said")
    other=$(sed -n '/ pass$/{s/ .*//p;q}' "$WORK/said")
    [ -n "$non_member" ] || fail "no false positive to be rejected"
    attach
    sieve -q load "$IN_IF" "bad=$WORK/bad.sieve,verify=$WORK/feed"
    mixed() {
        verdicts --repeat 1 <<END
drop udp $(head -n 1 "$WORK/feed") $IN4 1 2
pass udp $non_member $IN4 1 3
pass udp $other $IN4 1 4
END
    }
    listen "$WORK/lines" events "$IN_IF" --default
    mixed
    end_listening INT
    [ "$(grep -c ' pass .*default ' "$WORK/lines")" = 2 ] && [ "$(wc -l <"$WORK/lines")" = 2 ] ||
        fail "$(cat "$WORK/lines")"
    listen "$WORK/lines" --json events "$IN_IF" --rejected
    mixed
    end_listening INT
    jq -s -e --arg key "$non_member" '(.[:-1] | length == 1 and .[0].rejected == ["bad"] and .[0].hits == [] and
        .[0].by_default and .[0].key.src == $key)' "$WORK/lines" >/dev/null || fail "$(cat "$WORK/lines")"
    listen "$WORK/lines" events "$IN_IF" --rejected --matches
    mixed
    end_listening INT
    [ "$(wc -l <"$WORK/lines")" = 2 ] || fail "$(cat "$WORK/lines")"
}

# The program is gone: taken away, replaced by another, or with its interface. What came before is printed.
gone() {
    local status=0
    load_both
    listen "$WORK/lines" events "$IN_IF"
    verdicts --repeat 1 <<END
drop udp 203.0.113.2 $IN4 1 2
END
    sieve -q unload "$IN_IF"
    sieve -q load "$IN_IF" "bad=$WORK/b.sieve"
    wait "$listener" || status=$?
    [ "$status" = 1 ] || fail "ended with $status: $(cat "$WORK/remarks")"
    grep -q '1 event, 0 lost' "$WORK/remarks" && grep -q "$IN_IF: the program .* no longer runs" "$WORK/remarks" ||
        fail "$(cat "$WORK/remarks")"
    [ "$(grep -c ' drop seen,bad ' "$WORK/lines")" = 1 ] || fail "$(cat "$WORK/lines")"
}

refusals() {
    refused 1 sieve events "$IN_IF"
    load_both
    refused_with 2 'sample' sieve events "$IN_IF" --sample 0
    refused 3 sieve events "$IN_IF" --pcap "$WORK/no/such/folder"
    [ "$(sampling)" = 0 ] || fail "samples are taken"
}

ktap_run \
    "as text" text \
    "as JSON" json \
    "as a capture" pcap \
    "a sample" sample \
    "so many" count \
    "packets that do not match" others \
    "another listener takes over" take_over \
    "a listener that was killed" killed \
    "the program is gone" gone \
    "refusals" refusals
