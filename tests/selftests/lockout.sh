#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# No change drops an address that the host lives by: each kind of address, each command, each hook.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup

# Counters stay out: packets of the namespaces' own, such as multicast reports, come at any time.
state() {
    program_id
    sieve --json status "$IN_IF" | without_flows
}

GATEWAY=198.51.100.254 RESOLVER=203.0.113.53 ADMINISTRATOR=198.51.100.77 LISTED=192.0.2.99
ip -n "$IN" route add default via "$GATEWAY"
# A mount namespace of our own has another resolv.conf.
echo "nameserver $RESOLVER" >"$WORK/resolv.conf"
sieve() {
    # shellcheck disable=SC2016 # the inner shell expands them
    inside "$IN" unshare --mount bash -c 'mount --bind "$1" /etc/resolv.conf && shift && exec "$@"' sieve \
        "$WORK/resolv.conf" "$SIEVE" "$@"
}
unset SSH_CONNECTION
printf '%s\n' 192.0.2.1 >"$WORK/nobody"
printf '%s\n' "$LISTED" >"$WORK/listed"

# is_a_lockout ADDRESS [OPTION...]: a list that holds the address is refused, with its line, unless it is meant.
is_a_lockout() {
    local address=$1 before
    shift
    printf '%s\n' '# a list' 192.0.2.1 "$address" >"$WORK/bad.txt"
    refused 3 sieve load "$IN_IF" "bad=$WORK/bad.txt" "$@"
    [ -z "$(program_id)" ] || fail "attached"
    sieve -q load "$IN_IF" "bad=$WORK/nobody" "$@"
    before=$(state)
    refused 3 sieve swap "$IN_IF" "bad=$WORK/bad.txt" "$@"
    refused 3 sieve load "$IN_IF" "bad=$WORK/bad.txt,limit=1" "$@"
    unchanged "$before"
    sieve -q swap "$IN_IF" "bad=$WORK/bad.txt" "$@" --allow-lockout
    sieve -q load "$IN_IF" "friends=$WORK/bad.txt,action=pass" "bad=$WORK/bad.txt" "$@"
    refused 3 sieve remove "$IN_IF" friends "$@"
    sieve -q unload "$IN_IF"
}

own_address() { is_a_lockout "$IN4"; }
gateway() { is_a_lockout "$GATEWAY"; }
resolver() { is_a_lockout "$RESOLVER"; }
ssh_peer() {
    export SSH_CONNECTION="$ADMINISTRATOR 50000 $IN4 22"
    is_a_lockout "$ADMINISTRATOR"
}
protected_list() { is_a_lockout "$LISTED" --protect "$WORK/listed"; }

# An established session of an administrator's port, which only its sockets show.
established_session() {
    local port
    tcp "$OUT" "$IN" "$IN4"
    port=$(inside "$IN" ss -Htn state established | awk '{ print $3 }' | sed -n 's/.*://p' | head -n 1)
    printf '%s\n' "$OUT4" >"$WORK/bad.txt"
    sieve -q load "$IN_IF" "bad=$WORK/nobody"
    is_session_on "$port"
    end_tcp
}
is_session_on() {
    local port=$1
    varies+=(port)
    refused 3 sieve load "$IN_IF" "bad=$WORK/bad.txt" --admin-ports "2222,$port"
    # With its real ports.
    printf '%s\n' "$OUT4 $IN4 $port tcp" >"$WORK/flows.txt"
    refused 3 sieve load "$IN_IF" "bad=$WORK/flows.txt,key=src,dst,dport,proto" --admin-ports "$port"
    printf '%s\n' "$OUT4 $IN4 $((port ^ 1)) tcp" >"$WORK/flows.txt"
    sieve -q load "$IN_IF" "bad=$WORK/flows.txt,key=src,dst,dport,proto" --admin-ports "$port"
    # Without the option the port is no administrator's.
    sieve -q load "$IN_IF" "bad=$WORK/bad.txt"
    refused 2 sieve load "$IN_IF" "bad=$WORK/bad.txt" --admin-ports 70000
}

# The sessions of an sshd that listens elsewhere, which nothing shows but its process.
other_port() {
    local port
    varies+=(port)
    ln -s "$(python3 -c 'import sys; print(sys.executable)')" "$WORK/sshd" # which may be a script in the search path
    mkfifo "$WORK/port"
    inside "$IN" "$WORK/sshd" -c '
import socket
listener = socket.create_server(("", 0))
print(listener.getsockname()[1], flush=True)
session = listener.accept()[0]
session.recv(1)' >"$WORK/port" &
    read -r port <"$WORK/port"
    inside "$OUT" bash -c "exec 3<>/dev/tcp/$IN4/$port; read -r -u 3" &
    await session_of "$port"
    printf '%s\n' "$OUT4" >"$WORK/bad.txt"
    refused 3 sieve load "$IN_IF" "bad=$WORK/bad.txt"
}
session_of() { inside "$IN" ss -Htn state established "sport = $1" | grep -q .; }

