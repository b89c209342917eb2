#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Running beside another XDP program, by libxdp's dispatcher: both see the packets, and each can leave without the
# other.
# shellcheck source=../selftests/lib.sh
. "$(dirname "$0")/../selftests/lib.sh"

NEIGHBOUR=$BUILD/selftests/neighbour.bpf.o
[ -e "$NEIGHBOUR" ] || skip_all "the other program is not built: run make -C tests/vm"
INJECT=$BUILD/selftests/inject
command -v xdp-loader >/dev/null || skip_all "xdp-loader is not installed"
setup
image "$WORK/bad.sieve" src 203.0.113.7 2001:db8:bad::7

loader() { inside "$IN" xdp-loader "$@"; }

program_name() {
    ip -n "$IN" -j -d link show "$IN_IF" | jq -r '.[0].xdp.prog.name // .[0].xdp.attached[0].prog.name // empty'
}

# Prints the ids of the programs behind the dispatcher that have this name.
ids_of() { loader status "$IN_IF" | awk -v name="$1" '$1 == "=>" && $3 == name { print $4 }'; }

# Prints how many packets the other program has counted.
seen() {
    await dump_seen
    jq '.[0].formatted.value // .[0].elements[0].formatted.value' "$WORK/seen"
}
# Looking for a name, bpftool opens all maps. It fails if one of them goes away meanwhile.
dump_seen() {
    bpftool -j map dump name neighbour_seen >"$WORK/seen" && jq -e 'type == "array"' "$WORK/seen" >/dev/null
}

sieve_status() { sieve --json status "$IN_IF" | jq -r ".interfaces[0].$1"; }

# Removes everything with the other programs' own tools.
clear_all() {
    inside "$IN" xdp-filter unload "$IN_IF" >/dev/null 2>&1 || true
    loader unload "$IN_IF" --all >/dev/null 2>&1 || true
    loader clean "$IN_IF" >/dev/null 2>&1 || true
    reset_interfaces
}

# add_neighbour MODE PRIORITY: attaches the neighbour as its own tool does.
add_neighbour() {
    loader load -m "$1" -P "$2" "$IN_IF" "$NEIGHBOUR"
    [ "$(program_name)" = xdp_dispatcher ] || skip "this kernel refuses the programs of libxdp's dispatcher"
}

# All later tests need a kernel that supports the dispatcher.
add_sieve() {
    sieve load "$@" "$IN_IF" "bad=$WORK/bad.sieve" 2>"$WORK/err" || fail "load: $(cat "$WORK/err")"
    [ ! -s "$WORK/err" ] || fail "load says: $(cat "$WORK/err")"
}

# Both programs do their work: ours drops members, the neighbour drops port 9, and all other packets arrive.
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

# joins MODE: the neighbour is there first. Ours joins and leaves, and the neighbour does not notice.
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
    refused_with 1 'xdp-sieve' sieve stats "$IN_IF"
    # Once more, because nothing may be left of the first time.
    add_sieve -m "$1"
    both_work
    clear_all
}
joins_native() { joins native; }
joins_skb() { joins skb; }

# Ours is there first. The neighbour joins and leaves.
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

# asked NEIGHBOUR US: checks how many of the 15 packets of both_work each program has seen.
asked() {
    local before
    before=$(seen)
    both_work
    [ $(($(seen) - before)) = "$1" ] || fail "the other program saw $(($(seen) - before)) packets instead of $1"
    [ "$(counter outcomes.complete)" = "$2" ] || fail "we saw $(counter outcomes.complete) packets instead of $2"
}

# The program with the lower priority number is asked first, the other one only about packets that the first one
# passed. The neighbour drops 3 of the 15 packets, and ours drops 6.
order() {
    local ours
    clear_all
    add_neighbour native 30
    for ours in "" "--priority 31"; do
        # shellcheck disable=SC2086 # two words or none
        add_sieve $ours
        asked 15 12
        sieve -q unload "$IN_IF"
    done
    add_sieve --priority 29
    asked 9 15
    clear_all
    # The neighbour joins us, with a rank before or behind ours.
    add_sieve --priority 30
    add_neighbour native 31
    asked 9 15
    loader unload "$IN_IF" --id "$(ids_of neighbour)"
    sieve -q unload "$IN_IF"
    add_sieve --priority 30
    add_neighbour native 29
    asked 15 12
    clear_all
}

