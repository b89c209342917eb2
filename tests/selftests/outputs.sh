#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Files that commands write: a command replaces only its own files, and leaves no partial file, whatever ends it.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
address_lists 12 list 3000
build() { "$SIEVE" -q build "$@" "$WORK/list"; }

# left_in FOLDER: prints the names in it, on one line.
left_in() { find "$1" -mindepth 1 -printf '%P ' | tr ' ' '\n' | sort | xargs; }

replaces_its_own() {
    local out=$WORK/own
    mkdir "$out"
    build -o "$out/new.sieve"
    build -o "$out/new.sieve" # an image replaces an image
    : >"$out/empty"
    build -o "$out/empty" # an empty file, as mktemp makes it, may be replaced
    echo precious >"$out/precious"
    refused 3 build -o "$out/precious"
    [ "$(cat "$out/precious")" = precious ] || fail "it was overwritten"
    build --force -o "$out/precious"
    "$SIEVE" query "$out/precious" "$(head -n 1 "$WORK/list")" >/dev/null || fail "--force wrote no image"
    ln -s new.sieve "$out/link"
    build --seed 3 -o "$out/link"
    [ -L "$out/link" ] || fail "the link was replaced"
    cmp "$out/new.sieve" "$out/link" || fail "the link leads elsewhere"
    [ "$(stat -c %a "$out/new.sieve")" = 600 ] || fail "its hash keys are for all to read"
    [ "$(left_in "$out")" = "empty link new.sieve precious" ] || fail "left behind: $(left_in "$out")"
}

refuses_others() {
    local out=$WORK/others target
    mkdir "$out" "$out/folder"
    mkfifo "$out/fifo"
    mknod "$out/device" c 1 3
    ln -s nowhere "$out/dangling"
    cp "$WORK/list" "$out/feed"
    ln -s feed "$out/alias"
    for target in folder fifo device dangling; do
        refused 3 build -o "$out/$target"
        refused 3 build --force -o "$out/$target"
        refused 3 "$BENCH" --quick --force -o "$out/$target"
    done
    [ -p "$out/fifo" ] && [ -c "$out/device" ] && [ -L "$out/dangling" ] || fail "something was replaced"
    for target in feed alias; do
        refused 3 "$SIEVE" build --force -o "$out/$target" "$out/feed"
        refused 3 "$SIEVE" build --force -o "$out/$target" - <"$out/feed"
    done
    cmp "$WORK/list" "$out/feed" || fail "the feed was overwritten"
    refused 3 "$BENCH" --quick -o "$out/feed"
    attach
    sieve -q load "$IN_IF" "set=$WORK/list"
    refused 3 sieve events "$IN_IF" --count 1 --pcap "$out/feed"
    cmp "$WORK/list" "$out/feed" || fail "the feed was overwritten"
}

# cut_short SIGNAL CALL: starts a build into $WORK/half that gets the signal at its first call of CALL.
cut_short() {
    # The leak checker of a sanitized build does not work under ptrace.
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 \
        strace -f -o "$WORK/trace" -e "trace=$2" -e "inject=$2:signal=SIG$1:when=1" \
        "$SIEVE" -q build --seed 2 -o "$WORK/half/set.sieve" "$WORK/list" 2>/dev/null || true
    [ ! -e "$WORK/half/set.sieve" ] || "$SIEVE" inspect "$WORK/half/set.sieve" >/dev/null || fail "half an image"
}

