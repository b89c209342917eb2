#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# The parts of sieve-bench that run other programs or judge answers: its figures are real, what is not there is
# left out with the reason, and nothing is left behind.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup

# bench ARGUMENT...: a short run with its temporary files in a folder of its own. It finds the programs in $TOOLS only.
bench() {
    mkdir -p "$WORK/tmp"
    env "TMPDIR=$WORK/tmp" "PATH=${TOOLS:-$PATH}" "$BENCH" --json --quick --rounds 3 "$@"
}

nothing_is_left() {
    [ -z "$(ls -A "$WORK/tmp")" ] || fail "left in the temporary folder: $(ls -A "$WORK/tmp")"
    [ -z "$(find /sys/class/net -name 'sieve-[rt]x')" ] || fail "left a veth interface"
    no_pin_left
    await no_receiver_thread
}

# The namespace's end removes its interfaces a moment after the process has ended, and their threads with them.
no_receiver_thread() { ! grep -lqs 'napi/sieve-rx' /proc/[0-9]*/comm; }

every_member_is_found() {
    bench --members 2e5 --keys 1e4 >"$WORK/members.json"
    "$SIEVE" --json kinds | jq -r '.[].kind' | sort >"$WORK/kinds"
    jq -r '.members[0].rows[] | select(.asked >= 200000 and .missed == 0) | .kind' "$WORK/members.json" |
        sort | diff "$WORK/kinds" -
}

every_answer_is_right() {
    bench --answers 300001 --keys 1e4 >"$WORK/answers.json"
    jq -r '.answers[0].rows[] | select(.asked == 300001 and .wrong == 0) | "\(.kind) \(.asked_in)"' \
        "$WORK/answers.json" | sort >"$WORK/answered"
    printf 'exact kernel\nexact user space\n' | diff - "$WORK/answered"
}

parts_are_measured_alone() {
    bench --lookups --keys 1e3 >"$WORK/lookups.json"
    jq -r '.lookups[0].contestants[] | select(.role == "filter") | .name | split(",")[0]' "$WORK/lookups.json" |
        sort -u >"$WORK/asked"
    "$SIEVE" --json kinds | jq -r '.[].kind' | sort | diff - "$WORK/asked"
    # Verification finds every member and nothing else, and its keys count as memory.
    jq -e '.lookups[0].contestants | INDEX(.name) | .["xorsat, verified"].members.found == 1
        and .["xorsat, verified"].non_members.found == 0 and .["xorsat, verified"].bytes > .["xorsat, 2 lines"].bytes' \
        "$WORK/lookups.json" >/dev/null
    mkdir -p "$WORK/only_ip"
    ln -sf "$(command -v ip)" "$WORK/only_ip/ip"
    TOOLS=$WORK/only_ip bench --loading --keys 1e3 >"$WORK/loading.json"
    jq -e '.loading[0].rows | length == 2 and all(.seconds.median > 0)' "$WORK/loading.json" >/dev/null
    jq -rs '[.[] | keys[]] | join(" ")' "$WORK/lookups.json" "$WORK/loading.json" |
        grep -qx 'lookups machine loading machine'
    nothing_is_left
}

# No packet that is not dropped pays; what is asked pays something. Only a kernel without it leaves out conntrack.
replies_are_measured() {
    bench --replies --keys 1e3 >"$WORK/replies.json"
    jq -e '.replies[0] | .flows == 1000 and all(.rows[]; .nanoseconds.median > 0)
        and ([.rows[] | select(.program == "xdp-sieve, replies on") | .traffic] == ["dropped", "answers", "passed"])
        and any(.rows[]; .program == "sieve_note" and .traffic == "begins" and .more.median > 0)
        and ((.skipped | length) + ([.rows[] | select(.program == "connection tracking")] | length / 2) == 1)' \
        "$WORK/replies.json" >/dev/null
    nothing_is_left
}

# Without the commands of the other filters only xdp-sieve and the two baselines are there to measure.
absent_firewalls_are_left_out() {
    mkdir -p "$WORK/few"
    ln -sf "$(command -v ip)" "$WORK/few/ip"
    TOOLS=$WORK/few bench --firewalls --keys 1e3 >"$WORK/few.json"
    jq -e '.firewalls[0] | ([.rows[].name] == ["no filter", "XDP_DROP", "xdp-sieve", "xdp-sieve, xorsat, verify"])
        and (.skipped | length == 4 and all(test("is not installed")))' "$WORK/few.json" >/dev/null
    # What a firewall drops does not reach the routes; everything else does.
    jq -e '.firewalls[0].rows[] | select(.name == "xdp-sieve") | (.load_seconds.median > 0)
        and ([.frames, .["packet socket"]] | all(.members.passed == 0 and .non_members.passed > 0.85
            and .members.packets_per_second.median > 0 and .members.nanoseconds.median > 0))' \
        "$WORK/few.json" >/dev/null
    nothing_is_left
}

installed_firewalls_judge_alike() {
    command -v nft >/dev/null || skip "nft is not installed"
    mkdir -p "$WORK/nft"
    ln -sf "$(command -v ip)" "$(command -v nft)" "$WORK/nft/"
    TOOLS=$WORK/nft bench --firewalls --keys 1e3 >"$WORK/nft.json"
    if jq -e '.firewalls[0].skipped | any(test("nftables"))' "$WORK/nft.json" >/dev/null; then
        skip "$(jq -r '.firewalls[0].skipped[0]' "$WORK/nft.json")"
    fi
    jq -e '[.firewalls[0].rows[] | select(.name | startswith("nftables")) |
        .frames.members.passed == 0 and .frames.non_members.passed > 0.85] == [true, true]' \
        "$WORK/nft.json" >/dev/null
    nothing_is_left
}

# A tool that fails halfway ends the benchmark, which removes what it has made.
failure_leaves_nothing() {
    mkdir -p "$WORK/broken"
    cat >"$WORK/broken/ip" <<END
#!/bin/sh
case "\$*" in *address*) exit 1 ;; esac
exec $(command -v ip) "\$@"
END
    chmod +x "$WORK/broken/ip"
    TOOLS=$WORK/broken refused_with 4 'ip link set sieve-rx address.* failed' bench --firewalls --keys 1e3
    nothing_is_left
}

ktap_run \
    "no kind of filter misses a member" every_member_is_found \
    "no answer of an exact set is wrong" every_answer_is_right \
    "lookups and loading are measured alone" parts_are_measured_alone \
    "what replies cost is measured" replies_are_measured \
    "firewalls that are not installed are left out" absent_firewalls_are_left_out \
    "installed firewalls judge as xdp-sieve does" installed_firewalls_judge_alike \
    "a benchmark that fails leaves nothing" failure_leaves_nothing
