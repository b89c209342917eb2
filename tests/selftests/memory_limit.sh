#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Lists that are larger than --memory-limit: the image is the same as without a limit, and nothing is left behind.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# 400,000 addresses, some of them twice. A limit of 16 MiB holds 262,144.
awk 'BEGIN {
    for (i = 0; i < 400000; i++) {
        n = i * 7919 % 390001
        print "10." int(n / 65536) "." int(n / 256) % 256 "." n % 256
    }
}' >"$WORK/list"
mkdir "$WORK/temporary"
export TMPDIR=$WORK/temporary
build() { "$SIEVE" -q build --seed 1 --kind blocked "$@"; }

makes_the_same_image() {
    build -o "$WORK/whole" "$WORK/list"
    for threads in 1 4; do
        build --memory-limit 16M --threads "$threads" -o "$WORK/limited" "$WORK/list"
        cmp "$WORK/whole" "$WORK/limited" || fail "another image, with $threads threads"
    done
    # From a pipe, whose length nobody knows; its label is another.
    build -o "$WORK/whole" - <"$WORK/list"
    # shellcheck disable=SC2002
    cat "$WORK/list" | build --memory-limit 16M -o "$WORK/limited" -
    cmp "$WORK/whole" "$WORK/limited" || fail "another image of a pipe"
    [ -z "$(ls -A "$TMPDIR")" ] || fail "left behind: $(ls -A "$TMPDIR")"
}

# Members at the beginning, in the middle and at the end of the list, and others, in a file and in a prefix.
leaves_exceptions_out() {
    { sed -n '1p;200000p;$p' "$WORK/list" && echo 10.2.3.0/24 && echo 192.0.2.1; } >"$WORK/except"
    build --except "$WORK/except" -o "$WORK/whole" "$WORK/list"
    build --memory-limit 16M --except "$WORK/except" -o "$WORK/limited" "$WORK/list"
    cmp "$WORK/whole" "$WORK/limited" || fail "another image"
    if "$SIEVE" -q query "$WORK/limited" 10.2.3.4; then fail "an exception matches"; fi
    [ -z "$(ls -A "$TMPDIR")" ] || fail "left behind: $(ls -A "$TMPDIR")"
}

goes_live() {
    attach
    sieve load "$IN_IF" "bad=$WORK/list,memory-limit=16M" >"$WORK/said" 2>&1
    grep -q 'list: kind blocked, since building kind exact would take more memory than the limit of 16777216 bytes' \
        "$WORK/said" || fail "$(cat "$WORK/said")"
    sieve -q swap "$IN_IF" "bad=$WORK/list,memory-limit=20M" 2>/dev/null
    [ "$(sieve --json status "$IN_IF" | jq -r '.interfaces[0].sets[0].kind')" = blocked ] || fail "not a filter"
    sieve query "$IN_IF" "$(tail -n 1 "$WORK/list")" >/dev/null || fail "a member is missing"
    # A list that the limit holds is exact.
    sieve -q swap "$IN_IF" "bad=$WORK/list,memory-limit=64M"
    [ "$(sieve --json status "$IN_IF" | jq -r '.interfaces[0].sets[0].kind')" = exact ] || fail "not exact"
    sieve query "$IN_IF" "$(tail -n 1 "$WORK/list")" >/dev/null || fail "a member is missing"
}

writes_to_disk_only_what_is_too_much() {
    echo 192.0.2.1 >"$WORK/short"
    TMPDIR=$WORK/nowhere build --memory-limit 16M -o "$WORK/image" "$WORK/short"
    TMPDIR=$WORK/nowhere refused 3 build --memory-limit 16M -o "$WORK/none" "$WORK/list"
    [ ! -e "$WORK/none" ] || fail "an image of a failed build"
}

says_when_the_disk_is_full() {
    mkdir "$WORK/full"
    mount -t tmpfs -o size=2M none "$WORK/full"
    TMPDIR=$WORK/full refused 3 build --memory-limit 16M -o "$WORK/none" "$WORK/list"
    umount "$WORK/full"
}

# Whether process $1 has a file in $TMPDIR open that has no name there.
has_spilled() {
    find "/proc/$1/fd" -lname "$TMPDIR/*" -printf '%l\n' 2>/dev/null | grep -q '(deleted)$'
}

leaves_nothing_when_it_is_killed() {
    mkfifo "$WORK/pipe"
    "$SIEVE" -q build --memory-limit 16M -o "$WORK/none" - <"$WORK/pipe" &
    local builder=$!
    exec 3>"$WORK/pipe"
    cat "$WORK/list" >&3
    await has_spilled "$builder"
    kill -KILL "$builder"
    exec 3>&-
    wait "$builder" || true
    [ -z "$(ls -A "$TMPDIR")" ] || fail "left behind: $(ls -A "$TMPDIR")"
    [ -z "$(find "$WORK" -name 'none*')" ] || fail "left behind: $(find "$WORK" -name 'none*')"
}

refuses_what_it_cannot_build() {
    refused 2 build --memory-limit 1M -o "$WORK/none" "$WORK/list"
    refused 2 "$SIEVE" -q build --memory-limit 16M --kind bloom -o "$WORK/none" "$WORK/list"
    refused_with 2 'memory limit of 16777216 bytes is too low' \
        build --memory-limit 16M --bits-per-key 256 -o "$WORK/none" "$WORK/list" "$WORK/more"
    for place in first last; do
        { [ "$place" = last ] || echo 192.0.2.0/24; cat "$WORK/list"; [ "$place" = first ] || echo 192.0.2.0/24; } \
            >"$WORK/prefixes"
        refused 2 build --memory-limit 16M -o "$WORK/none" "$WORK/prefixes"
    done
    attach
    refused 2 sieve -q load "$IN_IF" "bad=$WORK/list,memory-limit=16M,verify"
    refused 2 sieve -q load --join "$IN_IF" "bad=$WORK/list,memory-limit=16M" "more=$WORK/more"
    cp "$WORK/list" "$WORK/same"
    refused 3 build --memory-limit 16M --except "$WORK/same" -o "$WORK/none" "$WORK/list"
    [ ! -e "$WORK/none" ] || fail "an image of a failed build"
}

sed 's/^10/11/' "$WORK/list" >"$WORK/more"
ktap_run \
    "the image is that of a build in memory" makes_the_same_image \
    "exceptions are taken out and do not match" leaves_exceptions_out \
    "load and swap take the option" goes_live \
    "the disk is used only for lists that are too long" writes_to_disk_only_what_is_too_much \
    "a full disk is an error that says so" says_when_the_disk_is_full \
    "a build that is killed leaves nothing behind" leaves_nothing_when_it_is_killed \
    "what needs the whole list is refused" refuses_what_it_cannot_build
