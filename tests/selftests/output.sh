#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Output that nobody reads: nothing aborts, changes are made all the same, and the exit code tells the truth.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
image "$WORK/one.sieve" src 203.0.113.1
image "$WORK/two.sieve" src 203.0.113.1 203.0.113.2

# told CODE COMMAND...: the command must end with that code.
told() {
    local code=$1 status=0
    shift
    "$@" || status=$?
    [ "$status" -eq "$code" ] || fail "exit code $status instead of $code: $*"
}

full_out() { sieve "$@" >/dev/full 2>"$WORK/err"; }
full_err() { sieve "$@" 2>/dev/full; }
full_both() { sieve "$@" >/dev/full 2>/dev/full; }
closed_out() { sieve "$@" >&- 2>"$WORK/err"; }
closed_err() { sieve "$@" 2>&-; }
closed_all() { sieve "$@" <&- >&- 2>&-; }
# The reader has gone before there is any output.
gone_reader() {
    local pipe status=0
    exec {pipe}> >(exit 0)
    wait "$!"
    sieve "$@" 1>&"$pipe" 2>"$WORK/err" || status=$?
    exec {pipe}>&-
    return "$status"
}

keys() { sieve --json status "$IN_IF" | jq -r '[.interfaces[0].sets[] | "\(.name) \(.keys)"] | join(", ")'; }

changed() {
    local way code
    for way in full_out full_err full_both closed_out closed_err closed_all gone_reader; do
        case $way in *_err) code=0 ;; *) code=5 ;; esac
        # Remarks go to standard error, the report to standard output.
        told "$code" "$way" load "$IN_IF" "a=$WORK/one.sieve" "b=$WORK/one.sieve" >/dev/null
        [ "$(keys)" = "a 1, b 1" ] || fail "$way: load left $(keys)"
        told "$code" "$way" swap "$IN_IF" "a=$WORK/two.sieve" >/dev/null
        [ "$(keys)" = "a 2, b 1" ] || fail "$way: swap left $(keys)"
        told "$code" "$way" --json remove "$IN_IF" b >/dev/null
        [ "$(keys)" = "a 2" ] || fail "$way: remove left $(keys)"
        told "$code" "$way" unload "$IN_IF" >/dev/null
        [ -z "$(program_id)" ] || fail "$way: unload left a program"
    done
}

# A failed command says so by its exit code, whether or not the message arrives.
refusals() {
    local way before
    attach
    sieve -q load "$IN_IF" "a=$WORK/one.sieve"
    before=$(state)
    for way in full_out full_err full_both closed_out closed_err closed_all; do
        told 3 "$way" load "$IN_IF" "a=$WORK/missing" >/dev/null
        told 2 "$way" load "$IN_IF" a >/dev/null
        told 2 "$way" frobnicate >/dev/null
        told 1 "$way" remove "$IN_IF" c >/dev/null
        told 4 "$way" unload nowhere0 >/dev/null
    done
    unchanged "$before"
}

# Quiet commands have no output.
quiet() {
    told 0 full_both -q load "$IN_IF" "a=$WORK/one.sieve"
    told 0 closed_all -q unload "$IN_IF"
}

answers() {
    told 5 full_out inspect "$WORK/one.sieve"
    [ "$(wc -l <"$WORK/err")" -eq 1 ] || fail "not one line: $(cat "$WORK/err")"
    grep -q 'No space left' "$WORK/err" || fail "says $(cat "$WORK/err")"
    told 5 full_out query "$WORK/one.sieve" 203.0.113.9
    told 5 closed_out status
    grep -q 'Bad file descriptor' "$WORK/err" || fail "says $(cat "$WORK/err")"
    told 5 gone_reader inspect "$WORK/one.sieve"
    [ ! -s "$WORK/err" ] || fail "complains of a reader that has seen enough: $(cat "$WORK/err")"
    told 5 full_out --help
    told 5 full_out --version
    printf '%s\n' 192.0.2.1 >"$WORK/feed"
    told 5 full_out build -o "$WORK/new.sieve" "$WORK/feed"
    told 0 sieve -q query "$WORK/new.sieve" 192.0.2.1
}

# A loop ends when nobody reads its output.
watching() {
    attach
    told 5 timeout "$PATIENCE" nsenter --net="/run/netns/$IN" "$SIEVE" stats "$IN_IF" --watch 0.1 >/dev/full 2>/dev/null
}

# A capture is output, too: no bad input that nobody reads it.
captures() {
    attach
    told 5 timeout "$PATIENCE" nsenter --net="/run/netns/$IN" "$SIEVE" events "$IN_IF" --pcap - >/dev/full 2>"$WORK/err"
    grep -q 'standard output could not be written: No space left on device' "$WORK/err" ||
        fail "says $(cat "$WORK/err")"
    told 5 gone_reader events "$IN_IF" --pcap -
    ! grep -q 'Broken pipe' "$WORK/err" || fail "complains of a reader that has seen enough: $(cat "$WORK/err")"
}

ktap_run \
    "a change is made, and told by the code" changed \
    "a refusal stays one" refusals \
    "quiet needs no output" quiet \
    "answers that did not arrive" answers \
    "watching ends" watching \
    "a capture ends" captures