# A signal at each system call that writing makes: afterwards there is no file, or a whole image.
interrupted() {
    local out=$WORK/half call signal old
    command -v strace >/dev/null || skip "strace is not installed"
    strace -o /dev/null true 2>/dev/null || skip "strace may not trace here"
    mkdir "$out"
    for old in "" set.sieve; do
        for call in write fsync linkat rename; do
            # A new file gets its name by linkat, without a rename.
            [ "$old$call" != rename ] || continue
            for signal in INT TERM HUP; do
                rm -f "$out"/*
                [ -z "$old" ] || build --seed 1 -o "$out/$old"
                cut_short "$signal" "$call"
                grep -q "SIG$signal" "$WORK/trace" || fail "the build never called $call: $(cat "$WORK/trace")"
                case $(left_in "$out") in
                "$old" | set.sieve) ;;
                *) fail "SIG$signal at $call left $(left_in "$out")" ;;
                esac
            done
        done
    done
    # Even SIGKILL leaves nothing of a new file, because the file has no name before it is whole.
    for call in write fsync linkat; do
        rm -f "$out"/*
        cut_short KILL "$call"
        grep -q "killed by SIGKILL" "$WORK/trace" || fail "the build never called $call: $(cat "$WORK/trace")"
        case $(left_in "$out") in
        "" | set.sieve) ;;
        *) fail "SIGKILL at $call left $(left_in "$out")" ;;
        esac
    done
}

# Names of feeds become labels, and a terminal would obey control characters in them.
harmless_labels() {
    local feed=$WORK/$'\e[31mred\e]0;title\a'
    cp "$WORK/list" "$feed"
    "$SIEVE" -q build -o "$WORK/red.sieve" "$feed"
    attach
    sieve -q load "$IN_IF" "set=$WORK/red.sieve"
    {
        "$SIEVE" inspect "$WORK/red.sieve"
        "$SIEVE" --json inspect "$WORK/red.sieve"
        sieve status "$IN_IF"
        sieve --json status "$IN_IF"
    } >"$WORK/out"
    ! grep -q $'[\e\a]' "$WORK/out" || fail "escapes were printed: $(cat -v "$WORK/out")"
    grep -qF '\x1b[31mred' "$WORK/out" || fail "the label is gone: $(cat "$WORK/out")"
}

# Too little memory gives an error that says so, wherever memory runs out.
little_memory() {
    local least=14000 limit status message
    [ -z "${SANITIZED:-}" ] || skip "a sanitizer reserves more addresses than the limits of this test"
    python3 -c '
for i in range(400000): print(f"{10 + (i >> 16)}.{i >> 8 & 255}.{i & 255}.{i * 7 & 255}")' >"$WORK/many"
    # With less memory, the dynamic loader cannot even start the program.
    until (ulimit -v "$least" && exec "$SIEVE" --version) >"$WORK/version" 2>&1; do least=$((least + 500)); done
    for limit in 0 500 1000 2000 3000 4000 5000 6000 8000 10000 12000 14000 18000 22000 30000; do
        limit=$((least + limit))
        status=0
        (ulimit -v "$limit" && exec "$SIEVE" -q build --threads 8 -o "$WORK/tight.sieve" "$WORK/many") \
            2>"$WORK/err" || status=$?
        message=$(cat "$WORK/err")
        case $status in
        0) ;;
        3) grep -Eq 'memory|not to be had' <<<"$message" || fail "$limit KiB: $message" ;;
        *) fail "$limit KiB: exit code $status: $message" ;;
        esac
    done
}

# No file may grow. A change needs none; its output does, and the exit code tells that the change was made.
file_size_limit() {
    local status=0 message
    attach
    sieve -q load "$IN_IF" "set=$WORK/list"
    (ulimit -f 0 && sieve -q swap "$IN_IF" "set=$WORK/list") || fail "a change without output: $?"
    # Standard error is a pipe, which has no limit.
    message=$(exec 3>&1 && ulimit -f 0 && sieve --json swap "$IN_IF" "set=$WORK/list" 2>&3 >"$WORK/out") || status=$?
    [ "$status" = 5 ] || fail "exit code $status: $message"
    grep -q 'standard output could not be written: File too large; the change was made' <<<"$message" ||
        fail "$message"
    message=$(ulimit -f 0 && build -o "$WORK/large.sieve" 2>&1) && fail "an image beyond the limit"
    grep -q 'large.sieve: cannot be written: File too large' <<<"$message" || fail "$message"
    [ ! -e "$WORK/large.sieve" ] || fail "a part of an image"
}

ktap_run \
    "its own files and new names" replaces_its_own \
    "nothing else" refuses_others \
    "interrupted" interrupted \
    "labels" harmless_labels \
    "little memory" little_memory \
    "a limit on files" file_size_limit
