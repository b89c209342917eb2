#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Answers to what this host began: without `replies` a default of drop keeps them out, with it all of them come, and
# nothing else does.
#
#     BOX, a container - IN, the host and its NAT, with the filter - OUT, a router - a small link - FAR, a server
#
# In IPv6 the container is not behind NAT: the host is a plain router for it.
#
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

FAR=sieve-$$-far BOX=sieve-$$-box
# shellcheck disable=SC2034 # lib.sh ends their processes and deletes them
MORE_NAMESPACES=("$FAR" "$BOX")
FAR4=203.0.113.1 FAR6=2001:db8:52::1 BOX4=192.0.2.2 BOX6=2001:db8:53::2
setup
for tool in nft tc ping; do command -v "$tool" >/dev/null || skip_all "$tool is not installed"; done
unset SSH_CONNECTION
CONFIG=$WORK/xdp-sieve.toml FOREIGN=$BUILD/selftests/foreign.bpf.o
printf '%s\n' 192.0.2.200 >"$WORK/nobody"
printf '%s\n' 192.0.2.201 >"$WORK/nobody-else"

for namespace in "$FAR" "$BOX"; do
    ip netns add "$namespace"
    ip -n "$namespace" link set lo up
done
ipv6_up
ip -n "$OUT" link add far mtu 1400 type veth peer name far0 netns "$FAR"
ip -n "$IN" link add box type veth peer name box0 netns "$BOX"
ip -n "$OUT" -batch - <<END
link set far up
address add 203.0.113.2/24 dev far
address add 2001:db8:52::2/64 dev far nodad
route add 2001:db8:53::/64 via $IN6
END
ip -n "$FAR" -batch - <<END
link set far0 up
address add $FAR4/24 dev far0
address add $FAR6/64 dev far0 nodad
route add default via 203.0.113.2 mtu 1400 advmss 1460
route add default via 2001:db8:52::2 mtu 1400 advmss 1440
END
ip -n "$IN" -batch - <<END
link set box up
address add 192.0.2.1/24 dev box
address add 2001:db8:53::1/64 dev box nodad
route add default via $OUT4
route add default via $OUT6
END
ip -n "$BOX" -batch - <<END
link set box0 up
address add $BOX4/24 dev box0
address add $BOX6/64 dev box0 nodad
route add default via 192.0.2.1
route add default via 2001:db8:53::1
END
for namespace in "$OUT" "$IN"; do
    inside "$namespace" sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
done
# Forwarding takes default routes of IPv6 away on some kernels.
ip -n "$IN" -6 route replace default via "$OUT6"
inside "$IN" nft -f - 2>/dev/null <<END && nat=yes || nat=
table ip nat {
    chain post {
        type nat hook postrouting priority 100;
        ip saddr 192.0.2.0/24 oifname "$IN_IF" masquerade
    }
}
END

# Whether the noting program is there.
notes() { tc -n "$IN" filter show dev "$IN_IF" egress 2>/dev/null | grep -q sieve_note; }
no_notes() { ! notes; }

serve() {
    : >"$WORK/serve" # what an earlier one said
    inside "$FAR" "$here/replies.py" serve >"$WORK/serve" &
    await_line "$WORK/serve" ready
}