# At a rate of one in 195, two of five filters match one of a hundred addresses, and others are built instead.
false_positive() {
    seq -f '192.0.2.%g' 1 100 >"$WORK/listed"
    seq -f '10.1.2.%g' 1 250 >"$WORK/bad.txt"
    for _ in 1 2 3; do
        sieve -v load "$IN_IF" "bad=$WORK/bad.txt,bits-per-key=8" --protect "$WORK/listed" >>"$WORK/said" 2>&1
        sieve -v swap "$IN_IF" "bad=$WORK/bad.txt,bits-per-key=8" --protect "$WORK/listed" >>"$WORK/said" 2>&1
    done
    # An image is what it is; the message says how to go on. The image must not match what the host lives by anyway.
    {
        printf '%s\n' "$GATEWAY" "$RESOLVER"
        ip -n "$IN" -j address | jq -r '.[].addr_info[].local'
    } >"$WORK/host"
    while true; do
        "$SIEVE" -q build -o "$WORK/bad.sieve" "$WORK/bad.txt" --bits-per-key 8 --except "$WORK/host"
        "$SIEVE" query "$WORK/bad.sieve" --stdin <"$WORK/listed" >"$WORK/answers" || true # 1: some are absent
        if grep -q ' present$' "$WORK/answers"; then break; fi
    done
    refused_with 3 'would drop 192.0.2.*a member or a false positive: the image cannot tell.*--except' \
        sieve load "$IN_IF" "bad=$WORK/bad.sieve" --protect "$WORK/listed"
    "$SIEVE" -q build -o "$WORK/bad.sieve" "$WORK/bad.txt" --bits-per-key 8 \
        --except <(cat "$WORK/host" "$WORK/listed")
    sieve -q load "$IN_IF" "bad=$WORK/bad.sieve" --protect "$WORK/listed"
}

an_allowlist() {
    refused 3 sieve load "$IN_IF" "friends=$WORK/nobody" --default drop --replies drop
    export SSH_CONNECTION="$ADMINISTRATOR 50000 $IN4 22"
    printf '%s\n' "$RESOLVER" >"$WORK/friends.txt"
    # A session that the other end began is no reply.
    refused 3 sieve load "$IN_IF" "friends=$WORK/friends.txt" --default drop
    printf '%s\n' "$RESOLVER" "$ADMINISTRATOR" >"$WORK/friends.txt"
    sieve -q load "$IN_IF" "friends=$WORK/friends.txt" --default drop --replies drop
    refused 3 sieve swap "$IN_IF" "friends=$WORK/nobody"
    # To lock everybody out on purpose does not mean to lock out the host itself.
    refused 2 sieve remove "$IN_IF" friends
    refused 3 sieve remove "$IN_IF" friends --force
}

# A key may come to a set that only counts for now, and the table that comes back drops it.
keys_on_probation() {
    sieve -q load "$IN_IF" "bad=$WORK/nobody,kind=exact"
    sieve -q set "$IN_IF" bad action=count --confirm 3600
    refused 3 sieve insert "$IN_IF" bad "$GATEWAY"
    sieve -q insert "$IN_IF" bad "$ADMINISTRATOR"
    sieve -q confirm "$IN_IF"
    sieve -q insert "$IN_IF" bad "$GATEWAY"
    sieve -q unload "$IN_IF"

    printf '%s\n' "$GATEWAY" 192.0.2.1 >"$WORK/friends.txt"
    echo 198.51.100.0/24 >"$WORK/wide"
    sieve -q load "$IN_IF" "friends=$WORK/friends.txt,kind=exact,action=pass" "wide=$WORK/wide" --allow-lockout
    sieve -q set "$IN_IF" wide action=count --confirm 3600
    refused 3 sieve delete "$IN_IF" friends "$GATEWAY"
    sieve -q delete "$IN_IF" friends 192.0.2.1
    sieve -q delete "$IN_IF" friends "$GATEWAY" --allow-lockout
    sieve -q unload "$IN_IF"
}

packets_that_leave() {
    printf '%s\n' "$GATEWAY" >"$WORK/bad.txt"
    refused 3 sieve load "$IN_IF" --hook egress "bad=$WORK/bad.txt,key=dst"
    # Packets from the gateway do not leave.
    sieve -q load "$IN_IF" --hook egress "bad=$WORK/bad.txt,key=src"
    sieve -q unload "$IN_IF"
}

the_list_is_too_long() {
    echo 10.0.0.0/8 >"$WORK/long"
    refused 3 sieve load "$IN_IF" "bad=$WORK/nobody" --protect "$WORK/long"
    refused 3 sieve load "$IN_IF" "bad=$WORK/nobody" --protect "$WORK/missing"
}

# A pipe that nobody writes to is at the place of resolv.conf. What the check lacks is said; the rest of it holds.
unreadable_resolvers() {
    mv "$WORK/resolv.conf" "$WORK/readable"
    mkfifo "$WORK/resolv.conf"
    printf '%s\n' "$RESOLVER" >"$WORK/bad.txt"
    sieve load "$IN_IF" "bad=$WORK/bad.txt" >/dev/null 2>"$WORK/err" || fail "$(cat "$WORK/err")"
    [ "$(grep -c "resolv.conf: is no regular file; this host's resolvers are not known" "$WORK/err")" = 1 ] ||
        fail "$(cat "$WORK/err")"
    printf '%s\n' "$GATEWAY" >"$WORK/bad.txt"
    refused 3 sieve -q swap "$IN_IF" "bad=$WORK/bad.txt"
    rm "$WORK/resolv.conf"
    mv "$WORK/readable" "$WORK/resolv.conf"
}

ktap_run \
    "this host's own address" own_address \
    "a gateway" gateway \
    "a resolver" resolver \
    "the peer of SSH_CONNECTION" ssh_peer \
    "an established session" established_session \
    "an established session of an sshd at another port" other_port \
    "a list of protected addresses" protected_list \
    "a false positive is no lockout, and an image says what to do" false_positive \
    "an allowlist without the resolver or the administrator" an_allowlist \
    "keys, while a change is on probation" keys_on_probation \
    "packets that leave" packets_that_leave \
    "a list that is too long, or missing" the_list_is_too_long \
    "resolvers that cannot be read" unreadable_resolvers
