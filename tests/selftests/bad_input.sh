#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Bad input gives the right exit code and one line that says what is wrong, and changes nothing.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
image "$WORK/good.sieve" src 203.0.113.1 203.0.113.2 203.0.113.3
SIZE=$(stat -c %s "$WORK/good.sieve")

# Every command that reads a set must refuse it, and the program in force must stay as it was.
# set_refused CODE FILE
set_refused() {
    local before
    attach
    sieve -q load "$IN_IF" "bad=$WORK/good.sieve"
    before=$(state)
    refused "$1" sieve swap "$IN_IF" "bad=$2"
    refused "$1" sieve load "$IN_IF" "bad=$2"
    # Not even the sets before and after the bad one are loaded.
    refused "$1" sieve load --default drop "$IN_IF" "other=$WORK/good.sieve" "bad=$2" "more=$WORK/good.sieve"
    unchanged "$before"
    verdicts <<END
drop udp 203.0.113.1 $IN4 1 2
pass udp 203.0.113.9 $IN4 1 2
END
    # On an interface without a program, the command leaves none.
    reset_interfaces
    refused "$1" sieve load "$IN_IF" "bad=$2"
    [ -z "$(program_id)" ] || fail "a load that failed has attached the program"
}

# build_refused FEED...: the build writes no image, and leaves an existing one alone.
build_refused() {
    rm -f "$WORK/new.sieve"
    refused 3 sieve build -o "$WORK/new.sieve" "$@"
    [ ! -e "$WORK/new.sieve" ] || fail "an image was written"
    cp "$WORK/good.sieve" "$WORK/old.sieve"
    refused 3 sieve build -o "$WORK/old.sieve" "$@"
    cmp "$WORK/good.sieve" "$WORK/old.sieve" || fail "the old image was overwritten"
    [ -z "$(find "$WORK" -name '*.sieve?*')" ] || fail "left behind: $(find "$WORK" -name '*.sieve?*')"
}

malformed_line() {
    printf '%s\n' "# comment" 203.0.113.1 "203.0.113.256 7" 203.0.113.3 >"$WORK/feed"
    build_refused "$WORK/feed"
    set_refused 3 "$WORK/feed"
    # With the option, the build counts the line and goes on.
    sieve -q build --skip-invalid -o "$WORK/some.sieve" "$WORK/feed" 2>/dev/null
    [ "$(sieve --json inspect "$WORK/some.sieve" | jq -c '[.keys, .skipped_lines]')" = '[2,1]' ] ||
        fail "the malformed line was not counted"
}

html_page() {
    printf '%s\n' '<!DOCTYPE html>' '<title>203.0.113.1</title>' >"$WORK/feed"
    build_refused "$WORK/feed"
    set_refused 3 "$WORK/feed"
    refused 3 sieve build --skip-invalid -o "$WORK/new.sieve" "$WORK/feed"
}

empty_feed() {
    printf '%s\n' "# nothing" "" "; here" >"$WORK/feed"
    build_refused "$WORK/feed"
    : >"$WORK/feed"
    build_refused "$WORK/feed"
    set_refused 3 "$WORK/feed"
}

binary_feed() {
    head -c 4096 "$OBJECT" >"$WORK/feed"
    build_refused "$WORK/feed"
    set_refused 3 "$WORK/feed"
}

# The line never ends, so only its first bytes can be judged.
endless_line() {
    refused 3 sieve build -o "$WORK/new.sieve" /dev/zero
    refused 3 sieve build -o "$WORK/new.sieve" - < <(tr '\0' x </dev/zero)
}

# A protocol that is an extension header's in IPv6, and one that is not.
ipv6_protocols() {
    printf '%s\n' "2001:db8::1 139" "192.0.2.1 51" "2001:db8::1 51" >"$WORK/feed"
    refused 3 sieve build --key src,proto \
        -o "$WORK/new.sieve" "$WORK/feed"
}

# A terminal must not obey an argument.
control_characters() {
    local evil=$'\e[31mx'
    refused 2 sieve load "$IN_IF" "$evil=$WORK/good.sieve"
    refused 4 sieve status "$evil"
    refused 2 sieve "$evil"
    refused 2 sieve load --default "$evil" "$IN_IF" "bad=$WORK/good.sieve"
}

missing_file() {
    build_refused "$WORK/nowhere"
    set_refused 3 "$WORK/nowhere"
}

directory() {
    mkdir -p "$WORK/folder"
    build_refused "$WORK/folder"
    set_refused 3 "$WORK/folder"
}

