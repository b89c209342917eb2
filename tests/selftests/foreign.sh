#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# A foreign XDP program on the interface: without --force, no command replaces, changes or removes it.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

FOREIGN=$BUILD/selftests/foreign.bpf.o
[ -e "$FOREIGN" ] || skip_all "the other program is not built: run make -C tests/selftests"
setup
image "$WORK/bad.sieve" src 203.0.113.7

attach_foreign() { ip -n "$IN" link set dev "$IN_IF" "${1:-xdp}" obj "$FOREIGN" sec xdp; }

# still_there ID: the foreign program runs as before.
still_there() {
    [ "$(program_id)" = "$1" ] || fail "the other program is gone"
    verdicts <<END
drop udp 2001:db8::1 $IN6 1 2
pass udp 203.0.113.7 $IN4 1 2
END
}

respected() {
    local id
    attach_foreign "$1"
    id=$(program_id)
    refused_with 4 "foreign.*$id.*--force" sieve load "$IN_IF" "bad=$WORK/bad.sieve"
    refused_with 1 "foreign" sieve swap "$IN_IF" "bad=$WORK/bad.sieve"
    refused_with 1 "foreign" sieve remove "$IN_IF" bad
    refused_with 1 "foreign" sieve unload "$IN_IF"
    refused_with 1 "foreign" sieve stats "$IN_IF"
    [ "$(sieve --json status | jq '.interfaces | length')" = 0 ] || fail "status takes it for ours"
    still_there "$id"
}
native() { respected xdpdrv; }
generic() { respected xdpgeneric; }

forced() {
    attach_foreign
    sieve -q load --force "$IN_IF" "bad=$WORK/bad.sieve" 2>/dev/null
    verdicts <<END
pass udp 2001:db8::1 $IN6 1 2
drop udp 203.0.113.7 $IN4 1 2
END
    sieve -q unload "$IN_IF"
    [ -z "$(program_id)" ] || fail "unload left a program"
}

# If --force fails for another reason, the foreign program is still there.
forced_in_vain() {
    local id
    attach_foreign
    id=$(program_id)
    echo "no address" >"$WORK/malformed"
    refused 3 sieve load --force "$IN_IF" "bad=$WORK/malformed"
    refused 3 sieve load --force "$IN_IF" "bad=$WORK/missing"
    still_there "$id"
}

ktap_run \
    "respected in the driver" native \
    "respected in the generic hook" generic \
    "replaced by force" forced \
    "not taken away by a load that fails" forced_in_vain
