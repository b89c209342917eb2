#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# The command line's words: the help, the manual page and the README agree, and the tool understands what users write.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
image "$WORK/bad.sieve" src 203.0.113.1

# agree WHAT: of the program that has all commands
agree() {
    [ -e "$here/../../README.md" ] || skip "the documents are not here"
    "$here/command_line.py" "$(dirname "$SIEVE")/fleet/xdp-sieve" "$here/../../docs/xdp-sieve.8" \
        "$here/../../README.md" "$here/../../docs/sets.md" "$1"
}
commands() { agree commands; }
options() { agree options; }
kinds() { agree kinds; }
codes() { agree codes; }
benchmark() {
    [ -e "$here/../../README.md" ] || skip "the documents are not here"
    "$here/command_line.py" "$BENCH" "$here/../../docs/sieve-bench.8" "$here/../../README.md" \
        "$here/../../docs/sets.md" program
}

no_bsd() {
    [ -e "$here/../../docs/xdp-sieve.8" ] || skip "the documents are not here"
    command -v man >/dev/null || skip "man is not installed"
    MANPAGER="cat" man -l "$here/../../docs/xdp-sieve.8" >"$WORK/page" 2>/dev/null
    if grep -q BSD "$WORK/page"; then fail "$(grep BSD "$WORK/page")"; fi
    head -n 1 "$WORK/page" | grep -q "System Manager's Manual" || fail "headed $(head -n 1 "$WORK/page")"
}

# `load` puts a feed in force in one step. It builds the same set as `build` with the same options.
feed_options() {
    printf '%s\n' "203.0.113.1 443" "203.0.113.2 53" >"$WORK/feed"
    printf '%s\n' "203.0.113.3 53" "no address" >"$WORK/more"
    sieve -q load "$IN_IF" "c2=$WORK/feed,kind=dleft64,key=dst,dport,bits-per-key=2.4e1,seed=7,threads=1"
    sieve --json status "$IN_IF" | jq -e '.interfaces[0].sets[0] | .kind == "dleft64" and .key == "dst,dport"' \
        >/dev/null || fail "$(sieve --json status "$IN_IF")"
    "$SIEVE" -q build --kind dleft64 --key dst,dport --bits-per-key 24 --seed 7 --threads 1 -o "$WORK/c2.sieve" \
        "$WORK/feed"
    [ "$(sieve --json status "$IN_IF" | jq -r '.interfaces[0].sets[0].identity')" = \
        "$("$SIEVE" --json inspect "$WORK/c2.sieve" | jq -r .identity)" ] || fail "not what build makes of it"
    # Two feeds, malformed lines and verification; swap and replay take the same options.
    sieve -q swap "$IN_IF" "c2=$WORK/feed,feed=$WORK/more,skip-invalid,key=src,dport" 2>/dev/null
    sieve --json status "$IN_IF" | jq -e '.interfaces[0].sets[0] | .keys == 3 and .key == "src,dport"' >/dev/null ||
        fail "$(sieve --json status "$IN_IF")"
    verdicts <<END
drop udp 203.0.113.3 $IN4 1 53
pass udp 203.0.113.3 $IN4 1 54
END
    sieve -q load "$IN_IF" "c2=$WORK/feed,verify,key=src,dport,kind=bloom" 2>/dev/null
    [ "$(sieve --json status "$IN_IF" | jq '.interfaces[0].sets[0].verify_bytes > 0')" = true ] || fail "not verified"
}

numbers() {
    local text
    printf '%s\n' 203.0.113.1 >"$WORK/feed"
    for text in 4096 4.096e3 4K; do
        "$SIEVE" -q build --memory "$text" --rounds 1e0 --max-keys 1e6 -o "$WORK/size.sieve" "$WORK/feed"
        [ "$(stat -c %s "$WORK/size.sieve")" = 4096 ] || fail "--memory $text made $(stat -c %s "$WORK/size.sieve")"
    done
    [ "$("$SIEVE" --json plan --keys 1e5 --fpr 1e-3 | jq .keys)" = 100000 ] || fail "plan does not take 1e5"
    refused 2 sieve build --rounds 1.5 -o "$WORK/x.sieve" "$WORK/feed"
    refused_with 2 'xdp-sieve plan --help' sieve plan --keys 1.5 --fpr 1e-3
    for text in -1 0 1e30; do refused_with 2 "$text not in range 1 to 1099511627776" sieve plan --keys "$text"; done
}

words() {
    attach
    sieve -q load "$IN_IF" "a=$WORK/bad.sieve" "b=$WORK/bad.sieve"
    refused 1 sieve swap "$IN_IF" "nope=$WORK/bad.sieve"
    sieve remove "$IN_IF" a | grep -q ' 1 set left$' || fail "remove says something else"
    sieve load "$IN_IF" "a=$WORK/bad.sieve" | grep -q ': 1 key, ' || fail "load says something else"
}

# means PATTERN COMMAND...: the command fails, and the last line that it says matches.
means() {
    local pattern=$1
    shift
    if inside "$IN" "$SIEVE" "$@" 2>"$WORK/err"; then fail "$* has done something"; fi
    tail -n 1 "$WORK/err" | grep -Eq -- "$pattern" || fail "$*: $(cat "$WORK/err")"
}

