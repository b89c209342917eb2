#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# The systemd unit: systemd finds nothing wrong with it, and the daemon works with no more rights than it leaves.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
UNIT_SOURCE=$here/../../userspace/xdp-sieved/xdp-sieved.service.in
[ -e "$UNIT_SOURCE" ] || skip_all "the unit is not here"
UNIT=$WORK/xdp-sieved.service
# shellcheck source=service.sh
. "$here/service.sh"

needs_daemon
mkdir "$WORK/sbin" && ln -s "$SIEVED" "$WORK/sbin/xdp-sieved"
# The pages are not installed here, and systemd would look for them.
sed -e "s|@SBINDIR@|$WORK/sbin|" -e '/^Documentation=/d' "$UNIT_SOURCE" >"$UNIT"

needs_systemd() { command -v systemd-analyze >/dev/null || skip "systemd-analyze is not installed"; }

verifies() {
    needs_systemd
    systemd-analyze verify "$UNIT" >"$WORK/said" 2>&1 || fail "$(cat "$WORK/said")"
    [ ! -s "$WORK/said" ] || fail "$(cat "$WORK/said")"
}

# 2.5 of 10, 10 being the most exposed.
is_hardened() {
    needs_systemd
    systemd-analyze security --offline=yes --threshold=25 --no-pager "$UNIT" >"$WORK/said" || fail "$(cat "$WORK/said")"
    grep Overall "$WORK/said"
}

# The capabilities that the unit leaves, as setpriv(1) has them: +sys_admin,...
capabilities() {
    sed -nE 's/^CapabilityBoundingSet=//p' "$UNIT" | tr ' ' '\n' | sed 's/^CAP_/+/' | tr '[:upper:]\n' '[:lower:],' |
        sed 's/,$//'
}

# Starts the daemon with these alone, beside a service manager that listens.
start_confined() {
    cat >"$CONFIG" <<END
[service]
state-directory = "$WORK/state"
[[interface]]
name = "$IN_IF"
sets = ["bad"]
[set.bad]
sources = ["$WORK/bad.txt"]
END
    echo "$MEMBER" >"$WORK/bad.txt"
    : >"$WORK/said"
    service_manager
    # A file of root alone, in a folder that others may enter, is what lists usually are.
    chmod 755 "$WORK" && chmod 600 "$WORK/bad.txt"
    WATCHDOG_USEC=2000000 NOTIFY_SOCKET=$WORK/notify \
        setpriv --no-new-privs --bounding-set "-all,$(capabilities)" --inh-caps -all \
        nsenter --net="/run/netns/$IN" "$SIEVED" --config "$CONFIG" --log stderr 2>"$WORK/said" &
    daemon=$!
}

works_with_these_rights() {
    start_confined
    await_line "$WORK/said" "^xdp-sieved: $IN_IF: attached"
    verdicts <<END
drop udp $MEMBER $IN4 1 2
pass udp $STRANGER $IN4 1 2
END
    echo "$STRANGER" >>"$WORK/bad.txt"
    await_line "$WORK/said" 'set bad: a new list with 2 entries'
    verdicts <<<"drop udp $STRANGER $IN4 1 2"
    await_line "$WORK/notified" '^READY=1'
    await_line "$WORK/notified" '^WATCHDOG=1'
    : >"$WORK/notified"
    kill -HUP "$daemon"
    await_line "$WORK/notified" '^RELOADING=1'
    await_line "$WORK/notified" '^READY=1'
    kill "$daemon"
    wait "$daemon" || fail "$(cat "$WORK/said")"
    await_line "$WORK/notified" '^STOPPING=1'
}

# What the journal is told: sentences with their priority and with fields. The daemon has a mount namespace of its own,
# in which a test's socket is the journal's.
writes_to_the_journal() {
    rm -rf "$WORK/run" "$WORK/journal.said" "$STATE"
    mkdir -p "$WORK/run/systemd/journal" && mkdir -m 700 "$WORK/run/xdp-sieve"
    configure && mkdir -p "$LISTS/friends"
    echo "$MEMBER" >"$LISTS/bad.txt" && echo "$FRIEND" >"$LISTS/friends/a.txt"
    : >"$WORK/journal.said"
    inside "$OUT" "$here/notify_socket.py" "$WORK/run/systemd/journal/socket" "$WORK/journal.said" &
    await test -S "$WORK/run/systemd/journal/socket"
    # shellcheck disable=SC2016 # the inner shell expands these
    nsenter --net="/run/netns/$IN" unshare --mount bash -c \
        'mount --bind "$1" /run && exec "$2" --config "$3" --log journal' - "$WORK/run" "$SIEVED" "$CONFIG" &
    daemon=$!
    await_line "$WORK/journal.said" 'MESSAGE=set bad: a new list with 1 .* \| PRIORITY=5 \| .*SET=bad \| ENTRIES=1'
    await_line "$WORK/journal.said" "MESSAGE=$IN_IF: attached.* \\| PRIORITY=5 \\| .*INTERFACE=$IN_IF \\| HOOK=xdp"
    echo '<html>' >"$LISTS/bad.txt"
    await_line "$WORK/journal.said" 'MESSAGE=set bad: .*HTML page.* \| PRIORITY=4 \| .*SET=bad \| .*RESULT=failed'
    kill "$daemon"
    wait "$daemon" || fail "$(cat "$WORK/journal.said")"
}

# In a container, say: nothing listens there, and what the daemon says must not be lost.
has_no_journal() {
    rm -rf "$WORK/run"
    mkdir "$WORK/run"
    # shellcheck disable=SC2016 # the inner shell expands these
    refused_with 3 'missing.toml: cannot be read' unshare --mount bash -c \
        'mount --bind "$1" /run && exec "$2" --config "$3" --log journal' - "$WORK/run" "$SIEVED" "$WORK/missing.toml"
}

ktap_run \
    "systemd-analyze verify finds nothing" verifies \
    "systemd-analyze security says 2.5 or better" is_hardened \
    "the daemon works with the unit's capabilities" works_with_these_rights \
    "the journal gets sentences with fields" writes_to_the_journal \
    "without a journal, standard error gets the log" has_no_journal
