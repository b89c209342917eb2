#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Lists in the formats in which they are published (tests/data/formats): the keys are those that a few lines of Python
# find, the command says how it read the list, and lists that would be silently misread are refused.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
FORMATS=$DATA/formats

# members LIST PYTHON [OPTION...]: builds LIST; the image holds each key that PYTHON prints, and as many entries.
members() {
    local list=$FORMATS/$1 code=$2 entries
    shift 2
    [ $# -gt 0 ] || set -- --format auto
    sieve -q build --json "$@" -o "$WORK/list.sieve" --force "$list" >"$WORK/built.json" 2>"$WORK/said"
    python3 -c "import csv, io, json, re, sys; text = open(sys.argv[1]).read()
$code" "$list" >"$WORK/expected"
    entries=$(wc -l <"$WORK/expected")
    [ "$entries" -gt 0 ] || fail "Python finds no entry in $list"
    [ "$(jq .entries "$WORK/built.json")" -eq "$entries" ] || fail "$list: $(jq .entries "$WORK/built.json") entries"
    sieve query "$WORK/list.sieve" --stdin <"$WORK/expected" >"$WORK/answers"
    [ "$(grep -c ' present$' "$WORK/answers")" -eq "$entries" ] || fail "$list: $(cat "$WORK/answers")"
}

# The first address of each entry; Python's own readers find the entries.
lists_are_counted() {
    members dshield.txt '
for line in text.splitlines():
    if line[:1].isdigit(): print(line.split("\t")[0])'
    members hosts.txt '
for line in text.splitlines():
    words = line.split("#")[0].split()
    if len(words) > 1 and words[0] in ("192.0.2.10", "2001:db8::10"): print(words[0])'
    members ipset.txt 'print("\n".join(re.findall(r"^add \S+ ([0-9.]+)", text, re.M)))'
    members nft.txt '
inside = text[text.index("elements"):]
print("\n".join(re.findall(r"[\s,{]((?:\d+\.){3}\d+)", re.sub("\"[^\"]*\"", "", inside))))'
    members aws.json '
data = json.loads(text)
for one in data["prefixes"]: print(one["ip_prefix"].split("/")[0])
for one in data["ipv6_prefixes"]: print(one["ipv6_prefix"].split("/")[0])'
    members google.json '
for one in json.loads(text)["prefixes"]: print(next(v for k, v in one.items() if k.endswith("Prefix")).split("/")[0])'
    members cloudflare.json '
for name in ("ipv4_cidrs", "ipv6_cidrs"):
    for one in json.loads(text)["result"][name]: print(one.split("/")[0])'
    members feodo.csv '
for row in csv.DictReader(line for line in io.StringIO(text) if not line.startswith("#")): print(row["dst_ip"])'
    members crowdsec.csv '
for row in csv.DictReader(io.StringIO(text)): print(row["ip"].split(":", 1)[1].split("/")[0])'
    members peerguardian.p2p '
for line in text.splitlines():
    if not line.startswith("#"): print(line.rsplit(":", 1)[1].split("-")[0])'
    members netmasks.txt 'print("\n".join(line.split("/")[0] for line in text.splitlines()))'
    members firehol.netset '
print("\n".join(line.split("/")[0] for line in text.splitlines() if not line.startswith("#")))'
    members spamhaus.txt '
print("\n".join(line.split("/")[0] for line in text.splitlines() if not line.startswith(";")))'
    members array.json 'print("\n".join(one.split("/")[0] for one in json.loads(text)))'
    members nft.json '
for part in json.loads(text)["nftables"]:
    for one in part.get("set", {}).get("elem", []):
        one = one.get("elem", one).get("val", one) if isinstance(one, dict) else one
        if isinstance(one, dict): one = one["range"][0] if "range" in one else one["prefix"]["addr"]
        print(one)'
    members ipfilter.dat '
for line in text.splitlines():
    if line[:1].isdigit() and int(line.split(",")[1]) < 128:
        print(".".join(str(int(part)) for part in line.split("-")[0].strip().split(".")))'
    members abusech.csv '
rows = [re.sub("^# *", "", line) for line in text.splitlines() if line.count(",") > 1]
for row in csv.DictReader(rows, skipinitialspace=True): print(row["DstIP"])'
    members two-addresses.csv '
for row in csv.DictReader(io.StringIO(text), delimiter=";"): print(row["src_ip"])' --format csv:src_ip
    members unknown.json 'print("\n".join(one.split("/")[0] for one in json.loads(text)["hooks"]))' --format json:hooks
    members ipset-two.txt 'print("\n".join(re.findall(r"^add good ([0-9.]+)", text, re.M)))' --format ipset:good
    members ports.txt '
for line in text.splitlines():
    host, port = re.fullmatch(r"(.*?)[:\s]+(\d+)\D*", line).groups()
    print(host.strip("[]"), port)' --key dst,dport
    members feodo.csv '
for row in csv.DictReader(line for line in io.StringIO(text) if not line.startswith("#")):
    print(row["dst_ip"], row["dst_port"])' --key dst,dport --format csv:dst_ip+dst_port
    members ipset-ports.txt '
for address, proto, port in re.findall(r"^add \S+ ([^,\s]+),(\w+):(\d+)", text, re.M): print(address, port, proto)' \
        --key dst,dport,proto
    members nft-ports.txt '
for address, port, proto in re.findall(r"((?:\d+\.){3}\d+) \. (\w+) \. (\w+)", text):
    print(address, *((port, proto) if port.isdigit() else (proto, port)))' --key dst,dport,proto
}

it_says_how_it_read_a_list() {
    told sieve build -o "$WORK/said.sieve" "$FORMATS/dshield.txt"
    # The blocks hold the namespace's own address.
    told sieve load "$IN_IF" "bad=$FORMATS/dshield.txt" --allow-lockout
    told sieve swap "$IN_IF" "bad=$FORMATS/dshield.txt" --allow-lockout
    printf '%s\n' "[service]" "state-directory = \"$WORK/state\"" "[[interface]]" "name = \"$IN_IF\"" 'sets = ["bad"]' \
        "[set.bad]" "sources = [\"$FORMATS/dshield.txt\"]" "[set.bad.guards]" "protect-host = false" >"$WORK/told.toml"
    told sieve apply "$WORK/told.toml"
}
told() {
    "$@" >"$WORK/said" 2>&1
    grep -q 'dshield.txt: read as DShield blocks (format dshield)' "$WORK/said" || fail "$*: $(cat "$WORK/said")"
}

# Two prefixes in one entry: what they would cost is told before it is too much.
two_prefixes() {
    local i
    for i in $(seq 8 23); do echo "10.0.0.0/$i 172.16.0.0/$((32 - i / 2))"; done >"$WORK/pairs"
    refused 3 sieve build --key src,dst --max-probes 2 --max-keys 1000 -o "$WORK/x.sieve" "$WORK/pairs"
    sieve build --key src,dst -o "$WORK/pairs.sieve" "$WORK/pairs" | grep -q 'src/' || fail "the probes are not shown"
}

# Entries of several fields that look like the formats of single addresses.
several_fields_are_plain() {
    echo '2001:db8::1 2001:db8:1::5-2001:db8:1::9' >"$WORK/pairs"
    sieve -q build --force --key src,dst -o "$WORK/pairs.sieve" "$WORK/pairs"
    sieve query "$WORK/pairs.sieve" '2001:db8::1 2001:db8:1::7'
    printf '%s\n' '192.0.2.0/24,443' '198.51.100.7,*' >"$WORK/pairs"
    sieve -q build --force --key src,dport -o "$WORK/pairs.sieve" "$WORK/pairs"
    sieve query "$WORK/pairs.sieve" '192.0.2.9 443' '198.51.100.7 80'
}

the_kernel_drops_a_dshield_block() {
    attach
    sieve -q load "$IN_IF" "bad=$FORMATS/dshield.txt" --allow-lockout 2>/dev/null
    verdicts <<END
drop udp 192.0.2.0 $IN4 1 2
drop udp 192.0.2.77 $IN4 1 2
drop udp 192.0.2.255 $IN4 1 2
pass udp 203.0.113.127 $IN4 1 2
drop udp 203.0.113.128 $IN4 1 2
END
}

traps_are_refused() {
    grep '^192' "$FORMATS/dshield.txt" >"$WORK/block"
    refused 3 sieve build --format plain -o "$WORK/x.sieve" "$WORK/block"
    refused 3 sieve build -o "$WORK/x.sieve" "$FORMATS/hosts-names.txt"
    printf '192.0.2.1 x\n192.0.2.2 192.0.2.3\n' >"$WORK/two"
    refused 3 sieve build -o "$WORK/x.sieve" "$WORK/two"
    refused 3 sieve build -o "$WORK/x.sieve" "$FORMATS/two-addresses.csv"
    printf '127.0.0.1 x\n192.0.2.1 y\n' >"$WORK/names"
    refused 3 sieve build -o "$WORK/x.sieve" "$WORK/names"
    printf '%s\n' 192.0.2.0-192.0.2.255,230,XX 198.51.100.0-198.51.100.9,10,XX >"$WORK/levels"
    refused 3 sieve build -o "$WORK/x.sieve" "$WORK/levels"
    printf '192.0.2.256,x\n192.0.2.1,y\n' >"$WORK/first"
    refused 3 sieve build --format csv:1 -o "$WORK/x.sieve" "$WORK/first"
    printf 'network,prefixlen\n192.0.2.0,24\n' >"$WORK/lengths"
    refused 3 sieve build -o "$WORK/x.sieve" "$WORK/lengths"
    printf 'start,end\n192.0.2.1,192.0.2.9\n' >"$WORK/ends"
    refused 3 sieve build -o "$WORK/x.sieve" "$WORK/ends"
    echo '[{"ip": "192.0.2.0", "prefixlen": 24}]' >"$WORK/members"
    refused 3 sieve build -o "$WORK/x.sieve" "$WORK/members"
    refused 2 sieve build --format xml -o "$WORK/x.sieve" "$WORK/two"
    [ ! -e "$WORK/x.sieve" ]
}

# Keys on standard input, as `ipset save` has them.
standard_input_takes_any_format() {
    printf '%s\n' "create bad hash:ip family inet" "add bad 203.0.113.9" >"$WORK/saved"
    echo 192.0.2.1 >"$WORK/list"
    attach
    sieve -q load "$IN_IF" "bad=$WORK/list"
    sieve insert "$IN_IF" bad --stdin <"$WORK/saved" 2>"$WORK/said"
    grep -q 'standard input: read as .ipset save.' "$WORK/said" || fail "$(cat "$WORK/said")"
    verdicts <<<"drop udp 203.0.113.9 $IN4 1 2"
    sieve -q delete "$IN_IF" bad --stdin <"$WORK/saved"
    verdicts <<<"pass udp 203.0.113.9 $IN4 1 2"
    sieve -q build -o "$WORK/saved.sieve" "$WORK/saved"
    sieve query "$WORK/saved.sieve" --stdin <"$WORK/saved" | grep -q "^203.0.113.9 present$"
}

a_set_takes_a_format() {
    sieve -q load "$IN_IF" "c2=$FORMATS/feodo.csv,key=src,dport,format=csv:dst_ip+dst_port" 2>/dev/null
    verdicts <<END
drop tcp 192.0.2.9 $IN4 1 443
pass tcp 192.0.2.9 $IN4 1 80
drop tcp 192.0.2.10 $IN4 1 8080
END
}

ktap_run \
    "entries are those that Python counts" lists_are_counted \
    "the format that was decided is told" it_says_how_it_read_a_list \
    "two prefixes in one entry" two_prefixes \
    "entries of several fields are plain" several_fields_are_plain \
    "DShield blocks are dropped whole" the_kernel_drops_a_dshield_block \
    "lists that look like another are refused" traps_are_refused \
    "standard input takes any format" standard_input_takes_any_format \
    "a set of load takes a format" a_set_takes_a_format
