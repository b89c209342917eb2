#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Countries and networks by name: what libmaxminddb says of an MMDB file is what a set holds, whatever its layout; the
# service follows the data; `explain` says what it says; a code that is not there changes nothing.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# shellcheck source=service.sh
. "$here/service.sh"
needs_daemon

# random_data SEED: prints 400 lines "PREFIX JSON" of disjoint random prefixes of both families, in six countries.
random_data() {
    python3 - "$1" <<'END'
import ipaddress, json, random, sys
random.seed(int(sys.argv[1]))
taken = []
while len(taken) < 400:
    v6 = random.random() < 0.4
    length = random.randint(20, 64) if v6 else random.randint(9, 32)
    bits = 0x2 << 124 | random.getrandbits(124) if v6 else random.getrandbits(32)
    behind = (128 if v6 else 32) - length
    network = (ipaddress.IPv6Network if v6 else ipaddress.IPv4Network)((bits >> behind << behind, length))
    # 6to4 and Teredo hold IPv4 once more.
    if v6 and any(network.overlaps(ipaddress.ip_network(one)) for one in ("2001::/32", "2002::/16")):
        continue
    if any(network.version == other.version and network.overlaps(other) for other in taken):
        continue
    taken.append(network)
    code = random.choice(("DE", "AT", "FR", "GB", "US", "JP"))
    country = {"iso_code": code, "names": {"en": "Country " + code}}
    other = random.choice(({}, {"continent": {"code": "EU"}}, {"registered_country": {"iso_code": "XK"}},
                           {"city": {"names": {"en": "x" * random.randint(0, 400)}}, "subdivisions": [country]}))
    print(network, json.dumps({**other, "country": country}))
END
}

