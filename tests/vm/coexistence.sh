#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Beside another XDP program, by libxdp's dispatcher: both see the packets, and either goes without the other.
# shellcheck source=../selftests/lib.sh
. "$(dirname "$0")/../selftests/lib.sh"

NEIGHBOUR=$BUILD/selftests/neighbour.bpf.o
[ -e "$NEIGHBOUR" ] || skip_all "the other program is not built: run make -C tests/vm"
command -v xdp-loader >/dev/null || skip_all "xdp-loader is not installed"
setup
image "$WORK/bad.sieve" src 203.0.113.7 2001:db8:bad::7

loader() { inside "$IN" xdp-loader "$@"; }

program_name() {
    ip -n "$IN" -j -d link show "$IN_IF" | jq -r '.[0].xdp.prog.name // .[0].xdp.attached[0].prog.name // empty'
}

# The ids of the programs behind the dispatcher that have this name.
ids_of() { loader status "$IN_IF" | awk -v name="$1" '$1 == "=>" && $3 == name { print $4 }'; }

# How many packets the other program has counted.
seen() { bpftool -j map dump name neighbour_seen | jq '.[0].formatted.value // .[0].elements[0].formatted.value'; }

sieve_status() { sieve --json status "$IN_IF" | jq -r ".interfaces[0].$1"; }

# Takes all away, by the other program's own tool.
clear_all() {
    loader unload "$IN_IF" --all >/dev/null 2>&1 || true
    loader clean "$IN_IF" >/dev/null 2>&1 || true
    reset_interfaces
}

# add_neighbour MODE PRIORITY: attaches it as its own tool does.
add_neighbour() {
    loader load -m "$1" -P "$2" "$IN_IF" "$NEIGHBOUR"
    [ "$(program_name)" = xdp_dispatcher ] || skip "this kernel refuses the programs of libxdp's dispatcher"
}

# All that follows is known of a kernel that has the dispatcher.
add_sieve() {
    sieve -q load "$@" "$IN_IF" "bad=$WORK/bad.sieve" 2>"$WORK/err" || fail "load: $(cat "$WORK/err")"
    [ ! -s "$WORK/err" ] || fail "load says: $(cat "$WORK/err")"
}

# Both do their work: members dropped by us, port 9 by the neighbour, and all else arrives.
both_work() {
    [ "$(program_name)" = xdp_dispatcher ] || fail "$(program_name) is attached, and not the dispatcher"
    [ "$(sieve_status dispatcher)" = true ] || fail "status does not tell of the dispatcher"
    verdicts <<END
drop udp 203.0.113.7 $IN4 1000 53
drop tcp 2001:db8:bad::7 $IN6 1000 80
drop udp 203.0.113.8 $IN4 1000 9
pass udp 203.0.113.8 $IN4 1000 53
pass tcp 2001:db8:bad::8 $IN6 1000 80
END
}

neighbour_works_alone() {
    local before
    before=$(seen)
    verdicts <<END
drop udp 203.0.113.8 $IN4 1000 9
pass udp 203.0.113.7 $IN4 1000 53
pass udp 203.0.113.8 $IN4 1000 53
END
    [ $(($(seen) - before)) -eq 9 ] || fail "the other program saw $(($(seen) - before)) packets instead of 9"
}

sieve_works_alone() {
    verdicts <<END
drop udp 203.0.113.7 $IN4 1000 53
pass udp 203.0.113.8 $IN4 1000 9
END
}

# joins MODE: it is there first; we join, and go, and it does not notice.
joins() {
    local id
    clear_all
    add_neighbour "$1" 10
    id=$(ids_of neighbour)
    neighbour_works_alone
    add_sieve -m "$1"
    both_work
    [ "$(ids_of neighbour)" = "$id" ] || fail "the other program was loaded anew"
    [ "$(sieve_status mode)" = "$1" ] || fail "not in $1 mode but $(sieve_status mode)"
    sieve -q unload "$IN_IF"
    neighbour_works_alone
    [ "$(ids_of neighbour)" = "$id" ] || fail "the other program was loaded anew"
    refused 1 'xdp-sieve' sieve stats "$IN_IF"
    # And once more, as nothing may be left of the first time.
    add_sieve -m "$1"
    both_work
    clear_all
}
joins_native() { joins native; }
joins_skb() { joins skb; }

# We are there first, and it joins and goes.
is_joined() {
    clear_all
    add_neighbour native 10
    clear_all
    add_sieve
    add_neighbour native 10
    both_work
    loader unload "$IN_IF" --id "$(ids_of neighbour)"
    sieve_works_alone
    sieve -q unload "$IN_IF"
    [ -z "$(program_id)" ] || fail "unload left a program"
}

# The one with the lower number is asked first, and the other one only about what it passed.
order() {
    clear_all
    add_neighbour native 10
    add_sieve
    both_work # 15 packets of which it drops 3
    [ "$(seen)" = 15 ] || fail "the first program saw $(seen) packets instead of 15"
    [ "$(counter outcomes.complete)" = 12 ] || fail "we saw $(counter outcomes.complete) packets instead of 12"
    clear_all
    add_neighbour native 90
    add_sieve
    both_work # 15 packets of which we drop 6
    [ "$(seen)" = 9 ] || fail "the last program saw $(seen) packets instead of 9"
    [ "$(counter outcomes.complete)" = 15 ] || fail "we saw $(counter outcomes.complete) packets instead of 15"
    clear_all
}