truncated() {
    local size
    for size in 4 63 64 320 $((SIZE - 64)) $((SIZE - 1)); do
        head -c "$size" "$WORK/good.sieve" >"$WORK/cut.sieve"
        refused 3 sieve inspect "$WORK/cut.sieve"
        refused 3 sieve query "$WORK/cut.sieve" 203.0.113.1
    done
    set_refused 3 "$WORK/cut.sieve"
}

too_long() {
    { cat "$WORK/good.sieve" && head -c 64 /dev/zero; } >"$WORK/long.sieve"
    refused 3 sieve inspect "$WORK/long.sieve"
    set_refused 3 "$WORK/long.sieve"
}

# Flips one bit, anywhere: kind, geometry, hash key, checksum, statistics, filter, witnesses.
flip() {
    python3 -c '
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[int(sys.argv[3])] ^= 1 << int(sys.argv[4])
open(sys.argv[2], "wb").write(data)' "$WORK/good.sieve" "$WORK/flipped.sieve" "$1" "$2"
}
flipped() {
    local at
    for at in 4 5 6 7 8 16 64 72 80 88 128 256 320 383 384 $((SIZE - 64)) $((SIZE - 1)); do
        flip "$at" $((at % 8))
        refused_with 3 'flipped\.sieve: ' sieve inspect "$WORK/flipped.sieve"
    done
    flip 320 5
    set_refused 3 "$WORK/flipped.sieve"
}

# An image of another format or byte order is not recognised as an image, so it can only be a feed.
foreign_image() {
    flip 0 1
    refused 3 sieve inspect "$WORK/flipped.sieve"
    set_refused 3 "$WORK/flipped.sieve"
    python3 -c '
import sys
data = bytearray(open(sys.argv[1], "rb").read())
for at in range(0, len(data), 4): data[at:at + 4] = data[at:at + 4][::-1]
open(sys.argv[2], "wb").write(data)' "$WORK/good.sieve" "$WORK/swapped.sieve"
    set_refused 3 "$WORK/swapped.sieve"
}

# An image whose checksum is right but that misses its own members fails the preflight. Making one takes the real
# checksum, so the unit tests cover it. Here, an image is given where a feed is expected.
image_as_feed() { build_refused "$WORK/good.sieve"; }

missing_interface() {
    refused 4 sieve load nowhere0 "bad=$WORK/good.sieve"
    refused 4 sieve swap nowhere0 "bad=$WORK/good.sieve"
    refused 4 sieve remove nowhere0 bad
    refused 4 sieve unload nowhere0
    refused 4 sieve status nowhere0
    refused 4 sieve stats nowhere0
}

# A variable of a script that is not set is not the interface that has the program, and least of all every interface.
# Each command that takes IFACE is here; @ stands for the empty text.
empty_interface() {
    local before command commands=() line named
    local -a words lines=(
        "load @ bad=$WORK/good.sieve" "swap @ bad=$WORK/good.sieve" "add @ more=$WORK/good.sieve" "join @ bad=-"
        "set @ bad action=count" "default @ drop" "replies @ pass" "confirm @" "confirm @ --take-back" "remove @ bad"
        "insert @ bad 203.0.113.9" "delete @ bad 203.0.113.1" "expire @" "list @ bad" "unload @" "status @" "top @"
        "pause @ --config $WORK/no.toml" "resume @ --config $WORK/no.toml" "stats @ --reset" "explain @ 203.0.113.1"
        "events @ --pcap $WORK/no/folder/x"
    )
    attach
    sieve -q load "$IN_IF" "bad=$WORK/good.sieve"
    before=$(state)
    for line in "${lines[@]}"; do
        read -ra words <<<"$line"
        commands+=("${words[0]}")
        refused 2 sieve "${words[@]/#@/}"
    done
    unchanged "$before"
    named=$("$SIEVE" --help | sed -n '/^Commands:/,$s/^  \([a-z]*\) .*/\1/p' | while read -r command; do
        if "$SIEVE" "$command" --help | grep -q '^  IFACE'; then echo "$command"; fi
    done | sort)
    diff <(printf '%s\n' "${commands[@]}" | sort -u) <(echo "$named") || fail "left: tested here; right: take IFACE"
}

# Nor is another argument that is empty one that was left out.
empty_texts() {
    local before
    attach
    sieve -q load "$IN_IF" "bad=$WORK/good.sieve"
    before=$(state)
    refused 2 sieve unload "$IN_IF" --hook ""
    refused 2 sieve remove "$IN_IF" ""
    refused 2 sieve load -m "" "$IN_IF" "bad=$WORK/good.sieve"
    refused 2 sieve load --admin-ports "" "$IN_IF" "bad=$WORK/good.sieve"
    refused 2 sieve apply --config ""
    refused 2 sieve unban --all --reason ""
    refused 2 sieve query "" 203.0.113.1
    unchanged "$before"
}