# addresses_of DATA: addresses at the edges of each of its prefixes, inside and outside.
addresses_of() {
    python3 -c '
import ipaddress, sys
for line in open(sys.argv[1]):
    network = ipaddress.ip_network(line.split()[0])
    for at in (int(network[0]) - 1, int(network[0]), int(network[-1]), int(network[-1]) + 1):
        if 0 <= at <= int(type(network[0])(b"\xff" * (network.max_prefixlen // 8))):
            print(type(network[0])(at))' "$1" | sort -u
}

# libmaxminddb_says FILE CODE...: prints each address of standard input, with whether it is in one of these countries.
# mmdblookup asks the same library, but for one address: thousands of its processes took most of this script's time.
libmaxminddb_says() {
    python3 - "$1" "${*:2}" 3<&0 <<'END'
import ctypes, os, sys


class Entry(ctypes.Structure):
    _fields_ = [("file", ctypes.c_void_p), ("offset", ctypes.c_uint32)]


class Result(ctypes.Structure):
    _fields_ = [("found", ctypes.c_bool), ("entry", Entry), ("netmask", ctypes.c_uint16)]


# A value's union has 16 bytes, at their alignment, as one of its members is a number of 128 bits.
class Data(ctypes.Structure):
    _fields_ = [("has_data", ctypes.c_bool), ("padding", ctypes.c_char * 15), ("text", ctypes.c_void_p),
                ("rest", ctypes.c_char * 8), ("offset", ctypes.c_uint32), ("next", ctypes.c_uint32),
                ("size", ctypes.c_uint32), ("type", ctypes.c_uint32)]


library = ctypes.CDLL("libmaxminddb.so.0")
library.MMDB_lookup_string.restype = Result
file = ctypes.create_string_buffer(4096)  # more than an MMDB_s takes
assert library.MMDB_open(sys.argv[1].encode(), 1, file) == 0
path = (ctypes.c_char_p * 3)(b"country", b"iso_code", None)
for line in os.fdopen(3):
    address, wrong, other = line.strip(), ctypes.c_int(), ctypes.c_int()
    result = library.MMDB_lookup_string(file, address.encode(), ctypes.byref(wrong), ctypes.byref(other))
    code = Data()
    # Addresses of IPv6 are an error (9) in a file of IPv4.
    assert wrong.value == 0 and other.value == 0, (address, wrong, other)
    if result.found:
        assert library.MMDB_aget_value(ctypes.byref(result.entry), ctypes.byref(code), path) == 0
    # 2: a text
    is_in = code.has_data and code.type == 2 and ctypes.string_at(code.text, code.size).decode() in sys.argv[2].split()
    print(address, "present" if is_in else "absent")
END
}

# What libmaxminddb finds, address by address, against what a set of each layout and of two countries holds.
agrees_with_libmaxminddb() {
    local record ip
    for record in 24 28 32; do
        for ip in 4 6; do
            random_data "$record$ip" >"$WORK/data"
            [ "$ip" = 6 ] || sed -i '/^[^ ]*:/d' "$WORK/data"
            "$here/mmdb.py" "$WORK/data.mmdb" --record "$record" --ip "$ip" <"$WORK/data"
            sieve -q build --force --format geo:DE+AT -o "$WORK/set.sieve" "$WORK/data.mmdb"
            addresses_of "$WORK/data" >"$WORK/addresses"
            libmaxminddb_says "$WORK/data.mmdb" DE AT <"$WORK/addresses" >"$WORK/expected"
            grep -q present "$WORK/expected" && grep -q absent "$WORK/expected"
            sieve query "$WORK/set.sieve" --stdin <"$WORK/addresses" >"$WORK/answers" || [ $? -eq 1 ]
            diff "$WORK/expected" "$WORK/answers" >"$WORK/other" || fail "$record bits, IPv$ip: $(head "$WORK/other")"
        done
    done
}

# The same data as delegations, as rows and as MMDB make the same set.
layouts_agree() {
    printf '%s {"country": {"iso_code": "DE"}}\n' 192.0.2.0/25 203.0.113.4/30 2001:db8::/33 >"$WORK/data"
    "$here/mmdb.py" "$WORK/a" <"$WORK/data"
    printf '%s\n' '2|ripencc|1|3|1|20260102|+0100' 'ripencc|DE|ipv4|192.0.2.0|128|20010101|allocated' \
        'ripencc|DE|ipv4|203.0.113.4|4|20010101|assigned' 'ripencc|DE|ipv6|2001:db8::|33|20010101|allocated' >"$WORK/b"
    printf '%s\n' 192.0.2.0,192.0.2.127,DE 203.0.113.4,203.0.113.7,DE \
        2001:db8::,2001:db8:7fff:ffff:ffff:ffff:ffff:ffff,DE >"$WORK/c"
    gzip -k "$WORK/a"
    for one in a b c a.gz; do
        cp "$WORK/$one" "$WORK/same-name"
        sieve -q build --force --seed 1 --format geo:DE -o "$WORK/$one.sieve" "$WORK/same-name"
        cmp "$WORK/a.sieve" "$WORK/$one.sieve" || fail "$one"
    done
}

geo_configuration() {
    rm -rf "$STATE" "$LISTS"
    mkdir -p "$LISTS"
    "$here/mmdb.py" "$LISTS/countries.mmdb" --built 1767312000 <<END
$FRIEND/32 {"country": {"iso_code": "DE"}}
$MEMBER/32 {"country": {"iso_code": "AT"}}
END
    printf '%s,%s,64500,"Example, Inc."\n' "$STRANGER" "$STRANGER" "$FRIEND" "$FRIEND" >"$LISTS/asn.csv"
    cat >"$CONFIG" <<END
[service]
state-directory = "$STATE"
listen = ""
geo = ["lists/countries.mmdb", "lists/asn.csv"]
[[interface]]
name = "$IN_IF"
sets = ["bad"]
[set.bad]
sources = [${1:-\"country:AT\"}]
END
}

the_service_follows_the_data() {
    geo_configuration '"country:AT"'
    service_manager
    start
    await_line "$WORK/said" 'read as GeoLite2-Country of 2026-01-02'
    await dropped "$MEMBER"
    verdicts <<END
drop udp $MEMBER $IN4 1 2
pass udp $FRIEND $IN4 1 2
pass udp $STRANGER $IN4 1 2
END
    # Newer data, in which the country has moved.
    "$here/mmdb.py" "$LISTS/new" --built 1767398400 <<END
$FRIEND/32 {"country": {"iso_code": "DE"}}
$STRANGER/32 {"country": {"iso_code": "AT"}}
END
    mv "$LISTS/new" "$LISTS/countries.mmdb"
    await_line "$WORK/said" 'read as GeoLite2-Country of 2026-01-03'
    await dropped "$STRANGER"
    # Data without the country is no list.
    printf '%s {"country": {"iso_code": "TA"}}\n' "$FRIEND/32" | "$here/mmdb.py" "$LISTS/new"
    mv "$LISTS/new" "$LISTS/countries.mmdb"
    await_line "$WORK/said" 'no addresses of AT in .*/countries.mmdb and 1 more: the nearest of its 1 country: TA'
    dropped "$STRANGER"
    # Commands take the daemon's configuration.
    sieve explain "$IN_IF" "$FRIEND" >"$WORK/explained" || [ $? -eq 1 ]
    grep -qx '  of TA, AS64500 (Example, Inc.)' "$WORK/explained" || fail "$(cat "$WORK/explained")"
    sieve --json explain "$IN_IF" "$FRIEND" >"$WORK/explained" || [ $? -eq 1 ]
    [ "$(jq -c .origin "$WORK/explained")" = '["TA","AS64500 (Example, Inc.)"]' ] || fail "$(cat "$WORK/explained")"
    sieve build -o "$WORK/built.sieve" country:ta asn:64500
    sieve query "$WORK/built.sieve" "$FRIEND" "$STRANGER"
    stop
}
dropped() { echo "drop udp $1 $IN4 1 2" | verdicts >"$WORK/awaited"; }

mixed_sources() {
    geo_configuration '"country:AT", "asn:AS64500"'
    sieve -q apply "$CONFIG" 2>/dev/null
    verdicts <<END
drop udp $MEMBER $IN4 1 2
drop udp $FRIEND $IN4 1 2
drop udp $STRANGER $IN4 1 2
END
    sieve apply "$CONFIG" | grep -qi 'nothing to do' || fail "$(sieve apply "$CONFIG")"
}

what_is_not_there_changes_nothing() {
    geo_configuration '"country:UK"'
    refused 3 sieve apply "$CONFIG"
    geo_configuration '"country:AT", "x"'
    refused 3 sieve apply "$CONFIG"
    refused 2 sieve load "$IN_IF" de=country:Germany
    refused 2 sieve load "$IN_IF" de=country:DE
    refused 2 sieve load "$IN_IF" "de=country:DE,feed=$LISTS/asn.csv"
    refused 3 sieve build --format geo:DK -o "$WORK/x" "$LISTS/countries.mmdb"
    refused 3 sieve build --format geo -o "$WORK/x" "$LISTS/countries.mmdb"
    head -c 300 "$LISTS/countries.mmdb" >"$LISTS/cut.mmdb"
    refused 3 sieve build --format geo:DE -o "$WORK/x" "$LISTS/cut.mmdb"
    # Two rows are missing, and the last digit of a number of addresses.
    printf '%s\n' '2|ripencc|1|3|1|20260102|+0100' 'ripencc|*|ipv4|*|3|summary' \
        'ripencc|DE|ipv4|192.0.2.0|128|20010101|allocated' >"$LISTS/cut.txt"
    refused 3 sieve build --format geo:DE -o "$WORK/x" "$LISTS/cut.txt"
    printf 'ripencc|DE|ipv4|203.0.113.0|25' >>"$LISTS/cut.txt"
    refused 3 sieve build --format geo:DE -o "$WORK/x" "$LISTS/cut.txt"
    [ ! -e "$WORK/x" ]
}

ktap_run \
    "sets hold what libmaxminddb finds" agrees_with_libmaxminddb \
    "all layouts mean the same" layouts_agree \
    "the service follows the data, and commands know it" the_service_follows_the_data \
    "countries and networks in one set" mixed_sources \
    "what is not there changes nothing" what_is_not_there_changes_nothing