# Which of our verdicts let the next program be asked. Its verdict then counts.
chain() {
    local before
    clear_all
    add_neighbour native 50
    add_sieve --priority 10 --chain pass,drop
    before=$(seen)
    verdicts <<END
pass udp 203.0.113.7 $IN4 1000 53
drop udp 203.0.113.7 $IN4 1000 9
pass udp 203.0.113.8 $IN4 1000 53
END
    [ $(($(seen) - before)) = 9 ] || fail "the other program saw $(($(seen) - before)) packets instead of 9"
    [ "$(counter dropped.packets)" = 6 ] || fail "we dropped $(counter dropped.packets) packets instead of 6"
    sieve -q unload "$IN_IF"
    add_sieve --priority 10 --chain none
    before=$(seen)
    verdicts <<END
drop udp 203.0.113.7 $IN4 1000 53
pass udp 203.0.113.8 $IN4 1000 9
END
    [ "$(seen)" = "$before" ] || fail "the other program was asked"
    clear_all
}

# The programs behind the dispatcher and their order, by our status and by the other tool.
told() {
    clear_all
    add_neighbour native 50
    add_sieve --priority 7 --chain drop,redirect
    sieve status "$IN_IF"
    [ "$(sieve_status priority)" = 7 ] || fail "status tells priority $(sieve_status priority)"
    [ "$(sieve_status chain)" = drop,redirect ] || fail "status tells chain $(sieve_status chain)"
    [ "$(sieve_status attached_by)" = load ] || fail "status tells that $(sieve_status attached_by) attached it"
    [ "$(sieve_status 'programs | map("\(.name) \(.priority) \(.chain)") | join(";")')" = \
        "xdp_sieve 7 drop,redirect;neighbour 50 pass" ] || fail "status tells $(sieve_status programs)"
    [ "$(sieve_status 'programs[1].id')" = "$(ids_of neighbour)" ] || fail "status tells another neighbour"
    sieve status "$IN_IF" >"$WORK/told"
    grep -q "behind libxdp's dispatcher, priority 7, chain drop,redirect" "$WORK/told" || fail "told wrongly"
    grep -q "asked then: *neighbour (id $(ids_of neighbour)), priority 50, chain pass" "$WORK/told" ||
        fail "the neighbour is told wrongly"
    loader status "$IN_IF" | grep -E '=> +7 +xdp_sieve ' || fail "xdp-loader tells otherwise"
    # After attaching, the rank cannot change.
    refused_with 2 'priority 7.*leave -m, --priority and --chain out' \
        sieve load --priority 8 "$IN_IF" "bad=$WORK/bad.sieve"
    refused_with 2 'priority 7.*leave -m, --priority and --chain out' \
        sieve load --chain pass "$IN_IF" "bad=$WORK/bad.sieve"
    loader unload "$IN_IF" --id "$(ids_of neighbour)"
    [ "$(sieve_status 'programs | map(.name) | join(" ")')" = xdp_sieve ] || fail "status tells of one that went"
    [ "$(sieve_status priority)" = 7 ] || fail "the priority has changed to $(sieve_status priority)"
    sieve -q unload "$IN_IF"
}

# xdp-tools' own filter, before us and behind us. It drops packets from an address that it was given.
xdp_filter() {
    clear_all
    command -v xdp-filter >/dev/null || skip "xdp-filter is not installed"
    inside "$IN" xdp-filter load -m native -f ipv4 "$IN_IF"
    inside "$IN" xdp-filter ip -m src 203.0.113.50
    add_sieve
    three_sources drop drop pass
    [ "$(sieve_status 'programs | map(.name) | index("xdp_sieve")')" = 1 ] || fail "we are not asked second"
    inside "$IN" xdp-filter unload "$IN_IF"
    three_sources drop pass pass
    # The other order.
    inside "$IN" xdp-filter load -m native -f ipv4 "$IN_IF"
    inside "$IN" xdp-filter ip -m src 203.0.113.50
    three_sources drop drop pass
    sieve -q unload "$IN_IF"
    three_sources pass drop pass
    inside "$IN" xdp-filter unload "$IN_IF"
    [ -z "$(program_id)" ] || fail "something is still attached"
}