nothing_attached() {
    refused 1 sieve swap "$IN_IF" "bad=$WORK/good.sieve"
    refused 1 sieve remove "$IN_IF" bad
    refused 1 sieve unload "$IN_IF"
    refused 1 sieve stats "$IN_IF"
    [ -z "$(program_id)" ] || fail "attached something"
}

usage() {
    local before
    attach
    sieve -q load "$IN_IF" "bad=$WORK/good.sieve"
    before=$(state)
    refused 2 sieve
    refused 2 sieve fly
    refused 2 sieve --json laod "$IN_IF"
    refused_with 2 'xdp-sieve load --help' sieve load
    refused_with 2 'xdp-sieve load --help' sieve load "$IN_IF"
    refused_with 2 'xdp-sieve load --help' sieve load --fast "$IN_IF" "bad=$WORK/good.sieve"
    refused 2 sieve load "$IN_IF" bad
    refused 2 sieve load "$IN_IF" "b d=$WORK/good.sieve"
    refused 2 sieve load "$IN_IF" "..=$WORK/good.sieve"
    refused 2 sieve load "$IN_IF" "$(printf 'x%.0s' {1..32})=$WORK/good.sieve"
    refused 2 sieve load "$IN_IF" "bad=$WORK/good.sieve,action=eat"
    refused 2 sieve load "$IN_IF" "bad=$WORK/good.sieve" "bad=$WORK/good.sieve"
    refused 2 sieve load --default count "$IN_IF" "bad=$WORK/good.sieve"
    refused 2 sieve load --replies drop --max-flows 5000 "$IN_IF" "bad=$WORK/good.sieve"
    refused 2 sieve replies "$IN_IF" drop --max-flows 5000
    refused 2 sieve load --max-flows 5000 "$IN_IF" "bad=$WORK/good.sieve"
    refused 2 sieve load -m fast "$IN_IF" "bad=$WORK/good.sieve"
    refused 2 sieve swap "$IN_IF" "bad=$WORK/good.sieve,action=pass"
    refused 2 sieve build --key source -o "$WORK/new.sieve" "$DATA/ipsum.txt"
    refused 2 sieve build --kind round -o "$WORK/new.sieve" "$DATA/ipsum.txt"
    refused_with 2 'xdp-sieve build --help' sieve build "$DATA/ipsum.txt"
    refused 2 sieve build --fpr many -o "$WORK/new.sieve" "$DATA/ipsum.txt"
    ln -s new.sieve "$WORK/link"
    refused 2 sieve build --skip-invalid -o "$WORK/new.sieve" --skipped "$WORK/./new.sieve" "$DATA/ipsum.txt"
    touch "$WORK/new.sieve"
    refused 2 sieve build --skip-invalid -o "$WORK/link" --skipped "$WORK/new.sieve" "$DATA/ipsum.txt"
    rm "$WORK/link" "$WORK/new.sieve"
    refused 2 sieve load "$IN_IF" "bad=$DATA/ipsum.txt,fpr=many"
    refused 2 sieve load "$IN_IF" "bad=$DATA/ipsum.txt,fpr=2"
    refused 2 sieve swap "$IN_IF" "bad=$DATA/ipsum.txt,bits-per-key=1e9"
    refused 2 sieve load "$IN_IF" "bad=$DATA/ipsum.txt,fpr=1e-3,memory=1M"
    refused 2 sieve load "$IN_IF" "bad=$DATA/ipsum.txt,speed=2"
    refused 2 sieve load "$IN_IF" "bad=$DATA/ipsum.txt,skip-invalid=yes"
    refused 2 sieve load "$IN_IF" "bad=$DATA/ipsum.txt,fpr"
    refused 2 sieve load "$IN_IF" "bad=$WORK/good.sieve,kind=bloom,fpr=1e-3"
    refused 2 sieve load "$IN_IF" "bad=$WORK/good.sieve,feed=$DATA/ipsum.txt"
    refused 2 sieve query "$WORK/good.sieve"
    unchanged "$before"
    [ ! -e "$WORK/new.sieve" ] || fail "an image was written"
}

bad_keys() {
    refused 3 sieve query "$WORK/good.sieve" 203.0.113
    refused 3 sieve query "$WORK/good.sieve" "203.0.113.1,203.0.113.2"
}

