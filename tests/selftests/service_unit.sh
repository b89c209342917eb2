#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# The systemd unit: systemd finds nothing wrong with it, and the daemon works with no more rights than it leaves.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
SIEVED=${SIEVED:-$BUILD/xdp-sieved}
[ -x "$SIEVED" ] || skip_all "xdp-sieved is not built"
UNIT_SOURCE=$here/../../userspace/xdp-sieved/xdp-sieved.service.in
[ -e "$UNIT_SOURCE" ] || skip_all "the unit is not here"
UNIT=$WORK/xdp-sieved.service
CONFIG=$WORK/xdp-sieve.toml
MEMBER=203.0.113.1 STRANGER=203.0.113.200

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

# Starts the daemon with these alone.
start() {
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
    # A file of root alone, in a folder that others may enter, is what lists usually are.
    chmod 755 "$WORK" && chmod 600 "$WORK/bad.txt"
    setpriv --no-new-privs --bounding-set "-all,$(capabilities)" --inh-caps -all \
        nsenter --net="/run/netns/$IN" "$SIEVED" --config "$CONFIG" --log stderr 2>"$WORK/said" &
    daemon=$!
}

works_with_these_rights() {
    start
    await_line "$WORK/said" "^xdp-sieved: $IN_IF: attached"
    verdicts <<END
drop udp $MEMBER $IN4 1 2
pass udp $STRANGER $IN4 1 2
END
    echo "$STRANGER" >>"$WORK/bad.txt"
    await_line "$WORK/said" 'set bad: a new list with 2 entries'
    verdicts <<<"drop udp $STRANGER $IN4 1 2"
    kill "$daemon"
    wait "$daemon" || fail "$(cat "$WORK/said")"
}

ktap_run \
    "systemd-analyze verify finds nothing" verifies \
    "systemd-analyze security says 2.5 or better" is_hardened \
    "the daemon works with the unit's capabilities" works_with_these_rights
