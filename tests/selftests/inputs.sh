#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# One list in many forms: file, pipe, FIFO, standard input, slow writers, many small files. Every command reads all of
# it, whatever the form, or says why it cannot.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# Longer than a pipe holds (64 KiB), so that a command which opens the list twice cannot read all of it.
address_lists 11 plain 6000 few 40
{ echo "# a list" && sed '0~11s/$/ # why/; 0~7s/$/\r/; 0~13s/^/\n/' "$WORK/plain"; } >"$WORK/list"
[ "$(stat -c %s "$WORK/list")" -gt 80000 ] || exit 1
DRESSES="file pipe redirected dev_stdin fifo substitution slow slow_fifo"

# Writes standard input byte by byte, and after some thousands of bytes, which take most of the time, in short pieces.
# Their length, a prime, lets a piece end at every place of a line.
slowly() {
    python3 -c '
import os, sys
text = sys.stdin.buffer.read()
for byte in text[:4096]: os.write(1, bytes([byte]))
for at in range(4096, len(text), 61): os.write(1, text[at:at + 61])'
}

# dressed FORM LIST COMMAND...: runs the command with each @ in it replaced by a name of the list in that form.
dressed() {
    local dress=$1 list=$2 status=0 fifo=$WORK/fifos/${2##*/}
    shift 2
    mkdir -p "$WORK/fifos"
    rm -f "$fifo"
    case $dress in
    file) "${@//@/$list}" ;;
    pipe) cat -- "$list" | "${@//@/-}" ;;
    redirected) "${@//@/-}" <"$list" ;;
    dev_stdin) cat -- "$list" | "${@//@//dev/stdin}" ;;
    substitution) "${@//@//dev/fd/9}" 9< <(cat "$list") ;;
    slow) slowly <"$list" | "${@//@/-}" ;;
    fifo | slow_fifo)
        mkfifo "$fifo"
        if [ "$dress" = fifo ]; then cat "$list" >"$fifo" & else slowly <"$list" >"$fifo" & fi
        "${@//@/$fifo}" || status=$?
        kill $! 2>/dev/null || true # the command may not have opened it
        wait $! 2>/dev/null || true
        return "$status"
        ;;
    esac
}

# Prints the image without its label, which contains the list's name, and without the checksum over the label.
bytes_of() {
    python3 -c '
import hashlib, sys
data = bytearray(open(sys.argv[1], "rb").read())
data[136:144] = bytes(8)
data[320:384] = bytes(64)
print(hashlib.sha256(data).hexdigest())' "$1"
}

builds_the_same() {
    local dress threads expected
    "$SIEVE" -q build --seed 7 -o "$WORK/expected.sieve" "$WORK/list"
    [ "$("$SIEVE" --json inspect "$WORK/expected.sieve" | jq .keys)" = 6000 ] || fail "the file itself lost keys"
    expected=$(bytes_of "$WORK/expected.sieve")
    for dress in $DRESSES; do
        for threads in 1 2 8; do
            rm -f "$WORK/dressed.sieve"
            dressed "$dress" "$WORK/list" "$SIEVE" -q build --seed 7 --threads "$threads" -o "$WORK/dressed.sieve" @
            [ "$(bytes_of "$WORK/dressed.sieve")" = "$expected" ] ||
                fail "$dress, $threads threads: another image, $("$SIEVE" inspect "$WORK/dressed.sieve" | grep keys)"
        done
    done
}

