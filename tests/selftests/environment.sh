#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# The program in poor environments: without privileges, without bpffs, in a sandbox. It works, or says what it lacks.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
image "$WORK/bad.sieve" src 203.0.113.7
# An unprivileged user must be able to read what it runs.
chmod 755 "$WORK"
chmod 644 "$WORK/bad.sieve" # an image holds secrets, so only its owner may read it
install -m 755 "$SIEVE" "$WORK/xdp-sieve"

as_nobody() {
    inside "$IN" setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all \
        "$WORK/xdp-sieve" "$@"
}

no_privileges() {
    local before
    as_nobody query "$WORK/bad.sieve" 203.0.113.7 >/dev/null || fail "nobody cannot even query"
    refused_with 4 'root' as_nobody load "$IN_IF" "bad=$WORK/bad.sieve"
    [ -z "$(program_id)" ] || fail "attached something"
    attach
    sieve -q load "$IN_IF" "bad=$WORK/bad.sieve"
    before=$(state)
    refused_with 4 'root' as_nobody load "$IN_IF" "bad=$WORK/bad.sieve"
    refused_with 4 'root' as_nobody load --force "$IN_IF" "bad=$WORK/bad.sieve"
    refused_with 4 'root' as_nobody swap "$IN_IF" "bad=$WORK/bad.sieve"
    refused_with 4 'root' as_nobody remove "$IN_IF" bad
    refused_with 4 'root' as_nobody unload "$IN_IF"
    refused_with 4 'root' as_nobody status "$IN_IF"
    refused_with 4 'root' as_nobody stats "$IN_IF"
    unchanged "$before"
}

# load needs fewer privileges than root has.
few_capabilities() {
    inside "$IN" setpriv --inh-caps=-all --bounding-set=-all,+bpf,+net_admin,+sys_admin \
        "$SIEVE" -q load "$IN_IF" "bad=$WORK/bad.sieve" 2>/dev/null
    verdicts <<<"drop udp 203.0.113.7 $IN4 1 2"
}

no_bpffs() {
    findmnt -t bpf /sys/fs/bpf >/dev/null || echo "no bpffs is mounted here anyway"
    # In a separate mount namespace, so that nobody else sees the unmounting.
    # shellcheck disable=SC2016
    inside "$IN" unshare --mount --propagation private bash -c '
        while umount /sys/fs/bpf 2>/dev/null; do :; done
        ! mountpoint -q /sys/fs/bpf || exit 9
        "$@"' - "$SIEVE" -q load "$IN_IF" "bad=$WORK/bad.sieve" 2>"$WORK/err" || fail "$(cat "$WORK/err")"
    [ "$(wc -l <"$WORK/err")" -le 1 ] || fail "more than one line: $(cat "$WORK/err")"
    verdicts <<END
drop udp 203.0.113.7 $IN4 1 2
pass udp 203.0.113.8 $IN4 1 2
END
    sieve -q swap "$IN_IF" "bad=$WORK/bad.sieve"
    sieve -q unload "$IN_IF"
    [ -z "$(program_id)" ] || fail "unload left a program"
}

# `ip netns exec` mounts another sysfs, which has no bpffs.
ip_netns_exec() {
    ip netns exec "$IN" "$SIEVE" -q load "$IN_IF" "bad=$WORK/bad.sieve" 2>/dev/null
    verdicts <<<"drop udp 203.0.113.7 $IN4 1 2"
    ip netns exec "$IN" "$SIEVE" -q unload "$IN_IF"
}

# The controller needs no open file, no folder and no terminal.
bare() {
    inside "$IN" env -i "$SIEVE" -q load "$IN_IF" "bad=$WORK/bad.sieve" </dev/null 2>/dev/null
    (cd / && inside "$IN" env -i "$SIEVE" -q swap "$IN_IF" "bad=$WORK/bad.sieve" <&- >/dev/null 2>&1)
    verdicts <<<"drop udp 203.0.113.7 $IN4 1 2"
}

# Each map of the program takes a descriptor, and so does each filter.
few_files() {
    (ulimit -n 36 && inside "$IN" "$SIEVE" -q load "$IN_IF" "bad=$WORK/bad.sieve" 2>/dev/null)
    verdicts <<<"drop udp 203.0.113.7 $IN4 1 2"
}

# With fewer, commands say so, and leave the state whole: no crash, no advice to take the filter away.
too_few_files() {
    local files
    # While this list is built, loading the program has failed long since.
    for files in {0..40}; do printf "203.0.$((files + 73)).%d\n" {0..255}; done >"$WORK/list"
    for files in {6..38}; do
        poor load || [ -z "$(program_id)" ] || fail "$files files: refused, and still loaded"
        sieve -q load "$IN_IF" "bad=$WORK/list" --force
        poor swap || true
        verdicts <<<"drop udp 203.0.113.7 $IN4 1 2"
        poor unload || [ -n "$(program_id)" ] || fail "$files files: refused, and still unloaded"
        [ -z "$(program_id)" ] || sieve -q unload "$IN_IF"
    done
    sieve -q load "$IN_IF" "bad=$WORK/list"
    (ulimit -n 6 && refused_with 4 'Too many open files \(errno 24\)$' inside "$IN" "$SIEVE" stats "$IN_IF")
}
# poor VERB: runs it with few files. False if it was refused.
poor() {
    local status=0 set=()
    [ "$1" = unload ] || set=("bad=$WORK/list")
    (ulimit -n "$files" && inside "$IN" "$SIEVE" -q "$1" "$IN_IF" "${set[@]}") 2>"$WORK/err" || status=$?
    [ "$status" -eq 0 ] || [ -s "$WORK/err" ] || fail "$1 with $files files ended with $status without a word"
    case $status in
    0 | 5) return 0 ;;
    3 | 4) return 1 ;; # 3: the list
    *) fail "$1 with $files files ended with $status: $(cat "$WORK/err")" ;;
    esac
}

# Reading the list and building take a child each, and pipes to it. One pipe is the first thing that is missed.
too_few_for_a_child() {
    local files status refused=0
    echo 203.0.113.7 >"$WORK/one"
    for files in {6..24}; do
        status=0
        (ulimit -n "$files" && "$SIEVE" -q build --force -o "$WORK/few.sieve" "$WORK/one") 2>"$WORK/err" || status=$?
        [ "$status" -ne 0 ] || continue
        refused=$((refused + 1))
        [ "$status" -eq 4 ] && grep -q 'no child process: .*: Too many open files$' "$WORK/err" ||
            fail "build with $files files ended with $status: $(cat "$WORK/err")"
    done
    [ "$refused" -gt 0 ] && [ "$status" -eq 0 ] || fail "refused $refused times"
}

ktap_run \
    "without privileges" no_privileges \
    "with few capabilities" few_capabilities \
    "without bpffs" no_bpffs \
    "under ip netns exec" ip_netns_exec \
    "without environment, folder and input" bare \
    "with few file descriptors" few_files \
    "with too few file descriptors" too_few_files \
    "with too few file descriptors for a child" too_few_for_a_child