unwritable() {
    refused 3 sieve build -o "$WORK/no/folder/new.sieve" "$DATA/ipsum.txt"
    cp "$DATA/ipsum.txt" "$WORK/list"
    refused 3 sieve build -o "$WORK/list" "$WORK/list"
    refused 3 sieve build -o "$WORK/list" --except "$WORK/list" "$DATA/ipsum.txt"
    refused 3 sieve build -o "$WORK/new.sieve" --skip-invalid --skipped "$WORK/list" "$WORK/list"
    refused 3 sieve build -o "$WORK/new.sieve" --skip-invalid --except "$WORK/list" --skipped "$WORK/list" \
        "$DATA/ipsum.txt"
    refused 3 sieve build -o "$WORK/new.sieve" --skip-invalid --force --except "$WORK/list" --skipped "$WORK/list" \
        "$DATA/ipsum.txt"
    cmp "$DATA/ipsum.txt" "$WORK/list"
}

# Linux allows names that JSON does not. Bytes that are not UTF-8 are replaced, and the answer stays valid JSON.
strange_name() {
    local image=$WORK/$'\xff.sieve'
    sieve --json build -o "$image" "$DATA/ipsum.txt" >"$WORK/out"
    sieve --json inspect "$image" >>"$WORK/out"
    sieve --json query "$image" 203.0.113.1 >>"$WORK/out" || true
    [ "$(jq -s 'length' "$WORK/out")" = 3 ] || fail "not three answers: $(cat "$WORK/out")"
}

# A command that takes minutes says at once that it would fail.
bench_in_vain() {
    refused 2 inside "$IN" "$BENCH" --keys 1e4,x
    refused 2 inside "$IN" "$BENCH" --prefixes table:x
    refused 3 inside "$IN" "$BENCH" --prefixes "$WORK/no-such-list"
    refused 3 inside "$IN" "$BENCH" --quick -o "$WORK/no/folder/out.json"
}

# A command that succeeds, on the other hand, prints nothing on standard error.
good_input() {
    attach
    sieve load "$IN_IF" "bad=$WORK/good.sieve" >/dev/null 2>"$WORK/err"
    sieve swap "$IN_IF" "bad=$WORK/good.sieve" >/dev/null 2>>"$WORK/err"
    sieve query "$WORK/good.sieve" 203.0.113.1 >"$WORK/out" 2>>"$WORK/err"
    [ "$(cat "$WORK/out")" = "203.0.113.1 present" ] || fail "query says $(cat "$WORK/out")"
    local status=0
    sieve query "$WORK/good.sieve" 203.0.113.1 203.0.113.77 >"$WORK/out" 2>>"$WORK/err" || status=$?
    [ "$status" -eq 1 ] || fail "exit code $status for an absent key"
    [ ! -s "$WORK/err" ] || fail "on standard error: $(cat "$WORK/err")"
}

deep_nesting() {
    local command
    python3 -c 'print(".".join(["a"] * 150000) + " = 1")' >"$WORK/dots.toml"
    python3 -c 'print("[" + ".".join(["a"] * 150000) + "]")' >"$WORK/head.toml"
    python3 -c 'print("a = " + "[" * 150000)' >"$WORK/brackets.toml"
    python3 -c 'for i in range(200): print(".".join(["a"] * 1000) + " = [\n{", end="")' >"$WORK/lines.toml"
    for command in config apply; do
        refused 3 "$SIEVE" "$command" "$WORK/dots.toml"
        refused 3 "$SIEVE" "$command" "$WORK/head.toml"
        refused 3 "$SIEVE" "$command" "$WORK/brackets.toml"
        refused 3 "$SIEVE" "$command" "$WORK/lines.toml"
    done
    python3 -c 'print("[" * 1000000 + "]" * 1000000)' >"$WORK/deep.json"
    refused 3 "$SIEVE" build --format json -o "$WORK/deep.sieve" "$WORK/deep.json"
    python3 -c 'print("{\"ip\":" * 1000000 + "1" + "}" * 1000000)' >"$WORK/deep.ndjson"
    refused 3 "$SIEVE" build -o "$WORK/deep.sieve" "$WORK/deep.ndjson"
}

ktap_run \
    "malformed line" malformed_line \
    "HTML page" html_page \
    "empty feed" empty_feed \
    "binary file as a feed" binary_feed \
    "endless line" endless_line \
    "extension headers as protocols" ipv6_protocols \
    "control characters in arguments" control_characters \
    "missing file" missing_file \
    "directory" directory \
    "truncated image" truncated \
    "image with something behind it" too_long \
    "image with one bit flipped" flipped \
    "foreign image" foreign_image \
    "image as a feed" image_as_feed \
    "missing interface" missing_interface \
    "empty interface" empty_interface \
    "other empty arguments" empty_texts \
    "nothing attached" nothing_attached \
    "usage" usage \
    "bad keys" bad_keys \
    "unwritable output" unwritable \
    "name that is no UTF-8" strange_name \
    "benchmark in vain" bench_in_vain \
    "deep nesting" deep_nesting \
    "good input" good_input