# becomes EXPECTED NAMESPACE ADDRESS WHAT [EXPECTED WHAT]...: what conversations come to, one after the other.
becomes() {
    local from=$2 to=$3 said
    local -a expected=("$1") asked=("$4")
    shift 4
    while [ $# -gt 0 ]; do
        expected+=("$1")
        asked+=("$2")
        shift 2
    done
    said=$(inside "$from" "$here/replies.py" ask "$to" "${asked[@]}")
    [ "$said" = "$(printf '%s\n' "${expected[@]}")" ] ||
        fail "${asked[*]} from $from to $to: $said, expected ${expected[*]}"
}
pings() { inside "$1" ping -c 1 -W "${WAIT:-3}" "$2" >/dev/null; }

# The path's MTU that the host has learnt to that address.
learnt() { ip -n "$IN" route get "$1" | grep -q 'mtu 1400' || fail "no path MTU: $(ip -n "$IN" route get "$1")"; }

everything_comes() {
    local far
    for far in "$FAR4" "$FAR6"; do
        becomes "got 1" "$IN" "$far" tcp "6 bytes" udp "6 bytes" time "4200 bytes" fragments \
            ConnectionRefusedError closed OSError hop "got 3000000" push
        learnt "$far"
        pings "$IN" "$far" || fail "no answer to a ping of $far"
    done
    for far in ${nat:+"$FAR4"} "$FAR6"; do
        becomes "got 1" "$BOX" "$far" tcp "6 bytes" udp "4200 bytes" fragments ConnectionRefusedError closed \
            "got 3000000" push
        pings "$BOX" "$far" || fail "no answer to a container's ping of $far"
    done
}

# silent NAMESPACE ADDRESS WHAT: it comes to nothing. An answer that comes takes milliseconds, and TCP asks again after
# a second, so there is no need to wait as long as for an answer that is due.
silent() { WAIT=1.5 becomes TimeoutError "$@"; }

# await_all PROCESS...: waits for these. Fails if one of them has failed.
await_all() {
    local process failed=0
    for process in "$@"; do wait "$process" || failed=1; done
    [ "$failed" = 0 ] || fail "not as expected"
}

# nobody_answers NAMESPACE ADDRESS WHAT [NAMESPACE ADDRESS WHAT]...: these come to nothing. All of them are begun at
# once, since each of them waits for the answer that must not come.
nobody_answers() {
    local -a waiting=()
    while [ $# -gt 0 ]; do
        silent "$1" "$2" "$3" &
        waiting+=($!)
        shift 3
    done
    await_all "${waiting[@]}"
}

nothing_comes() {
    local what
    local -a asked=("$BOX" "$FAR6" tcp)
    for what in tcp udp time fragments closed hop; do asked+=("$IN" "$FAR4" "$what"); done
    for what in tcp udp closed; do asked+=("$IN" "$FAR6" "$what"); done
    [ -z "$nat" ] || asked+=("$BOX" "$FAR4" udp)
    nobody_answers "${asked[@]}"
    ! WAIT=1.5 pings "$IN" "$FAR4" || fail "a ping was answered"
}

forget_paths() {
    ip -n "$IN" route flush cache
    ip -n "$IN" -6 route flush cache
}

dropped() { [ "$(counter dropped.packets)" -ge "$1" ]; }

# Packets of a stranger, of both families, change nothing and reach nobody.
strangers_stay_out() {
    local far before sent
    : >"$WORK/reached"
    nsenter --net="/run/netns/$IN" "$here/replies.py" listen >"$WORK/reached" &
    await_line "$WORK/reached" ready
    for far in "$IN4" "$IN6"; do
        before=$(counter dropped.packets)
        sent=$(inside "$FAR" "$here/replies.py" strange "$far")
        [ "$sent" -ge 9 ] || fail "sent: $sent"
        await dropped $((before + sent))
    done
    kill $!
    wait $! 2>/dev/null || true
    [ "$(cat "$WORK/reached")" = ready ] || fail "reached: $(cat "$WORK/reached")"
}

no_answer_comes_without() {
    serve
    everything_comes
    forget_paths
    sieve load "$IN_IF" "few=$WORK/nobody" --default drop --replies drop --allow-lockout >"$WORK/out" 2>"$WORK/err"
    grep -q 'the default drops answers to what this host begins.*replies .* pass. lets them in' "$WORK/err" ||
        fail "$(cat "$WORK/err")"
    no_notes || fail "somebody notes flows"
    nothing_comes
    strangers_stay_out
    [ "$(counter replied.packets)" = 0 ] || fail "replied: $(counter replied.packets)"
}

every_answer_comes_with() {
    serve
    forget_paths
    # Nothing is said about replies.
    sieve load "$IN_IF" "few=$WORK/nobody" --default drop >"$WORK/out" 2>"$WORK/err"
    grep -q 'answers to what this host begins pass, since the default is drop.*xdp-sieve replies .* drop' "$WORK/err" ||
        fail "$(cat "$WORK/err")"
    grep -q 'replies pass: a new flow memory holds up to' "$WORK/out" || fail "$(cat "$WORK/out")"
    notes || fail "nobody notes flows"
    everything_comes
    strangers_stay_out
    [ "$(counter replied.packets)" -gt 0 ] || fail "none was counted"
    sieve stats "$IN_IF" | grep -q 'of these as replies' || fail "stats does not show them"
    sieve --json status "$IN_IF" | jq -e '.interfaces[0] | .replies == "pass" and .flows.noting and .flows.used > 0
        and .flows.load > 0 and .flows.refused == 0' >/dev/null || fail "$(sieve --json status "$IN_IF")"
    sieve -q unload "$IN_IF"
    no_notes || fail "the noting program is left behind"
}

# A list that drops a server does not drop its answers, unless it says so.
lists_of_servers() {
    serve
    printf '%s\n' "$FAR4" "$FAR6" >"$WORK/servers"
    sieve -q load "$IN_IF" "bad=$WORK/servers"
    silent "$IN" "$FAR4" udp
    sieve -q replies "$IN_IF" pass
    becomes "6 bytes" "$IN" "$FAR4" udp
    becomes "got 1" "$IN" "$FAR6" tcp
    strangers_stay_out
    sieve -q set "$IN_IF" bad replies=drop
    silent "$IN" "$FAR4" udp
    sieve --json status "$IN_IF" | jq -e '.interfaces[0].sets[0].replies == "drop"' >/dev/null || fail "not shown"
    sieve -q load "$IN_IF" "bad=$WORK/servers,replies=drop" --replies pass
    silent "$IN" "$FAR6" tcp
    sieve -q load "$IN_IF" "bad=$WORK/servers" --replies pass
    becomes "got 1" "$IN" "$FAR6" tcp
    sieve replies "$IN_IF" drop >"$WORK/out"
    grep -q 'replies drop, was pass' "$WORK/out" || fail "$(cat "$WORK/out")"
    no_notes || fail "the noting program is left behind"
    silent "$IN" "$FAR4" udp
}

# Services of this host for friends alone, without state: only packets to their ports are dropped.
services_for_friends() {
    serve
    nsenter --net="/run/netns/$IN" "$here/replies.py" listen >/dev/null &
    await listening 22
    printf '22 tcp\n40000 udp\n' >"$WORK/services"
    sieve -q load "$IN_IF" "friends=$WORK/nobody,action=pass" "services=$WORK/services,key=dport,proto"
    becomes "got 1" "$IN" "$FAR4" tcp
    becomes "6 bytes" "$IN" "$FAR6" udp
    nobody_answers "$FAR" "$IN4" service "$FAR" "$IN6" service
    printf '%s\n' "$FAR4" "$FAR6" >"$WORK/friends"
    sieve -q swap "$IN_IF" "friends=$WORK/friends"
    becomes connected "$FAR" "$IN4" service
    becomes connected "$FAR" "$IN6" service
    no_notes || fail "somebody notes flows"
    # The same by default: a friend's connections need no memory of flows, and this host's own do.
    sieve -q load "$IN_IF" "friends=$WORK/friends" --default drop --replies drop --allow-lockout 2>"$WORK/err"
    becomes connected "$FAR" "$IN6" service
}
listening() { inside "$IN" ss -Hltn "sport = $1" | grep -q .; }

# round: one round trip of the connection that stays.
round() {
    local said
    echo "hello $RANDOM" >&"$live_in"
    read -r -t "$PATIENCE" said <&"$live_out" || fail "the connection's end has gone"
    [ "$said" = ok ] || fail "after $1: $said"
}
# start_live NAMESPACE ADDRESS
start_live() {
    conversation live nsenter --net="/run/netns/$1" "$here/replies.py" keep "$2"
    read -r -t "$PATIENCE" said <&"${live_out}" || fail "no connection"
    [ "$said" = connected ] || fail "$said"
}
live_in='' live_out=''

# map_of PROGRAM NAME: the id of the program's map of that name.
map_of() {
    local id
    for id in $(bpftool -j prog show id "$1" | jq '.map_ids[]'); do
        [ "$(bpftool -j map show id "$id" | jq -r .name)" = "$2" ] || continue
        echo "$id"
        return
    done
    fail "program $1 has no map $2"
}
# set_abi: the program that runs says that it is of another version.
set_abi() { "$here/replies.py" put "$(map_of "$(program_id)" .data.sieve)" 4 1; }
noting_id() { tc -n "$IN" -j filter show dev "$IN_IF" egress | jq '[.[].options.prog.id // empty] | last'; }

configure() {
    cat >"$CONFIG" <<END
[service]
state-directory = "$WORK/state"
listen = ""
[[interface]]
name = "$IN_IF"
default = "drop"
replies = "pass"
max-flows = 4096
sets = ["few"]
[set.few]
sources = ["nobody"]
END
}
start_daemon() {
    : >"$WORK/said"
    nsenter --net="/run/netns/$IN" "$BUILD/xdp-sieved" --config "$CONFIG" --log stderr 2>"$WORK/said" &
    daemon=$!
}

# A connection from before the filter, and all that can happen to its host meanwhile.
a_connection_lives() {
    serve
    start_live "$IN" "$FAR4"
    everything_happens round
}

# everything_happens CHECK: CHECK WHAT fails if something did not outlive what has happened.
everything_happens() {
    local daemon
    "$1" "its beginning"
    sieve load "$IN_IF" "few=$WORK/nobody" --default drop --max-flows 4096 --allow-lockout >"$WORK/out"
    grep -Eq 'holds up to 4,096 flows .*; [1-9][0-9]* flows? that existed (was|were) noted' "$WORK/out" ||
        fail "$(cat "$WORK/out")"
    "$1" "attaching"
    sieve -q swap "$IN_IF" "few=$WORK/nobody-else" --allow-lockout
    "$1" "a swap"
    sieve load "$IN_IF" "few=$WORK/nobody" --default drop --allow-lockout >"$WORK/out"
    grep -q 'the flow memory in use holds up to 4,096 flows' "$WORK/out" || fail "$(cat "$WORK/out")"
    "$1" "loading again"
    set_abi
    refused_with 4 'version' sieve replies "$IN_IF" pass
    sieve load "$IN_IF" "few=$WORK/nobody" --default drop --force --allow-lockout >"$WORK/out"
    grep -q 'attached, .*' "$WORK/out" || fail "$(cat "$WORK/out")"
    grep -q 'the flow memory in use holds up to 4,096 flows' "$WORK/out" || fail "$(cat "$WORK/out")"
    "$1" "an upgrade"
    strangers_stay_out
    configure
    start_daemon
    await_line "$WORK/said" .
    "$1" "the daemon's start"
    kill -KILL "$daemon"
    wait "$daemon" 2>/dev/null || true
    "$1" "the daemon's death"
    start_daemon
    await_line "$WORK/said" .
    # Somebody takes the noting program away, and the daemon puts it back.
    tc -n "$IN" filter del dev "$IN_IF" egress pref 50000
    await notes
    "$1" "a noting program that was gone"
    becomes "6 bytes" "$IN" "$FAR4" udp
    kill "$daemon"
    wait "$daemon" 2>/dev/null || true
    # An older version had a memory of another layout.
    set_abi
    "$here/replies.py" put "$(map_of "$(noting_id)" .data.note)" 3 0x31
    sieve load "$IN_IF" "few=$WORK/nobody" --default drop --max-flows 8192 --force --allow-lockout >"$WORK/out"
    grep -q 'a new flow memory, in place of one of another version whose notes are gone, holds up to 8,192' \
        "$WORK/out" || fail "$(cat "$WORK/out")"
    "$1" "an upgrade with another layout"
    strangers_stay_out
}

# Sessions of OpenSSH in both directions: this host's at a server, and an administrator's at this host, which no set
# lets in. As a shell in which commands run, theirs prints something from time to time.
ssh_sessions_live() {
    local daemon_of
    for daemon_of in sshd ssh ssh-keygen; do
        [ -x "$(command -v "$daemon_of" || echo "/usr/sbin/$daemon_of")" ] || skip "$daemon_of is not installed"
    done
    serve
    ssh-keygen -q -t ed25519 -N '' -f "$WORK/host_key"
    ssh-keygen -q -t ed25519 -N '' -f "$WORK/user_key"
    cat >"$WORK/sshd_config" <<END
Port 2222
HostKey $WORK/host_key
AuthorizedKeysFile $WORK/user_key.pub
StrictModes no
UsePAM no
PidFile none
PermitRootLogin prohibit-password
END
    start_sshd "$FAR"
    start_sshd "$IN"
    start_session out "$IN" "$FAR4"
    start_session in "$FAR" "$IN6"
    everything_happens sessions_answer
}
# start_sshd NAMESPACE: sshd wants an empty folder of its own, which most systems have only while sshd runs.
start_sshd() {
    # shellcheck disable=SC2016 # the inner shell expands it
    nsenter --net="/run/netns/$1" unshare --mount sh -c 'mount -t tmpfs none /run && mkdir -m 755 /run/sshd &&
        exec /usr/sbin/sshd -D -e -f "$1"' sshd "$WORK/sshd_config" 2>"$WORK/sshd-$1" &
    await_line "$WORK/sshd-$1" 'Server listening on ::'
}
# start_session NAME NAMESPACE ADDRESS: each line is sent back by the other end's shell.
start_session() {
    # shellcheck disable=SC2016 # the other end's shell expands it
    conversation "session_$1" nsenter --net="/run/netns/$2" ssh -F none -T -i "$WORK/user_key" -p 2222 \
        -o LogLevel=ERROR -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "root@$3" \
        'echo "$SSH_CONNECTION"; while sleep 0.5; do echo; done & while read -r line; do echo "said $line"; done'
}
session_out_in='' session_out_out='' session_in_in='' session_in_out=''
sessions_answer() {
    local said word=$RANDOM
    if [ "$1" = "its beginning" ]; then
        read -r -t "$PATIENCE" said <&"$session_out_out" && [[ $said = *" $FAR4 2222" ]] || fail "no session: $said"
        read -r -t "$PATIENCE" said <&"$session_in_out" && [[ $said = *" $IN6 2222" ]] || fail "no session: $said"
    fi
    echo "$word" >&"$session_out_in"
    echo "$word" >&"$session_in_in"
    session_says "said $word" "$session_out_out" || fail "after $1: no answer from the server"
    session_says "said $word" "$session_in_out" || fail "after $1: no answer to the administrator"
}
session_says() {
    local said end=$((SECONDS + 60))
    while [ "$SECONDS" -lt "$end" ] && read -r -t 60 said <&"$2"; do [ "$said" != "$1" ] || return 0; done
    return 1
}

missing_notes_are_shown() {
    serve
    sieve -q load "$IN_IF" "few=$WORK/nobody" --default drop
    tc -n "$IN" filter del dev "$IN_IF" egress pref 50000
    sieve status "$IN_IF" | grep -q 'the program that notes flows is missing' || fail "$(sieve status "$IN_IF")"
    sieve --json status "$IN_IF" | jq -e '.interfaces[0].flows.noting == false' >/dev/null || fail "not in JSON"
    silent "$IN" "$FAR4" udp
    sieve replies "$IN_IF" pass >"$WORK/out"
    grep -q 'what they need is back' "$WORK/out" || fail "$(cat "$WORK/out")"
    becomes "6 bytes" "$IN" "$FAR4" udp
    sieve replies "$IN_IF" pass | grep -q 'replies pass already' || fail "it is not idempotent"
}

# An entry whose time is over for long would count again when the clock comes round. Whoever looks at the state of a
# hook, as the daemon does, takes it out of the memory.
old_notes_go() {
    local memory now
    now=$(($(cut -d. -f1 /proc/uptime) * 1000 / 4295))
    sieve -q load "$IN_IF" "few=$WORK/nobody" --default drop --max-flows 4096
    memory=$("$here/replies.py" get "$(map_of "$(noting_id)" .data.note)" 16)
    # The last entry of page 1: a tag, and a time that was over long ago or comes in many days.
    "$here/replies.py" put "$memory" 4092 0x01234567 1
    "$here/replies.py" put "$memory" 4088 $(((now + 2000000) & 0x3fffff | 0x01000000)) 1
    [ "$("$here/replies.py" get "$memory" 4092 1)" = $((0x01234567)) ] || fail "the entry was not written"
    sieve -q status "$IN_IF" >/dev/null
    [ "$("$here/replies.py" get "$memory" 4092 1)" = 0 ] || fail "the entry is still there"
    # An entry that counts stays.
    "$here/replies.py" put "$memory" 4092 0x01234567 1
    "$here/replies.py" put "$memory" 4088 $(((now + 100) & 0x3fffff | 0x01000000)) 1
    sieve -q status "$IN_IF" >/dev/null
    [ "$("$here/replies.py" get "$memory" 4092 1)" = $((0x01234567)) ] || fail "an entry that counts was taken out"
}

# DHCP with a real client and a real server.
leases() {
    command -v busybox >/dev/null && busybox --list | grep -qx udhcpd && busybox --list | grep -qx udhcpc ||
        skip "busybox has no udhcpd and udhcpc"
    cat >"$WORK/udhcpd.conf" <<END
start 198.51.100.100
end 198.51.100.110
interface $OUT_IF
lease_file $WORK/leases
pidfile $WORK/udhcpd.pid
option subnet 255.255.255.0
option lease 3600
END
    : >"$WORK/leases"
    # shellcheck disable=SC2016 # the client's shell expands them
    printf '#!/bin/sh\necho "$1 $ip" >>"%s"\n' "$WORK/bound" >"$WORK/script"
    chmod +x "$WORK/script"
    inside "$OUT" busybox udhcpd -f "$WORK/udhcpd.conf" 2>"$WORK/udhcpd" &
    await_line "$WORK/udhcpd" started
    sieve -q load "$IN_IF" "few=$WORK/nobody" --default drop --replies drop --allow-lockout 2>"$WORK/err"
    ! inside "$IN" busybox udhcpc -i "$IN_IF" -n -q -t 2 -T 1 -s "$WORK/script" >/dev/null 2>&1 ||
        fail "a lease without replies"
    sieve -q replies "$IN_IF" pass
    nsenter --net="/run/netns/$IN" busybox udhcpc -i "$IN_IF" -f -t 5 -T 2 -s "$WORK/script" >"$WORK/udhcpc" 2>&1 &
    await_line "$WORK/bound" '^bound 198.51.100.1'
    # The lease is renewed at the server itself, with the address that was leased.
    ip -n "$IN" address add "$(sed -n 's/^bound //p' "$WORK/bound")/24" dev "$IN_IF"
    kill -USR1 $!
    await_line "$WORK/bound" '^renew 198.51.100.1'
    kill $!
    ip -n "$IN" address del "$(sed -n 's/^bound //p' "$WORK/bound")/24" dev "$IN_IF"
}

# The same in IPv6, with another client and another server.
leases6() {
    local tool
    for tool in dnsmasq dhcpcd; do command -v "$tool" >/dev/null || skip "$tool is not installed"; done
    # shellcheck disable=SC2016 # the client's shell expands them
    printf '#!/bin/sh\necho "$reason $new_dhcp6_ia_na1_ia_addr1" >>"%s"\n' "$WORK/bound6" >"$WORK/script6"
    chmod +x "$WORK/script6"
    cat >"$WORK/dhcpcd.conf" <<END
duid
ipv6only
noipv6rs
script $WORK/script6
interface $IN_IF
ia_na 1
END
    inside "$OUT" dnsmasq -k -p 0 -C /dev/null --no-resolv --no-hosts --log-dhcp --log-facility=- --leasefile-ro \
        --interface="$OUT_IF" --bind-interfaces --user=root --pid-file= \
        --dhcp-range=2001:db8:51::1000,2001:db8:51::1fff,64,1h 2>"$WORK/dnsmasq" &
    await_line "$WORK/dnsmasq" 'DHCPv6, IP range'
    sieve -q load "$IN_IF" "few=$WORK/nobody" --default drop --replies drop --allow-lockout 2>"$WORK/err"
    : >"$WORK/bound6"
    ask_for_lease6 "$WORK/dhcpcd-without"
    # The server has answered twice, and the client still asks.
    await_line "$WORK/dnsmasq" DHCPADVERTISE
    await several_solicitations
    ! grep -q BOUND6 "$WORK/bound6" || fail "a lease without replies"
    sieve -q replies "$IN_IF" pass
    await_line "$WORK/bound6" '^BOUND6 2001:db8:51::1'
    kill -HUP "$client6"
    await_line "$WORK/bound6" '^(RENEW6|REBIND6|REBOOT6) 2001:db8:51::1'
    kill "$client6"
    wait "$client6" || true
    ip -n "$IN" -6 address flush dev "$IN_IF" dynamic
}
client6=''
ask_for_lease6() {
    # shellcheck disable=SC2016 # the inner shell expands them
    nsenter --net="/run/netns/$IN" unshare --mount sh -c 'mount -t tmpfs none /run && mount -t tmpfs none "$1" &&
        exec dhcpcd -B -f "$2" --nodev -6 "$3"' dhcpcd /var/lib/dhcpcd "$WORK/dhcpcd.conf" "$IN_IF" >"$1" 2>&1 &
    client6=$!
}
several_solicitations() { [ "$(grep -c DHCPADVERTISE "$WORK/dnsmasq")" -ge 2 ]; }

# Bulk transfers in both directions on two CPUs at once. The host's own segments are long ones, which the interface
# cuts, so that the programs see them uncut.
bulk_on_all_cpus() {
    local counts cpus
    sieve -q load "$IN_IF" "few=$WORK/nobody" --default drop
    serve
    inside "$IN" "$here/replies.py" bulk push "$FAR4" "$FAR6" >"$WORK/bulk" || fail "$(cat "$WORK/bulk")"
    counts=$(bpftool -j map dump id "$(map_of "$(noting_id)" sieve_notes)")
    # The map has a value for each CPU that there could be; the transfers ran on those that are there.
    cpus=$(python3 -c 'import os; print(sorted(os.sched_getaffinity(0)))')
    # shellcheck disable=SC2016
    jq -e --argjson cpus "$cpus" '[.[0].formatted.values[] | select(.cpu as $one | $cpus | index($one))] |
        length == ($cpus | length) and all(.[].value; .packets > 100 and .refused == 0)' <<<"$counts" >/dev/null ||
        fail "a CPU noted nothing: $counts"
    # shellcheck disable=SC2016
    jq -e --argjson sent "$(cat "$WORK/bulk")" \
        '$sent / ([.[0].formatted.values[].value.packets] | add) > 3000' <<<"$counts" >/dev/null ||
        fail "packets were cut before they were noted: $(cat "$WORK/bulk") $counts"
    inside "$IN" "$here/replies.py" bulk pull "$FAR4" "$FAR6" >"$WORK/bulk" || fail "$(cat "$WORK/bulk")"
    strangers_stay_out
}

# What this host lives by: answers of resolvers count on replies; without them, DHCP is asked about.
lockout() {
    local before
    printf 'nameserver %s\n' "$FAR4" >"$WORK/resolv.conf"
    guarded() {
        # shellcheck disable=SC2016 # the inner shell expands them
        inside "$IN" unshare --mount bash -c 'mount --bind "$1" /etc/resolv.conf && shift && exec "$@"' sieve \
            "$WORK/resolv.conf" "$SIEVE" "$@"
    }
    refused 3 guarded load "$IN_IF" "few=$WORK/nobody" --default drop --replies drop --replace
    guarded -q load "$IN_IF" "few=$WORK/nobody" --default drop --replace
    before=$(state_of_table)
    refused 3 guarded replies "$IN_IF" drop
    [ "$before" = "$(state_of_table)" ] || fail "something has changed"
    sieve -q unload "$IN_IF"
    # A leased address ends some day.
    ip -n "$IN" address add 198.51.100.50/24 dev "$IN_IF" valid_lft 3600 preferred_lft 3600
    refused 3 sieve load "$IN_IF" "few=$WORK/nobody" --default drop --replies drop
    sieve -q load "$IN_IF" "few=$WORK/nobody" --default drop
    ip -n "$IN" address del 198.51.100.50/24 dev "$IN_IF"
}
state_of_table() { sieve --json status "$IN_IF" | jq '.interfaces[0] | {default, replies, sets}'; }

# port_of NAMESPACE [ADDRESS]: the local port of its TCP connection with the server.
port_of() {
    inside "$1" ss -Htn state established "dst ${2:-$FAR4}" | awk '{ print $3 }' | sed -n 's/.*://p' | head -n 1
}
# is_reply EXPECTED PORT LOCAL_PORT PROTOCOL [FAR NEAR]: whether a packet of the server to this host counts as an
# answer.
is_reply() {
    sieve --json explain "$IN_IF" "${5:-$FAR4} ${6:-$IN4} $2 $3 $4" --key src,dst,sport,dport,proto >"$WORK/out" ||
        [ $? -eq 1 ] # no set decides
    [ "$(jq .reply "$WORK/out")" = "$1" ] || fail "port $3: $(cat "$WORK/out")"
}

# Flows that are silent when replies come on are known all the same, by their sockets.
silent_flows_are_known() {
    local udp port half
    serve
    hold udp "$IN" hold "$FAR4"
    # In IPv6 nothing is tracked here.
    hold half "$IN" half "$FAR6"
    start_live "$IN" "$FAR4"
    round "its beginning"
    port=$(port_of "$IN")
    sieve -q load "$IN_IF" "few=$WORK/nobody" --default drop
    is_reply true 53 "$udp" udp
    is_reply true 7777 "$port" tcp
    is_reply false 7777 "$((port ^ 1))" tcp
    is_reply false 7778 "$port" tcp
    is_reply true 7778 "$half" tcp "$FAR6" "$IN6"
    # This host says nothing in the connection that it has closed; the peer does.
    becomes "6 bytes" "$IN" "$FAR4" speak
    await_line "$WORK/held-half" 'at last'
}
# hold VARIABLE NAMESPACE ARGUMENTS...: has replies.py hold a flow; the variable gets its port.
hold() {
    : >"$WORK/held-$1"
    inside "$2" "$here/replies.py" "${@:3}" >"$WORK/held-$1" &
    await_line "$WORK/held-$1" .
    printf -v "$1" %s "$(head -n 1 "$WORK/held-$1")"
}

# So are those of others behind this host, by nf_conntrack: translated in IPv4, and routed in IPv6.
tracked_flows_are_known() {
    local udp udp6
    [ -n "$nat" ] || skip "nft refuses a table of nat"
    inside "$IN" nft -f - <<'END' 2>/dev/null || skip "nft refuses a table that tracks IPv6"
table ip6 tracked {
    chain forward {
        type filter hook forward priority 0;
        ct state established accept
    }
}
END
    serve
    hold udp "$BOX" hold "$FAR4" spoken
    hold udp6 "$BOX" hold "$FAR6" spoken
    start_live "$BOX" "$FAR4"
    round "its beginning"
    sieve -q load "$IN_IF" "few=$WORK/nobody" --default drop
    is_reply true 53 "$udp" udp
    is_reply false 54 "$udp" udp
    is_reply true 53 "$udp6" udp "$FAR6" "$BOX6"
    is_reply false 53 "$udp6" udp "$FAR6" "$IN6"
    is_reply true 7777 "$(port_of "$BOX")" tcp
    sieve -q unload "$IN_IF"
    start_live "$BOX" "$FAR6"
    round "its beginning"
    sieve -q load "$IN_IF" "few=$WORK/nobody" --default drop
    is_reply true 7777 "$(port_of "$BOX" "[$FAR6]")" tcp "$FAR6" "$BOX6"
    is_reply false 7778 "$(port_of "$BOX" "[$FAR6]")" tcp "$FAR6" "$BOX6"
    round "attaching"
    inside "$IN" nft delete table ip6 tracked
}

# What everything_comes leaves out where nft refuses the table.
translated_answers_come() {
    [ -n "$nat" ] || skip "nft refuses a table of nat"
    serve
    sieve -q load "$IN_IF" "few=$WORK/nobody" --default drop --replies drop --allow-lockout 2>"$WORK/err"
    silent "$BOX" "$FAR4" udp
    sieve -q replies "$IN_IF" pass
    becomes "got 1" "$BOX" "$FAR4" tcp "6 bytes" udp "4200 bytes" fragments ConnectionRefusedError closed
    pings "$BOX" "$FAR4" || fail "no answer to a container's ping of $FAR4"
}

# Another range of ports for this host's sockets reaches the noting program: an unconnected socket whose port the
# kernel chose is a client's. Whoever looks at a hook, as the daemon does, or puts a table in force tells it.
another_range_of_ports() {
    local control
    sieve -q load "$IN_IF" "few=$WORK/nobody" --default drop
    control=$(map_of "$(noting_id)" .data.note)
    range_is() { [ "$("$here/replies.py" get "$control" 8) $("$here/replies.py" get "$control" 12)" = "$1" ]; }
    inside "$IN" sysctl -qw net.ipv4.ip_local_port_range="20000 29999"
    ! range_is "20000 29999" || fail "nobody has told it"
    sieve -q status "$IN_IF" >/dev/null
    range_is "20000 29999" || fail "status did not tell it"
    inside "$IN" sysctl -qw net.ipv4.ip_local_port_range="30000 39999"
    sieve -q load "$IN_IF" "few=$WORK/nobody-else" --default drop
    range_is "30000 39999" || fail "load did not tell it"
    inside "$IN" sysctl -qw net.ipv4.ip_local_port_range="32768 60999"
}

# What a UDP packet of this host begins, its socket tells, and else its ports: a server's answers begin nothing.
clients_of_udp_are_told_from_servers() {
    local chosen
    sieve -q load "$IN_IF" "few=$WORK/nobody" --default drop
    says 9000 40001
    is_reply false 40001 9000 udp # the port was not chosen by the kernel
    says 9000 53
    is_reply true 53 9000 udp # but this is what resolvers do
    says 9001 40001 connected
    is_reply true 40001 9001 udp
    says 9002 9002
    is_reply true 9002 9002 udp
    says 600 40001
    is_reply false 40001 600 udp
    says 0 40001 >"$WORK/chosen"
    chosen=$(cat "$WORK/chosen")
    is_reply true 40001 "$chosen" udp
    inside "$IN" sysctl -qw net.ipv4.ip_local_port_range="20000 29999"
    sieve -q status "$IN_IF" >/dev/null
    says 40500 40001
    is_reply false 40001 40500 udp
    says 20500 40001
    is_reply true 40001 20500 udp
    inside "$IN" sysctl -qw net.ipv4.ip_local_port_range="32768 60999"
}
# says PORT TO [connected]: a socket of this host sends a packet from that port, or from one that the kernel chooses,
# which is printed.
says() {
    inside "$IN" python3 - "$FAR4" "$@" <<'END'
import socket, sys
far, port, to = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("", port))
if len(sys.argv) > 4:
    sock.connect((far, to))
    sock.send(b"a packet")
else:
    sock.sendto(b"a packet", (far, to))
if port == 0:
    print(sock.getsockname()[1])
END
}

# Where the hook that the noting program needs cannot be had, one error says so, and nothing is changed. The kernel
# refuses each request by netlink in turn; one of them asks for the queueing discipline.
no_hook_for_notes() {
    local before error i calls rc said=0
    [ -z "${SANITIZED:-}" ] || skip "a sanitizer ends the program where a call of its own fails"
    [ -x "$BUILD/selftests/inject" ] || skip "inject is not built: make -C tests/selftests"
    sieve -q load "$IN_IF" "few=$WORK/nobody"
    before=$(state_of_table)
    injected() { inside "$IN" "$BUILD/selftests/inject" "$@" -- "$SIEVE" --no-sandbox replies "$IN_IF" pass; }
    injected "$WORK/calls" >/dev/null 2>"$WORK/err" || fail "$(cat "$WORK/err")"
    calls=$(grep -c '^sendto' "$WORK/calls")
    sieve -q replies "$IN_IF" drop
    tc -n "$IN" qdisc del dev "$IN_IF" clsact 2>/dev/null || true
    for error in 2 95; do # a kernel without clsact says ENOENT, an interface EOPNOTSUPP
        for ((i = 1; i <= calls; i++)); do
            rc=0
            injected "$WORK/calls" sendto "$i" "$error" >"$WORK/out" 2>"$WORK/err" || rc=$?
            if [ "$rc" = 0 ]; then # this request can be done without
                sieve -q replies "$IN_IF" drop
                tc -n "$IN" qdisc del dev "$IN_IF" clsact 2>/dev/null || true
                continue
            fi
            [ "$rc" = 4 ] || fail "request $i, error $error: exit code $rc, $(cat "$WORK/err")"
            [ "$(wc -l <"$WORK/err")" = 1 ] || fail "request $i, error $error: $(cat "$WORK/err")"
            [ "$before" = "$(state_of_table)" ] || fail "request $i, error $error: something has changed"
            no_notes || fail "request $i, error $error: the noting program is left behind"
            ! grep -q 'replies need a program.*cannot be attached: .*needs cls_bpf and clsact.*nothing was changed' \
                "$WORK/err" || said=$((said + 1))
        done
        tc -n "$IN" qdisc del dev "$IN_IF" clsact 2>/dev/null || true
    done
    [ "$said" -ge 4 ] || fail "$said errors name what is missing; the discipline and the filter, twice each"
}

# A connection that a peer began to a port of this host is no flow of this host. It goes on if this host says something
# in it during the minute of learning.
sessions_are_learnt() {
    conversation live nsenter --net="/run/netns/$IN" "$here/replies.py" await
    read -r -t "$PATIENCE" said <&"$live_out" || fail "no listener"
    nsenter --net="/run/netns/$FAR" "$here/replies.py" echo "$IN4" &
    read -r -t "$PATIENCE" said <&"$live_out" || fail "no connection"
    [ "$said" = connected ] || fail "$said"
    sieve -q load "$IN_IF" "few=$WORK/nobody" --default drop --allow-lockout
    round "attaching"
    strangers_stay_out
    round "strangers"
}

# A friend, whom a set lets in, pulls a large file. "Packet too big" comes from a router that no set knows.
friends_path_mtu() {
    forget_paths
    inside "$IN" "$here/replies.py" serve >"$WORK/serve" &
    await listening 8080
    printf '%s\n' "$FAR4" "$FAR6" >"$WORK/friends"
    sieve -q load "$IN_IF" "friends=$WORK/friends" --default drop --replies drop --allow-lockout 2>"$WORK/err"
    silent "$FAR" "$IN4" pull
    sieve -q replies "$IN_IF" pass
    becomes "got 3000000" "$FAR" "$IN4" pull
    learnt "$FAR4"
    becomes "got 3000000" "$FAR" "$IN6" pull
    learnt "$FAR6"
}

# generic XDP, and tc's ingress.
other_hooks() {
    local way
    serve
    for way in "-m skb" "--hook ingress"; do
        # shellcheck disable=SC2086
        sieve -q load "$IN_IF" $way "few=$WORK/nobody" --default drop --replies pass
        forget_paths
        everything_comes
        sieve -q unload "$IN_IF"
        no_notes || fail "the noting program is left behind: $way"
    done
}

# A tunnel without Ethernet headers.
ip_tunnel() {
    ip -n "$IN" link add tunnel type ipip local "$IN4" remote "$OUT4" 2>/dev/null || skip "this kernel has no ipip"
    ip -n "$OUT" link add tunnel type ipip local "$OUT4" remote "$IN4"
    ip -n "$IN" address add 192.0.2.129/30 dev tunnel
    ip -n "$OUT" address add 192.0.2.130/30 dev tunnel
    ip -n "$IN" link set tunnel up
    ip -n "$OUT" link set tunnel up
    nsenter --net="/run/netns/$OUT" "$here/replies.py" serve >/dev/null &
    await served
    sieve -q load tunnel --hook ingress "few=$WORK/nobody" --default drop --replies drop --allow-lockout 2>"$WORK/err"
    silent "$IN" 192.0.2.130 udp
    sieve -q replies tunnel pass
    becomes "6 bytes" "$IN" 192.0.2.130 udp
    becomes "got 3000000" "$IN" 192.0.2.130 push
    ip -n "$IN" link del tunnel
    ip -n "$OUT" link del tunnel
}

# A tun device, as of a VPN in user space: no Ethernet headers, and generic XDP.
tun_device() {
    [ -c /dev/net/tun ] || skip "there is no /dev/net/tun"
    "$here/replies.py" tun "$IN" "$OUT" >"$WORK/tun" &
    await_line "$WORK/tun" ready
    ip -n "$IN" -batch - <<END
address add 192.0.2.133/30 dev tun0
address add 2001:db8:54::1/64 dev tun0 nodad
link set tun0 up
END
    ip -n "$OUT" -batch - <<END
address add 192.0.2.134/30 dev tun0
address add 2001:db8:54::2/64 dev tun0 nodad
link set tun0 up
END
    inside "$OUT" "$here/replies.py" serve >/dev/null &
    await served
    local hook
    for hook in "--hook xdp -m skb" "--hook ingress"; do
        # shellcheck disable=SC2086
        sieve -q load tun0 $hook "few=$WORK/nobody" --default drop --replies drop --allow-lockout 2>"$WORK/err"
        silent "$IN" 192.0.2.134 udp
        sieve -q replies tun0 pass
        becomes "6 bytes" "$IN" 192.0.2.134 udp "4200 bytes" fragments "got 3000000" push
        becomes "6 bytes" "$IN" 2001:db8:54::2 udp "got 3000000" pull ConnectionRefusedError closed
        silent "$OUT" 192.0.2.133 service
        sieve -q unload tun0
    done
}
served() { inside "$OUT" ss -Hltn "sport = 7777" | grep -q '0.0.0.0'; }

c_interface() {
    [ -e "$BUILD/libsieve.so" ] || skip "libsieve.so is not built"
    inside "$IN" "$here/replies.py" library "$BUILD/libsieve.so" "$IN_IF" "$WORK/nobody" >"$WORK/out"
    diff - <(sed "s|$IN_IF|IFACE|g" "$WORK/out" | cut -c 1-100) <<'END' || fail "another outcome"
table_new done
table_set_replies replies `perhaps`: expected pass or drop
table_set_replies done
table_add done
table_keep_replies_out set worse: the table has no such set
table_keep_replies_out done
table_apply done
edit_replies max_flows 4096: expected 0, or with replies that pass a whole number of flows from 64 t
edit_replies IFACE: 8192 flows are asked for, and the flow memory in force, which all interfaces sha
edit_replies done
END
    sieve --json status "$IN_IF" | jq -e '.interfaces[0] | .replies == "pass" and .flows.max_flows == 4096 and
        .sets[0].replies == "drop"' >/dev/null || fail "$(sieve --json status "$IN_IF")"
}

events_and_explain() {
    serve
    printf '%s\n' "$FAR4" >"$WORK/servers"
    sieve -q load "$IN_IF" "bad=$WORK/servers,action=drop" --default drop --replies pass
    inside "$IN" "$SIEVE" --json events "$IN_IF" --replies --count 1 >"$WORK/events" 2>/dev/null &
    await sampling
    becomes "6 bytes" "$IN" "$FAR4" udp
    wait $!
    jq -es '.[0] | .reply and .verdict == "pass"' "$WORK/events" >/dev/null || fail "$(cat "$WORK/events")"
    # A socket that stays has a flow to ask about.
    start_live "$IN" "$FAR4"
    local port
    port=$(port_of "$IN")
    sieve --json explain "$IN_IF" "$FAR4 $IN4 7777 $port tcp" --key src,dst,sport,dport,proto >"$WORK/out"
    jq -e '.set == "bad" and .reply == true' "$WORK/out" >/dev/null || fail "$(cat "$WORK/out")"
    sieve explain "$IN_IF" "$FAR4 $IN4 7778 $port tcp" --key src,dst,sport,dport,proto |
        grep -q 'answers no flow' || fail "a packet of no flow"
    sieve explain "$IN_IF" "$FAR4" --key src | grep -q 'unless the packet answers' || fail "an address alone"
}
sampling() { [ "$(sieve --json status "$IN_IF" | jq ".interfaces[0].sampling")" = 1 ]; }

refusals() {
    local before
    refused 2 sieve load "$IN_IF" "few=$WORK/nobody" --replies perhaps
    refused 2 sieve load "$IN_IF" "few=$WORK/nobody" --replies pass --max-flows 5
    refused 2 sieve load "$IN_IF" "few=$WORK/nobody,action=pass,replies=drop"
    sieve -q load "$IN_IF" "few=$WORK/nobody" --replies pass --max-flows 4096
    before=$(state_of_table)
    refused 2 sieve replies "$IN_IF" pass --max-flows 8192
    refused 2 sieve replies "$IN_IF" perhaps
    # A foreign map where the flow memory belongs.
    local control memory foreign
    control=$(map_of "$(noting_id)" .data.note)
    foreign=$(map_of "$(program_id)" sieve_stats)
    memory=$("$here/replies.py" get "$control" 16)
    "$here/replies.py" put "$control" 16 "$foreign"
    refused_with 4 "BPF map $foreign .sieve_stats. is where a flow memory belongs, and is none" \
        sieve replies "$IN_IF" pass
    refused_with 4 "BPF map $foreign .sieve_stats. is where a flow memory belongs, and is none" \
        sieve load "$IN_IF" "other=$WORK/nobody" --replies pass
    "$here/replies.py" put "$control" 16 "$memory"
    [ "$before" = "$(state_of_table)" ] || fail "something has changed"
    sieve -q unload "$IN_IF"
    # Somebody else's filter sits where the noting program belongs.
    tc -n "$IN" qdisc add dev "$IN_IF" clsact 2>/dev/null || true
    inside "$IN" tc filter add dev "$IN_IF" egress pref 50000 protocol ipv6 bpf da obj "$FOREIGN" sec tc
    refused_with 4 'replies need a program that notes what leaves .* nothing was changed' \
        sieve load "$IN_IF" "few=$WORK/nobody" --replies pass
    [ -z "$(program_id)" ] || fail "attached all the same"
    sieve -q load "$IN_IF" "few=$WORK/nobody"
    refused_with 4 'replies need a program that notes what leaves' sieve replies "$IN_IF" pass
    sieve --json status "$IN_IF" | jq -e '.interfaces[0].replies == "drop"' >/dev/null || fail "replies are on"
    # One that only has the name of ours is left alone.
    tc -n "$IN" filter del dev "$IN_IF" egress pref 50000
    inside "$IN" tc filter add dev "$IN_IF" egress pref 40000 protocol all bpf da obj "$FOREIGN" sec tc/name
    sieve -q replies "$IN_IF" pass
    [ "$(tc -n "$IN" filter show dev "$IN_IF" egress | grep -c 'sieve_note')" = 2 ] || fail "one is missing"
    sieve -q unload "$IN_IF"
    tc -n "$IN" filter show dev "$IN_IF" egress | grep -q 'pref 40000.*sieve_note' || fail "the foreign one is gone"
    tc -n "$IN" qdisc del dev "$IN_IF" clsact
}

# One memory for all interfaces: an answer that comes in elsewhere passes there, too. The last user takes it away.
several_hooks() {
    sieve -q load "$IN_IF" "few=$WORK/nobody" --default drop
    sieve -q load --hook ingress box "few=$WORK/nobody" --default drop --replies pass --allow-lockout
    sieve --json status | jq -e '[.interfaces[].flows.max_flows] | length == 2 and .[0] == .[1]' >/dev/null ||
        fail "two memories"
    sieve -q load --hook ingress "$IN_IF" "few=$WORK/nobody" --replies pass --allow-lockout
    sieve -q unload --hook xdp "$IN_IF"
    notes || fail "the hook at ingress still needs the notes"
    sieve -q unload --hook ingress "$IN_IF"
    no_notes || fail "nobody needs the notes"
    sieve -q unload --hook ingress box
}

probation() {
    sieve -q load "$IN_IF" "few=$WORK/nobody"
    sieve -q replies "$IN_IF" pass --confirm 600
    notes || fail "nobody notes flows"
    sieve -q confirm "$IN_IF" --take-back
    no_notes || fail "notes are taken for nobody"
    sieve -q replies "$IN_IF" pass
    sieve -q replies "$IN_IF" drop --confirm 600
    notes || fail "replies might come back"
    sieve -q confirm "$IN_IF" --take-back
    notes || fail "replies came back, and nobody notes flows"
    sieve -q replies "$IN_IF" drop --confirm 600
    sieve -q confirm "$IN_IF"
    no_notes || fail "notes are taken for nobody"
}

# What a change that was not confirmed in time brought stays until the next change of its table, or until somebody says
# that replies are dropped, or wants a memory of another size.
probation_that_runs_out() {
    tried() {
        sieve -q "$@" --confirm 1
        notes || fail "nobody notes flows: $*"
        await is_taken_back
    }
    tried load "$IN_IF" "few=$WORK/nobody" --default drop --allow-lockout
    sieve -q add "$IN_IF" "few=$WORK/nobody"
    no_notes || fail "add left the noting program behind"
    tried replies "$IN_IF" pass --hook xdp
    sieve replies "$IN_IF" drop | grep -q 'replies drop already' || fail "not dropped already"
    no_notes || fail "drop left the noting program behind"
    tried replies "$IN_IF" pass --max-flows 4096
    sieve replies "$IN_IF" pass --max-flows 8192 >"$WORK/out"
    grep -q 'a new flow memory holds up to 8,192 flows' "$WORK/out" || fail "$(cat "$WORK/out")"
    tried replies "$IN_IF" drop
    sieve -q swap "$IN_IF" "few=$WORK/nobody-else"
    notes || fail "swap took away what the table that came back needs"
    # Another hook needs it, or the next change does.
    sieve -q load "$IN_IF" --hook ingress "few=$WORK/nobody" --replies pass
    sieve -q replies "$IN_IF" --hook xdp drop
    tried replies "$IN_IF" --hook xdp pass
    sieve -q swap "$IN_IF" --hook xdp "few=$WORK/nobody"
    notes || fail "the other hook lost its noting program"
    sieve -q unload "$IN_IF" --hook ingress
    tried replies "$IN_IF" pass
    sieve -q replies "$IN_IF" pass --confirm 60
    notes || fail "a new probation has no noting program"
    sieve -q confirm "$IN_IF"
    sieve -q unload "$IN_IF"
    no_notes || fail "the noting program is left behind"
}
is_taken_back() { sieve --json status "$IN_IF" | jq -e 'any(.interfaces[]; .taken_back == true)' >/dev/null; }

ktap_run \
    "without replies a default of drop keeps every answer out" no_answer_comes_without \
    "with replies every answer comes, and nothing else" every_answer_comes_with \
    "answers of listed servers pass, unless the list says otherwise" lists_of_servers \
    "services for friends alone need no replies" services_for_friends \
    "a connection lives through attach, swap, reload, upgrade and the daemon's death" a_connection_lives \
    "so do sessions of OpenSSH" ssh_sessions_live \
    "silent flows from before are known" silent_flows_are_known \
    "so are flows that are tracked for others" tracked_flows_are_known \
    "translated answers come" translated_answers_come \
    "another range of ports is heard of" another_range_of_ports \
    "clients of UDP are told from servers" clients_of_udp_are_told_from_servers \
    "without a hook for notes one error comes" no_hook_for_notes \
    "a peer's connection goes on if this host speaks in it" sessions_are_learnt \
    "a friend's path MTU is learnt, too" friends_path_mtu \
    "generic XDP and ingress" other_hooks \
    "a tunnel" ip_tunnel \
    "a tun device" tun_device \
    "bulk transfers on all CPUs" bulk_on_all_cpus \
    "the C interface" c_interface \
    "a missing noting program is shown and comes back" missing_notes_are_shown \
    "notes whose time is over are taken out" old_notes_go \
    "DHCP leases and renews with replies only" leases \
    "DHCPv6 does, too" leases6 \
    "the lockout guard counts on replies, and asks for DHCP without them" lockout \
    "events and explain tell replies" events_and_explain \
    "what cannot be had is refused, and nothing is changed" refusals \
    "all hooks share one memory, and the last takes it away" several_hooks \
    "a change of replies on probation" probation \
    "a probation that runs out leaves nothing behind" probation_that_runs_out
