#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Packed lists, made by the usual tools, wherever a command takes a list.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
FORMATS=$DATA/formats

told() {
    "$@" >"$WORK/said" 2>&1
    grep -q 'read as DShield blocks (format dshield)' "$WORK/said" || fail "$*: $(cat "$WORK/said")"
}

# pack FILE...: each file beside itself, in each packing.
pack() {
    local file
    for file; do
        gzip -kf "$file" && zstd -qf "$file" && xz -kf "$file" && zip -qj "$file.zip" "$file"
    done
}

# The same members whatever the packing, from files, pipes and standard input, in each command that takes a list.
packed_lists() {
    local packing entries
    seq -f '203.0.113.%g' 1 100 >"$WORK/plain"
    seq -f '203.0.113.%g' 1 3 >"$WORK/partners"
    cp "$FORMATS/dshield.txt" "$WORK/blocks"
    pack "$WORK/plain" "$WORK/blocks" "$WORK/partners"
    for packing in gz zst xz zip; do
        entries=$(sieve --json build -o "$WORK/packed.sieve" --except "$WORK/partners.$packing" - \
            <"$WORK/plain.$packing" 2>/dev/null | jq .entries)
        [ "$entries" = 97 ] || fail "$packing: $entries entries"
        told sieve build -o "$WORK/packed.sieve" "$WORK/blocks.$packing"
        sieve -q load "$IN_IF" "bad=$WORK/plain.$packing,seed=1"
        verdicts <<END
drop udp 203.0.113.77 $IN4 1 2
pass udp 203.0.113.177 $IN4 1 2
END
        # shellcheck disable=SC2002 # a pipe is what is tested
        cat "$WORK/blocks.$packing" | sieve -q swap "$IN_IF" bad=- --allow-lockout 2>/dev/null
        verdicts <<END
pass udp 203.0.113.77 $IN4 1 2
drop udp 203.0.113.177 $IN4 1 2
END
        sieve explain "$IN_IF" 192.0.2.9 --feed "$WORK/blocks.$packing" | grep -q "blocks.$packing:" ||
            fail "explain: $(sieve explain "$IN_IF" 192.0.2.9 --feed "$WORK/blocks.$packing")"
        sieve diff "$WORK/plain" "$WORK/plain.$packing"
    done
}

# One clear error for each, and nothing is changed.
archives_that_are_none() {
    local before bomb_size
    seq -f '203.0.113.%g' 1 100 >"$WORK/plain"
    sieve -q load "$IN_IF" "bad=$WORK/plain"
    before=$(state)
    pack "$WORK/plain"
    head -c 100 "$WORK/plain.gz" >"$WORK/cut"
    gzip -c "$WORK/plain.xz" >"$WORK/nested"
    tar -C "$WORK" -cf - plain | gzip >"$WORK/tar"
    mkdir "$WORK/folder" && (cd "$WORK" && zip -qr folder.zip folder && zip -q -P x locked.zip plain)
    zip -qj "$WORK/two.zip" "$WORK/plain" "$WORK/plain.gz"
    cat "$WORK/plain.zip" "$WORK/plain.zip" >"$WORK/chain"
    head -c 100000000 /dev/zero | tr '\0' '\n' | zstd -q >"$WORK/bomb"
    rejected cut
    rejected nested
    rejected tar
    rejected folder.zip
    rejected locked.zip
    rejected two.zip
    rejected chain
    bomb_size=$(stat -c %s "$WORK/bomb")
    varies+=(bomb_size)
    rejected bomb
    unchanged "$before"
    [ ! -e "$WORK/none.sieve" ]
}
rejected() {
    refused 3 sieve build -o "$WORK/none.sieve" "$WORK/$1"
    refused 3 sieve build --skip-invalid -o "$WORK/none.sieve" "$WORK/$1"
    refused 3 sieve swap "$IN_IF" "bad=$WORK/$1"
    refused 3 sieve load "$IN_IF" bad=- <"$WORK/$1"
}

ktap_run \
    "packed lists are read like plain ones" packed_lists \
    "archives that are none, or none of a list" archives_that_are_none