# three_sources MEMBER FILTERED OTHER: the verdicts for our member, for xdp-filter's address, and for other sources.
three_sources() {
    verdicts <<END
$1 udp 203.0.113.7 $IN4 1000 53
$2 udp 203.0.113.50 $IN4 1000 53
$3 udp 203.0.113.8 $IN4 1000 53
END
}

# Frames that span several buffers: the program for these frames goes behind a dispatcher, too.
jumbo() {
    make_link 9000
    trap 'clear_all; make_link' EXIT
    ! attach xdp xdp 2>/dev/null || skip "this kernel's veth takes ordinary programs at an MTU of 9000"
    clear_all
    add_sieve -m native
    [ "$(sieve_status dispatcher)" = true ] || fail "not behind the dispatcher"
    verdicts <<END
drop udp 203.0.113.7 $IN4 1000 53 size=8900
pass udp 203.0.113.8 $IN4 1000 53 size=8900
END
    sieve -q unload "$IN_IF"
}

# Every command finds our maps behind the dispatcher.
commands() {
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
    sieve -q remove "$IN_IF" good --force
    verdicts <<<"drop udp 203.0.113.9 $IN4 1000 53"
    sieve -q unload "$IN_IF"
    neighbour_works_alone
    clear_all
}

# While the neighbour joins and leaves, our verdicts stay right.
under_traffic() {
    local round
    clear_all
    add_neighbour native 10
    clear_all
    add_sieve
    {
        for round in {1..50}; do
            echo "member drop drop udp 203.0.113.7 $IN4 $((1000 + round)) 53"
            echo "non-member pass pass udp 203.0.113.8 $IN4 $((1000 + round)) 53"
        done
    } >"$WORK/flows"
    start_stream "$WORK/flows" "$WORK/report"
    for round in 1 2 3; do
        add_neighbour native $((round * 40 - 30))
        stream_round
        loader unload "$IN_IF" --id "$(ids_of neighbour)"
        stream_round
    done
    stop_stream || true
    jq -c '{packets, arrived, wrong, seconds}' "$WORK/report"
    jq -r '.examples[]' "$WORK/report"
    [ "$(jq .wrong "$WORK/report")" = 0 ] || fail "wrong verdicts"
    sieve -q unload "$IN_IF"
}

# While ours joins and leaves, the neighbour loses nothing: it counts every packet.
counts_on() {
    local round before sent
    clear_all
    add_neighbour native 10
    before=$(seen)
    for round in {1..50}; do
        echo "non-member pass pass udp 203.0.113.8 $IN4 $((1000 + round)) 53"
    done >"$WORK/flows"
    start_stream "$WORK/flows" "$WORK/report"
    for round in 1 2 3; do
        add_sieve
        stream_round
        sieve -q unload "$IN_IF"
        stream_round
    done
    stop_stream || true
    sent=$(jq .packets "$WORK/report")
    [ "$(jq .wrong "$WORK/report")" = 0 ] || fail "wrong verdicts"
    [ $(($(seen) - before)) -eq "$sent" ] || fail "the other program saw $(($(seen) - before)) of $sent packets"
    clear_all
}

