#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# The real fail2ban, with the action that we install: from a line in a log file to the verdict of a packet.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# shellcheck source=service.sh
. "$here/service.sh"
needs_daemon
FAIL2BAN=${SIEVE_FAIL2BAN:-/var/cache/xdp-sieve/fail2ban}
[ -x "$FAIL2BAN/usr/bin/fail2ban-server" ] || skip_all "fail2ban is not here: scripts/install-deps.sh unpacks it"
JAIL=$WORK/fail2ban LOG=$WORK/auth.log
ATTACKER=203.0.113.1 OTHER=203.0.113.2 BY_HAND=198.51.100.9
export PYTHONPATH=$FAIL2BAN/usr/lib/python3/dist-packages PYTHONDONTWRITEBYTECODE=1

configure_both() {
    rm -rf "$STATE" "$JAIL"
    cat >"$CONFIG" <<END
[service]
state-directory = "$STATE"
[[interface]]
name = "$IN_IF"
sets = ["banned"]
[set.banned]
sources = ["bans"]
END
    cp -r "$FAIL2BAN/etc/fail2ban" "$JAIL"
    cp "$here/../../examples/fail2ban/xdp-sieve.conf" "$JAIL/action.d/"
    # Debian's jail is that of the journal.
    rm -f "$JAIL/jail.d/"*
    cat >"$JAIL/jail.local" <<END
[DEFAULT]
banaction = xdp-sieve[program="$SIEVE", config="--config $CONFIG"]
backend = polling
bantime = 1h
findtime = 10m
maxretry = 3
[sshd]
enabled = true
logpath = $LOG
END
    printf '[Definition]\nloglevel = INFO\nlogtarget = %s\ndbfile = %s\nsocket = %s\npidfile = %s\n' \
        "$WORK/fail2ban.log" "$JAIL/db" "$JAIL/socket" "$JAIL/pid" >"$JAIL/fail2ban.local"
    : >"$LOG"
    : >"$WORK/fail2ban.log"
}
client() { inside "$IN" python3 "$FAIL2BAN/usr/bin/fail2ban-client" -c "$JAIL" -s "$JAIL/socket" -p "$JAIL/pid" "$@"; }
start_fail2ban() {
    # In one of our namespaces, so that end_jobs finds it.
    nsenter --net="/run/netns/$IN" python3 "$FAIL2BAN/usr/bin/fail2ban-server" -xf -c "$JAIL" -s "$JAIL/socket" \
        -p "$JAIL/pid" start >>"$WORK/fail2ban.out" 2>&1 &
    fail2ban=$!
    await answers
}
answers() { client status sshd >"$WORK/awaited" 2>&1; }
stop_fail2ban() {
    kill -s "${1-TERM}" "$fail2ban"
    wait "$fail2ban" || true
}
# attacks ADDRESS: what sshd writes.
attacks() {
    for _ in 1 2 3; do
        echo "$(date '+%b %e %H:%M:%S') host sshd[77]: Failed password for root from $1 port 4711 ssh2" >>"$LOG"
    done
}
# Whoever expects a packet waits for it, so they are expected to be dropped.
judges() {
    local found=pass
    if verdicts <<<"drop udp $2 $IN4 1 2" >/dev/null; then found=drop; fi
    [ "$found" = "$1" ] || { echo "$2: $found" >"$WORK/awaited" && return 1; }
}
judged() { judges "$@" || fail "$(cat "$WORK/awaited"); fail2ban: $(tail -n 5 "$WORK/fail2ban.log")"; }
banned() { sieve banned --config "$CONFIG" "$@"; }
# What fail2ban complains of. It may be asked about its jail before it has one, and a server that was killed leaves its
# socket.
complaints() {
    grep -E " ERROR |WARNING.*xdp" "$WORK/fail2ban.log" |
        grep -v -e "UnknownJailException('sshd')" -e "seems to be already running"
}

a_line_in_the_log_is_a_ban() {
    configure_both
    service_manager
    start
    start_fail2ban
    sieve -q ban --reason "by hand" "$BY_HAND"
    attacks "$ATTACKER"
    await judges drop "$ATTACKER"
    judged pass "$OTHER"
    banned | grep -Eq "^$ATTACKER .*  fail2ban sshd$" || fail "$(banned)"
    client unban "$ATTACKER" >/dev/null
    judged pass "$ATTACKER"
    # One that was lifted by hand is no error.
    client set sshd banip "$OTHER" >/dev/null
    await judges drop "$OTHER"
    sieve -q unban "$OTHER"
    judged pass "$OTHER"
    client unban "$OTHER" >/dev/null
    if complaints; then fail "fail2ban complains"; fi
    # The daemon goes and comes; meanwhile, the ledger takes what fail2ban bans.
    stop
    attacks "$ATTACKER"
    await kept "$ATTACKER"
    start
    await judges drop "$ATTACKER"
    # fail2ban goes without a word, and comes back with what it knows.
    stop_fail2ban KILL
    judged drop "$ATTACKER"
    start_fail2ban
    judged drop "$ATTACKER"
    judged drop "$BY_HAND"
    # At its end, what it has banned goes, and nothing else.
    client set sshd banip "$OTHER" >/dev/null
    await judges drop "$OTHER"
    stop_fail2ban
    judged pass "$ATTACKER"
    judged pass "$OTHER"
    judged drop "$BY_HAND"
    if complaints; then fail "fail2ban complains"; fi
    stop
}
kept() { banned | grep -q "^$1 "; }

ktap_run "a line in the log is a ban, over restarts of either side" a_line_in_the_log_is_a_ban
