# shellcheck shell=bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# What the tests of the service share, beside lib.sh: a configuration with two sets, and a daemon that is started,
# listened to and ended.

SIEVED=${SIEVED:-$BUILD/xdp-sieved}
CONFIG=$WORK/xdp-sieve.toml LISTS=$WORK/lists STATE=$WORK/state
MEMBER=203.0.113.1 FRIEND=203.0.113.77 STRANGER=203.0.113.200
daemon=

needs_daemon() { [ -x "$SIEVED" ] || skip_all "xdp-sieved is not built"; }

# --- the configuration --------------------------------------------------------------------------------------

# configure [INTERFACE [SET [SERVICE]]]: writes a configuration with two sets: one of the file bad.txt, one of the
# folder friends/. The arguments are further lines for the interface, for the set bad, and for the service.
configure() {
    cat >"$CONFIG" <<END
[service]
state-directory = "$STATE"
${3-}
[[interface]]
name = "$IN_IF"
sets = ["friends", "bad"]
${1-}
[set.friends]
sources = ["lists/friends/"]
action = "pass"
[set.bad]
sources = ["lists/bad.txt"]
fpr = 1e-9
${2-}
END
}

# fresh_lists [ARGUMENTS OF configure...]: removes all state, and writes lists and configuration.
fresh_lists() {
    rm -rf "$STATE" "$LISTS"
    mkdir -p "$LISTS/friends"
    printf '%s\n' "$MEMBER" 203.0.113.64/28 >"$LISTS/bad.txt"
    printf '%s\n' "$FRIEND" >"$LISTS/friends/a.txt"
    configure "$@"
}

# How these two sets judge.
judged() {
    verdicts <<END
drop udp $MEMBER $IN4 1 2
drop udp 203.0.113.65 $IN4 1 2
pass udp $FRIEND $IN4 1 2
pass udp $STRANGER $IN4 1 2
END
}

# of_set COMMAND SET MEMBER: prints a member of a set's object in the JSON of status or stats.
of_set() {
    sieve --json "$1" "$IN_IF" | jq -r --arg set "$2" ".interfaces[0].sets[] | select(.name == \$set).$3"
}
identity() { of_set status "$1" identity; }

# --- the daemon ---------------------------------------------------------------------------------------------

# Starts a service manager that listens. What it is told appears in $WORK/notified.
service_manager() {
    rm -rf "$WORK/notify" "$WORK/notified"
    : >"$WORK/notified"
    # In one of our namespaces, so that end_jobs finds it.
    # shellcheck disable=SC2154 # lib.sh sets it
    inside "$OUT" "$here/notify_socket.py" "$WORK/notify" "$WORK/notified" &
    await test -S "$WORK/notify"
}

# start [ENVIRONMENT...]: starts the daemon. Returns when it is ready: what it remembers is in force then. What it
# logs appears in $WORK/said.
start() {
    : >"$WORK/notified"
    : >"$WORK/said"
    env NOTIFY_SOCKET="$WORK/notify" "$@" nsenter --net="/run/netns/$IN" "$SIEVED" --config "$CONFIG" --log stderr \
        2>>"$WORK/said" &
    daemon=$!
    await_line "$WORK/notified" '^READY=1'
}

# stop [SIGNAL [STATUS]]: ends the daemon; its exit status must be this one.
stop() {
    local status=0
    kill -s "${1-TERM}" "$daemon"
    wait "$daemon" || status=$?
    [ "$status" = "${2-0}" ] || fail "exit status $status: $(cat "$WORK/said")"
}

# says PATTERN: waits until the daemon has logged a matching line.
says() { await_line "$WORK/said" "$1"; }

# says_anew PATTERN COMMAND...: runs the command, and waits for a matching line that was not there before.
says_anew() {
    local pattern=$1 before
    shift
    before=$(grep -Ec -- "$pattern" "$WORK/said" || true)
    "$@"
    await more_lines "$pattern" "$before"
}
more_lines() { [ "$(grep -Ec -- "$1" "$WORK/said" || true)" -gt "$2" ]; }

# metric NAME: prints its value; the configuration has listen = "127.0.0.1:9273".
metric() { inside "$IN" curl -sf http://127.0.0.1:9273/metrics | sed -n "s/^$1 //p"; }