# A program that was attached alone cannot be joined, neither theirs nor ours.
alone() {
    local id
    clear_all
    ip -n "$IN" link set dev "$IN_IF" xdp obj "$NEIGHBOUR" sec xdp
    id=$(program_id)
    refused_with 4 "neighbour.*$id.*--force" sieve load "$IN_IF" "bad=$WORK/bad.sieve"
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

# libxdp pins what it shares. Once all programs have left, no pin may be left.
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

pin_folders() { find /sys/fs/bpf -name 'dispatch-*' | sort; }

# The index of our set's map, if the kernel still has it.
our_filter() { bpftool -j map show | jq '.[] | select(.name == "killed") | .id'; }
no_filter() { [ -z "$(our_filter)" ]; }

# killed_at CALL INDEX ARGUMENT...: kills a command of ours right before that system call.
killed_at() {
    local status=0
    inside "$IN" "$INJECT" "$WORK/calls" "$1" "$2" kill -- "$SIEVE" -q "${@:3}" || status=$?
    [ "$status" = 137 ] || fail "not killed at $1 $2 but ended with $status"
}

# call_behind_pins NAME: its turn among the listed calls of that name: the first one behind the last pin.
call_behind_pins() {
    awk -v name="$1" '$1 == "bpf.OBJ_PIN" { turn = 0 }
        $1 == name { count++; if (!turn) turn = count }
        END { print turn }' "$WORK/calls"
}

# The folder that must be there: that of the dispatcher that is attached.
wanted_folder() {
    local id
    id=$(program_id)
    [ -z "$id" ] || echo "/sys/fs/bpf/xdp/dispatch-$(ip -n "$IN" -j link show "$IN_IF" | jq ".[0].ifindex")-$id"
}

# recovers: after a command was killed, its pins hold our filter. The next `load` and `unload` work as ever, and no pin
# and no filter is left behind.
recovers() {
    [ "$(pin_folders)" != "$(wanted_folder)" ] || fail "the killed command left no pins, so this test proves nothing"
    [ -n "$(our_filter)" ] || fail "no filter is left, so this test proves nothing"
    sieve -q load "$IN_IF" "killed=$WORK/bad.sieve" 2>"$WORK/err" || fail "load: $(cat "$WORK/err")"
    verdicts <<<"drop udp 203.0.113.7 $IN4 1000 53"
    sieve -q unload "$IN_IF"
    [ "$(pin_folders)" = "$(wanted_folder)" ] || fail "left behind: $(pin_folders)"
    await no_filter
}

# libxdp pins what it is about to attach. kill -9 in between must not leave a filter in memory for good.
killed_alone() {
    local attach_turn unpin_turn
    [ -x "$INJECT" ] || skip "inject is not built: make -C tests/selftests"
    clear_all
    [ -z "${1:-}" ] || add_neighbour native 10
    # Between pinning and attaching.
    inside "$IN" "$INJECT" "$WORK/calls" -- "$SIEVE" -q load "$IN_IF" "killed=$WORK/bad.sieve"
    attach_turn=$(call_behind_pins sendto)
    # After the change, before the old dispatcher's pins are removed.
    inside "$IN" "$INJECT" "$WORK/calls" -- "$SIEVE" -q unload "$IN_IF"
    unpin_turn=$(call_behind_pins unlink)
    killed_at sendto "$attach_turn" load "$IN_IF" "killed=$WORK/bad.sieve"
    recovers
    sieve -q load "$IN_IF" "killed=$WORK/bad.sieve"
    killed_at unlink "$unpin_turn" unload "$IN_IF"
    recovers
    clear_all
}
killed_beside() { killed_alone neighbour; }

ktap_run \
    "joins another program in the driver, and leaves it" joins_native \
    "joins another program in the generic hook, and leaves it" joins_skb \
    "is joined by another program, and left" is_joined \
    "the priority decides who is asked first" order \
    "the chain decides after which verdicts the next is asked" chain \
    "status tells who is asked, and in which order" told \
    "xdp-filter before us and after us" xdp_filter \
    "with jumbo frames" jumbo \
    "every command works behind the dispatcher" commands \
    "verdicts stay right while another program comes and goes" under_traffic \
    "another program counts on while we come and go" counts_on \
    "programs attached alone are respected" alone \
    "a command killed inside libxdp leaves nothing that the next one does not remove" killed_alone \
    "the same beside another program" killed_beside \
    "nothing is left behind" nothing_left