# What people type who know other tools leads to the right command, and never to less protection.
words_of_others() {
    means "\`xdp-sieve delete $IN_IF bad 192.0.2.1\`" del "$IN_IF" bad 192.0.2.1
    means "\`xdp-sieve insert $IN_IF bad 192.0.2.1\`" add "$IN_IF" bad 192.0.2.1
    means "\`xdp-sieve insert $IN_IF NAME 192.0.2.1\`" block "$IN_IF" 192.0.2.1
    means "\`xdp-sieve explain $IN_IF 192.0.2.1\`" test "$IN_IF" bad 192.0.2.1
    means "\`xdp-sieve delete $IN_IF bad KEY\`" flush "$IN_IF" bad
    means "\`xdp-sieve status\`" list
    means "\`systemctl reload xdp-sieved\`" reload
    means "\`xdp-sieve load --help\`" help load
    means "\`xdp-sieve --version\`" -V
    means "\`sieve-bench\` measures" bench --quick
    means "\`xdp-sieve load $IN_IF bad=list.txt\`" "$IN_IF" load bad=list.txt
    means "\`xdp-sieve load $IN_IF bad=list.txt --default drop\`" load bad=list.txt "$IN_IF" --default drop
    means "\`xdp-sieve insert $IN_IF bad 192.0.2.1\`" insert 192.0.2.1 "$IN_IF" bad
    means 'unknown command "unlaod"; see' unlaod "$IN_IF"
}

# without FILE COMMAND...: runs the command where the file is empty.
without() {
    # shellcheck disable=SC2016
    unshare --mount sh -c 'mount --bind /dev/null "$1" && shift && exec "$@"' - "$@"
}

# Most commands need none of these libraries, which would take half of their start. Without one, a command that needs it
# says what is missing.
libcurl() {
    local library status=0
    if ldd "$SIEVE" | grep -E 'lib(curl|archive|pcap)\.'; then fail "linked with what is opened on demand"; fi
    library=$(ldconfig -p | sed -n 's/.*libcurl\.so\.4 .*=> //p' | head -n 1)
    [ -n "$library" ] || skip "libcurl is not installed"
    cat >"$WORK/url.toml" <<END
[[interface]]
name = "$IN_IF"
sets = ["bad"]
[set.bad]
sources = ["https://192.0.2.1/list.txt"]
END
    sieve config "$WORK/url.toml" >/dev/null
    without "$library" "$SIEVE" config "$WORK/url.toml" >"$WORK/out" 2>"$WORK/err" || status=$?
    [ "$status" -eq 4 ] || fail "status $status: $(cat "$WORK/err")"
    grep -q "libcurl.so.4.*Debian's package libcurl4" "$WORK/err" || fail "$(cat "$WORK/err")"
    without "$library" "$SIEVE" --version >/dev/null || fail "--version needs libcurl"
}

# ends_without LIBRARY PACKAGE COMMAND...: the command ends as one does whose libraries are not there.
ends_without() {
    local library status=0 name=$1 package=$2
    shift 2
    library=$(ldconfig -p | sed -n "s/.*$name .*=> //p" | head -n 1)
    [ -n "$library" ] || skip "$name is not installed"
    without "$library" "$SIEVE" "$@" >"$WORK/out" 2>"$WORK/err" || status=$?
    [ "$status" -eq 127 ] || fail "$*: status $status: $(cat "$WORK/err")"
    grep -q "$name.*Debian's package $package" "$WORK/err" || fail "$(cat "$WORK/err")"
}

other_libraries() {
    echo 192.0.2.1 >"$WORK/list.txt"
    xz -k "$WORK/list.txt"
    sieve -q build -o "$WORK/packed.sieve" "$WORK/list.txt.xz"
    ends_without libarchive.so.13 libarchive13 --no-sandbox build --force -o "$WORK/packed.sieve" "$WORK/list.txt.xz"
    printf "\xd4\xc3\xb2\xa1" >"$WORK/short.pcap"
    ends_without libpcap.so.0.8 libpcap0.8 replay "$WORK/packed.sieve" --pcap "$WORK/short.pcap"
    without "$(ldconfig -p | sed -n "s/.*libarchive.so.13 .*=> //p" | head -n 1)" \
        "$SIEVE" -q build --force -o "$WORK/plain.sieve" "$WORK/list.txt" || fail "a plain list needs libarchive"
}

ktap_run \
    "commands of help, manual and README" commands \
    "options of help, manual and README" options \
    "kinds of help, manual and README" kinds \
    "exit codes of help, manual and README" codes \
    "options and exit codes of sieve-bench" benchmark \
    "the manual is not headed BSD" no_bsd \
    "a feed takes any option of build" feed_options \
    "numbers as people write them" numbers \
    "words" words \
    "the words of others" words_of_others \
    "libcurl is opened when it is needed" libcurl \
    "libarchive and libpcap are opened when they are needed" other_libraries