builds_of_many() {
    local expected threads
    expected=$(bytes_of "$WORK/expected.sieve")
    rm -rf "$WORK/parts"
    mkdir "$WORK/parts"
    split -l 3 -a 4 -d "$WORK/list" "$WORK/parts/part"
    for threads in 1 8; do
        # More files than a process may have open.
        (ulimit -n 256 && "$SIEVE" -q build --seed 7 --threads "$threads" -o "$WORK/many.sieve" "$WORK"/parts/*)
        [ "$(bytes_of "$WORK/many.sieve")" = "$expected" ] || fail "$threads threads: another image"
    done
    # More than the soft limit allows, as a folder of a configuration.
    printf '[[interface]]\nname = "lo"\nsets = ["s"]\n[set.s]\nsources = ["parts/"]\n' >"$WORK/many.toml"
    (ulimit -Sn 256 && "$SIEVE" -q apply --check "$WORK/many.toml") || fail "a folder of many lists"
    # Two FIFOs that one writer fills one after the other.
    rm -f "$WORK/first" "$WORK/second"
    mkfifo "$WORK/first" "$WORK/second"
    (head -n 3000 "$WORK/list" >"$WORK/first" && tail -n +3001 "$WORK/list" >"$WORK/second") &
    "$SIEVE" -q build --seed 7 -o "$WORK/many.sieve" "$WORK/first" "$WORK/second"
    wait $!
    [ "$(bytes_of "$WORK/many.sieve")" = "$expected" ] || fail "of two FIFOs: another image"
}

# answered WHAT JQ EXPECTED: checks a value in the last command's answer.
answered() {
    [ "$(jq -c "$2" "$WORK/out")" = "$3" ] || fail "$1: $(cat "$WORK/out")"
}

# A feed, with and without verification, and an image: loaded and swapped.
loads_the_same() {
    local dress count
    "$SIEVE" -q build --kind blocked -o "$WORK/filter.sieve" "$WORK/list"
    for dress in $DRESSES; do
        attach
        dressed "$dress" "$WORK/list" sieve --json load "$IN_IF" "set=@" >"$WORK/out"
        answered "load, $dress" '.sets[0].keys' 6000
        dressed "$dress" "$WORK/few" sieve --json swap "$IN_IF" "set=@" >"$WORK/out"
        answered "swap, $dress" '.keys' 40
        dressed "$dress" "$WORK/list" sieve --json load "$IN_IF" "set=@,kind=blocked,verify" >"$WORK/out"
        answered "verify, $dress" '.sets[0] | [.keys, .verify]' '[6000,true]'
        # After a swap, the set is still verified.
        dressed "$dress" "$WORK/few" sieve --json swap "$IN_IF" "set=@,kind=blocked" >"$WORK/out"
        answered "swap and verify, $dress" '[.keys, .verify]' '[40,true]'
        dressed "$dress" "$WORK/list" sieve --json load "$IN_IF" "set=$WORK/filter.sieve,verify=@" >"$WORK/out"
        answered "verify=, $dress" '.sets[0] | [.keys, .verify]' '[6000,true]'
        dressed "$dress" "$WORK/expected.sieve" sieve --json load "$IN_IF" "set=@" >"$WORK/out"
        answered "image, $dress" '.sets[0].keys' 6000
        reset_interfaces
    done
}

queries_the_same() {
    local dress status
    for dress in $DRESSES; do
        dressed "$dress" "$WORK/expected.sieve" "$SIEVE" query @ "$(head -n 1 "$WORK/plain")" \
            "$(tail -n 1 "$WORK/plain")" >"$WORK/out" || fail "query, $dress: $(cat "$WORK/out")"
        [ "$(grep -c ' present$' "$WORK/out")" = 2 ] || fail "query, $dress: $(cat "$WORK/out")"
        case $dress in
        pipe | redirected | slow)
            dressed "$dress" "$WORK/list" "$SIEVE" query "$WORK/expected.sieve" --stdin >"$WORK/out"
            [ "$(grep -c ' present$' "$WORK/out")" = 6000 ] || fail "query --stdin, $dress: $(wc -l "$WORK/out")"
            ;;
        esac
    done
}

inserts_the_same() {
    local dress
    for dress in pipe redirected slow; do
        attach
        "$SIEVE" -q build --kind ddlcbf --seed 1 --bits-per-key 64 -o "$WORK/live.sieve" "$WORK/few"
        sieve -q load "$IN_IF" "set=$WORK/live.sieve"
        head -n 20 "$WORK/plain" >"$WORK/twenty"
        dressed "$dress" "$WORK/twenty" sieve --json insert "$IN_IF" set --stdin >"$WORK/out"
        answered "insert, $dress" '[.inserted, .keys]' '[20,60]'
        dressed "$dress" "$WORK/twenty" sieve --json delete "$IN_IF" set --stdin >"$WORK/out"
        answered "delete, $dress" '[.deleted, .keys]' '[20,40]'
        reset_interfaces
    done
}

replays_the_same() {
    local dress
    python3 -c '
import struct, sys
frame = bytes(12) + b"\x08\x00" + bytes([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]) + \
    bytes(map(int, sys.argv[1].split("."))) + bytes([198, 51, 100, 2]) + bytes(8)
sys.stdout.buffer.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
sys.stdout.buffer.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)' \
        "$(head -n 1 "$WORK/plain")" >"$WORK/one.pcap"
    for dress in $DRESSES; do
        dressed "$dress" "$WORK/list" sieve --json replay "set=@" --pcap "$WORK/one.pcap" >"$WORK/out"
        [ "$(jq -r .verdict "$WORK/out")" = drop ] || fail "feed, $dress: $(cat "$WORK/out")"
        dressed "$dress" "$WORK/expected.sieve" sieve --json replay "set=@" --pcap "$WORK/one.pcap" >"$WORK/out"
        [ "$(jq -r .verdict "$WORK/out")" = drop ] || fail "image, $dress: $(cat "$WORK/out")"
    done
}

# Inputs that cannot work are errors: an input that can be read only once is needed twice, or it is no list at all.
not_twice() {
    mkfifo "$WORK/once"
    ln -s once "$WORK/alias"
    refused 2 "$SIEVE" build -o "$WORK/new.sieve" "$WORK/once" "$WORK/once"
    refused 2 "$SIEVE" build -o "$WORK/new.sieve" "$WORK/once" "$WORK/list" "$WORK/alias"
    refused_with 2 'the same' "$SIEVE" build -o "$WORK/new.sieve" "$WORK/list" "$WORK/../${WORK##*/}/list"
    attach
    refused 2 sieve load "$IN_IF" a=- b=-
    refused 2 sieve load "$IN_IF" "a=$WORK/once" "b=$WORK/expected.sieve,verify=$WORK/alias"
    refused 2 sieve replay - --pcap - <"/dev/null"
    refused 2 sieve query - --stdin </dev/null
    # The same file may be given for two sets.
    sieve -q load "$IN_IF" "a=$WORK/few" "b=$WORK/few"
    local dress
    "$SIEVE" -q build --kind blocked -o "$WORK/other.sieve" - <<<203.0.113.1
    for dress in $DRESSES; do
        refused 3 dressed "$dress" "$WORK/expected.sieve" \
            "$SIEVE" build -o "$WORK/new.sieve" @
        refused 3 dressed "$dress" "$WORK/expected.sieve" \
            sieve load "$IN_IF" "a=$WORK/other.sieve,verify=@"
    done 2>/dev/null
    [ ! -e "$WORK/new.sieve" ] || fail "an image was written"
}

ktap_run \
    "the same image of every dress" builds_the_same \
    "the same image of many files and of FIFOs" builds_of_many \
    "load, swap and verify" loads_the_same \
    "query" queries_the_same \
    "insert and delete" inserts_the_same \
    "replay" replays_the_same \
    "one input for two purposes" not_twice