# Every verb finds our maps behind the dispatcher.
verbs() {
    clear_all
    add_neighbour native 10
    add_sieve
    image "$WORK/other.sieve" src 203.0.113.9
    sieve -q swap "$IN_IF" "bad=$WORK/other.sieve"
    verdicts <<END
drop udp 203.0.113.9 $IN4 1000 53
pass udp 203.0.113.7 $IN4 1000 53
END
    [ "$(counter dropped.packets)" = 3 ] || fail "stats tells $(counter dropped.packets) packets instead of 3"
    sieve -q load --default drop "$IN_IF" "bad=$WORK/bad.sieve,action=drop" "good=$WORK/other.sieve,action=pass"
    verdicts <<END
drop udp 203.0.113.7 $IN4 1000 53
drop udp 203.0.113.8 $IN4 1000 53
drop udp 203.0.113.9 $IN4 1000 9
pass udp 203.0.113.9 $IN4 1000 53
END
    sieve -q remove "$IN_IF" good
    verdicts <<<"drop udp 203.0.113.9 $IN4 1000 53"
    sieve -q unload "$IN_IF"
    neighbour_works_alone
    clear_all
}

# While it comes and goes, the packets that flow are judged as ever.
under_traffic() {
    local round
    clear_all
    add_neighbour native 10
    clear_all
    add_sieve
    {
        for round in {1..50}; do
            echo "member drop drop udp 203.0.113.7 $IN4 $((1000 + round)) 53"
            echo "stranger pass pass udp 203.0.113.8 $IN4 $((1000 + round)) 53"
        done
    } >"$WORK/flows"
    start_stream "$WORK/flows" "$WORK/report"
    for round in 1 2 3; do
        add_neighbour native $((round * 40 - 30))
        sleep 0.2
        loader unload "$IN_IF" --id "$(ids_of neighbour)"
        sleep 0.2
    done
    stop_stream || true
    jq -c '{packets, arrived, wrong, seconds}' "$WORK/report"
    jq -r '.examples[]' "$WORK/report"
    [ "$(jq .wrong "$WORK/report")" = 0 ] || fail "wrong verdicts"
    sieve -q unload "$IN_IF"
}

# And while we come and go, nothing of the neighbour's is lost: it counts every packet.
counts_on() {
    local round before sent
    clear_all
    add_neighbour native 10
    before=$(seen)
    for round in {1..50}; do
        echo "stranger pass pass udp 203.0.113.8 $IN4 $((1000 + round)) 53"
    done >"$WORK/flows"
    start_stream "$WORK/flows" "$WORK/report"
    for round in 1 2 3; do
        add_sieve
        sieve -q unload "$IN_IF"
    done
    stop_stream || true
    sent=$(jq .packets "$WORK/report")
    [ "$(jq .wrong "$WORK/report")" = 0 ] || fail "wrong verdicts"
    [ $(($(seen) - before)) -eq "$sent" ] || fail "the other program saw $(($(seen) - before)) of $sent packets"
    clear_all
}

# A program that was attached alone cannot be joined: neither we it, nor anybody us.
alone() {
    local id
    clear_all
    ip -n "$IN" link set dev "$IN_IF" xdp obj "$NEIGHBOUR" sec xdp
    id=$(program_id)
    refused 4 "neighbour.*$id.*--force" sieve load "$IN_IF" "bad=$WORK/bad.sieve"
    [ "$(program_id)" = "$id" ] || fail "the other program is gone"
    neighbour_works_alone
    reset_interfaces
    attach
    sieve -q load "$IN_IF" "bad=$WORK/bad.sieve"
    id=$(program_id)
    ! loader load -m native "$IN_IF" "$NEIGHBOUR" || fail "the other program took our place"
    [ "$(program_id)" = "$id" ] || fail "we are gone"
    sieve_works_alone
}

# libxdp pins what it shares; once all are gone nothing may be left of it.
nothing_left() {
    local before after
    clear_all
    before=$(find /sys/fs/bpf | sort)
    add_neighbour native 10
    add_sieve
    both_work
    loader unload "$IN_IF" --id "$(ids_of neighbour)"
    sieve_works_alone
    sieve -q unload "$IN_IF"
    [ -z "$(program_id)" ] || fail "unload left a program"
    after=$(find /sys/fs/bpf | sort)
    [ "$after" = "$before" ] || fail "left behind: $(comm -13 <(echo "$before") <(echo "$after"))"
    ! bpftool -j prog show | grep -E '"name":"(xdp_sieve|xdp_dispatcher|neighbour)' || fail "programs are left"
}

ktap_run \
    "joins another program in the driver, and leaves it" joins_native \
    "joins another program in the generic hook, and leaves it" joins_skb \
    "is joined by another program, and left" is_joined \
    "the priority decides who is asked first" order \
    "every verb works behind the dispatcher" verbs \
    "verdicts stay right while another program comes and goes" under_traffic \
    "another program counts on while we come and go" counts_on \
    "programs attached alone are respected" alone \
    "nothing is left behind" nothing_left
