#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Lists that root names are read by a process without rights: whoever takes it over can do no harm, it ends with its
# command, and `--no-sandbox` does without it.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
printf '192.0.2.%s\n' 1 2 3 >"$WORK/list"
mkfifo "$WORK/fifo"

# child_of COMMAND: the process that the command's process has started; nothing: there is none. `inside` may start the
# command in a process of its own.
child_of() {
    local command
    command=$(pgrep -P "$1" -x "${SIEVE##*/}" || echo "$1")
    pgrep -P "$command" -f 'xdp-sieve: refresh' || true
}
has_child() { [ -n "$(child_of "$1")" ]; }
is_confined() { grep -q '^Seccomp:[[:space:]]*2$' "/proc/$1/status"; }

# reading COMMAND...: starts the command, whose list comes through a FIFO, and returns when a child is confined and has
# not all of it. $command is the command, $child the child, descriptor 8 the FIFO.
reading() {
    "$@" >"$WORK/out" 2>"$WORK/err" &
    command=$!
    exec 8>"$WORK/fifo"
    echo '# not the whole list yet' >&8 # a command looks at the first bytes, which might be those of an image
    await has_child "$command"
    child=$(child_of "$command")
    await is_confined "$child"
}
status_of() { awk -v name="$2:" '$1 == name { $1 = ""; print substr($0, 2) }' "/proc/$1/status"; }

# examine COMMAND...: what the child may do, whose list has this run's number.
examine() {
    reading "$@"
    [ "$(status_of "$child" Uid | cut -d ' ' -f 1)" != 0 ] || fail "$*: root reads the list"
    [ "$(status_of "$child" CapEff)$(status_of "$child" CapBnd)" = "$(printf '%032d' 0)" ] ||
        fail "$*: capabilities $(status_of "$child" CapEff)"
    [ "$(status_of "$child" NoNewPrivs)" = 1 ] || fail "$*: it can gain rights"
    [ "$(find "/proc/$child/fd" -lname '*bpf*' | wc -l)" = 0 ] || fail "$*: it has maps: $(ls -l "/proc/$child/fd")"
    number=$((number + 1))
    echo "192.0.2.$number" >&8
    exec 8>&-
    wait "$command" || fail "$*: $(cat "$WORK/err")"
}
inserting() { sieve -q insert "$IN_IF" set --stdin <"$WORK/fifo"; }

has_no_rights() {
    local number=0
    attach
    examine sieve -q load "$IN_IF" "set=$WORK/fifo"
    examine inserting
    [ "$(sieve --json status "$IN_IF" | jq '.interfaces[0].sets[0].keys')" = 2 ] || fail "not what was on the lists"
    examine "$SIEVE" -q build -o "$WORK/some.sieve" "$WORK/fifo"
}

crashes_alone() {
    attach
    sieve -q load "$IN_IF" "set=$WORK/list"
    state >"$WORK/before"
    reading sieve swap "$IN_IF" "set=$WORK/fifo"
    kill -SEGV "$child"
    exec 8>&-
    local status=0
    wait "$command" || status=$?
    [ "$status" = 3 ] || fail "exit $status: $(cat "$WORK/err")"
    grep -q 'fifo: the process that reads it was ended by signal 11 (SIGSEGV)' "$WORK/err" || fail "$(cat "$WORK/err")"
    state | cmp - "$WORK/before" || fail "something changed"
}

ends_with_its_command() {
    reading "$SIEVE" build -o "$WORK/some.sieve" "$WORK/fifo"
    kill -KILL "$command"
    wait "$command" || true
    await not_running "$child"
    exec 8>&-
}
not_running() { ! kill -0 "$1" 2>/dev/null; }

# What a command says and does, with a child and without.
says_the_same() {
    local list options way
    printf '192.0.2.1\nnonsense\n192.0.2.2/33\n' >"$WORK/bad"
    printf '192.0.2.1\n192.0.2.1\n2001:db8::/32\n' >"$WORK/good"
    printf '# nothing\n' >"$WORK/empty"
    printf '%s\n' ::/80 ::fffe:ffff:fff0-::1:0:0:5 ::fffe:0:0/95 >"$WORK/around" # the v4-mapped addresses
    printf '0.0.0.0 a.example\n192.0.2.1 b.example\n0.0.0.0 c.example\n' >"$WORK/hosts"
    gzip -k "$WORK/good"
    for list in bad good empty around hosts good.gz; do
        for options in "" "--skip-invalid --skipped $WORK/skipped"; do
            for way in "" --no-sandbox; do
                local status=0
                # shellcheck disable=SC2086
                "$SIEVE" $way --json build --seed 1 $options -o "$WORK/one.sieve" "$WORK/$list" >"$WORK/out$way" \
                    2>"$WORK/err$way" || status=$?
                { echo "exit $status" && jq -S 'del(.seconds)' "$WORK/out$way" && cat "$WORK/skipped"; } \
                    >"$WORK/all$way" 2>/dev/null || true
            done
            cmp "$WORK/all" "$WORK/all--no-sandbox" || fail "$list $options: $(cat "$WORK/all" "$WORK/all--no-sandbox")"
            cmp "$WORK/err" "$WORK/err--no-sandbox" || fail "$list $options: $(cat "$WORK/err" "$WORK/err--no-sandbox")"
        done
    done
}

without_a_sandbox() {
    "$SIEVE" --no-sandbox -q build -o "$WORK/some.sieve" "$WORK/fifo" &
    command=$!
    exec 8>"$WORK/fifo"
    printf '192.0.2.9\n' >&8
    sleep 0.1
    ! has_child "$command" || fail "there is a child"
    exec 8>&-
    wait "$command"
    # An ordinary user's command has no rights to lose.
    chmod 0755 "$WORK"
    mkdir -m 0777 "$WORK/open"
    chmod 0666 "$WORK/fifo"
    setpriv --reuid 65534 --regid 65534 --clear-groups "$SIEVE" -q build -o "$WORK/open/some.sieve" "$WORK/fifo" &
    command=$!
    exec 8>"$WORK/fifo"
    printf '192.0.2.9\n' >&8
    sleep 0.1
    ! has_child "$command" || fail "an ordinary user's command has a child"
    exec 8>&-
    wait "$command"
}

# Where the kernel does not let a process become another user, nothing is read, and the message says what helps.
says_why_not() {
    local status=0
    # A user namespace with root alone.
    unshare --user --map-root-user true || skip "no user namespaces here"
    unshare --user --map-root-user "$SIEVE" -q build -o "$WORK/other.sieve" "$WORK/list" 2>"$WORK/err" || status=$?
    [ "$status" = 4 ] || fail "exit $status: $(cat "$WORK/err")"
    grep -q 'list: the process that is to read it cannot give up its privileges: .*no-sandbox' "$WORK/err" ||
        fail "$(cat "$WORK/err")"
    unshare --user --map-root-user "$SIEVE" --no-sandbox -q build -o "$WORK/other.sieve" "$WORK/list"
}

ktap_run \
    "whoever reads a list has no rights" has_no_rights \
    "a reader that crashes changes nothing" crashes_alone \
    "a reader ends with its command" ends_with_its_command \
    "the same is said and done without a sandbox" says_the_same \
    "--no-sandbox, and ordinary users" without_a_sandbox \
    "where there can be no sandbox" says_why_not
