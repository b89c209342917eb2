# shellcheck shell=bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# The parts that all selftests share: KTAP output, a pair of network namespaces, and short helper functions.
#
# A test script sources this, defines functions, and ends in
#
#     ktap_run "description" function ...
#
# Each function runs in a subshell with `set -e`: the first command that fails fails the test. The function's output
# appears as KTAP diagnostics. At the end, everything is removed again, however the test ends.
set -euo pipefail

readonly KSFT_PASS=0 KSFT_FAIL=1 KSFT_SKIP=4

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
BUILD=$(realpath -m "${BUILD:-$here/../../build}")
SIEVE=${SIEVE:-$BUILD/xdp-sieve}
BENCH=$(dirname "$SIEVE")/sieve-bench
OBJECT=$BUILD/xdp_sieve.bpf.o
TC_OBJECT=$BUILD/xdp_sieve_tc.bpf.o
DATA=$(cd "$here/../data" && pwd)

# The two ends: packets go from OUT, a remote peer, to IN, the host that filters.
OUT=sieve-$$-out IN=sieve-$$-in
OUT_IF=veth-out IN_IF=veth-in
OUT4=198.51.100.1 IN4=198.51.100.2 OUT6=2001:db8:51::1 IN6=2001:db8:51::2
# Namespaces that a test makes itself.
[ -n "${MORE_NAMESPACES+set}" ] || MORE_NAMESPACES=()
WORK=
verdicts_job=
# Seconds after which a wait counts as a hang. No result may depend on it: tests wait for events.
export PATIENCE=${PATIENCE:-300}

# The same language. jq 1.6 reads a thousand lines of it each time that it starts, which takes ten times as long as all
# else, and the tests start it a thousand times.
jq() { gojq "$@"; }

# --- KTAP ---------------------------------------------------------------------------------------------------

skip_all() {
    echo "KTAP version 1"
    echo "1..0 # SKIP $*"
    exit "$KSFT_SKIP"
}

# ktap_run DESCRIPTION FUNCTION ...: runs each function as a test. One more test checks that nothing is left behind.
ktap_run() {
    local number=0 failed=0 skipped=0 passed=0 status description line
    local -a tests=()
    while [ $# -gt 0 ]; do
        is_left_out "$1" || tests+=("$1" "$2")
        shift 2
    done
    set -- "${tests[@]}" "no pin is left behind" no_pin_left
    mkdir "$WORK/.wording"
    all_wordings | grep -F -- $'\t'"$script: " >"$WORK/.wording/recorded" || true
    : >"$WORK/.wording/new"
    echo "KTAP version 1"
    echo "1..$(($# / 2))"
    while [ $# -gt 0 ]; do
        number=$((number + 1))
        description=$1
        # Not inside a condition: that would switch `set -e` off in the subshell.
        set +e
        rm -f "$WORK/skipped"
        : >"$WORK/.wording/met"
        (
            set -e
            trap - EXIT
            "$2"
        ) >"$WORK/log" 2>&1
        status=$?
        set -e
        # The controller's exit codes have other meanings, so none of them may count as a skip.
        if [ "$status" -eq "$KSFT_SKIP" ] && [ ! -e "$WORK/skipped" ]; then status=$KSFT_FAIL; fi
        as_worded "$status" "$script: $description" >>"$WORK/log" 2>&1 || status=$KSFT_FAIL
        while IFS= read -r line || [ -n "$line" ]; do echo "# $line"; done <"$WORK/log"
        case $status in
        0)
            passed=$((passed + 1))
            echo "ok $number $description"
            ;;
        "$KSFT_SKIP")
            skipped=$((skipped + 1))
            echo "ok $number $description # SKIP $(cat "$WORK/skipped")"
            ;;
        *)
            failed=$((failed + 1))
            echo "not ok $number $description"
            ;;
        esac
        end_jobs
        end_mounts
        reset_interfaces
        shift 2
    done
    [ "$MESSAGES" != record ] || record_wordings
    echo "# Totals: pass:$passed fail:$failed skip:$skipped"
    [ "$failed" -eq 0 ] || exit "$KSFT_FAIL"
    [ "$passed" -gt 0 ] || exit "$KSFT_SKIP"
    exit "$KSFT_PASS"
}

# Whether $LEFT_OUT, a file, says that this test does not run here, by a line `SCRIPT: DESCRIPTION`. Guests have one
# (scripts/vmtest.sh).
is_left_out() { [ -n "${LEFT_OUT:-}" ] && grep -qxF -- "$script: $1" "$LEFT_OUT"; }

# Pins keep programs and maps alive after all processes and network namespaces have gone. Pins are files; iproute2
# creates the folders and links around them on its first use.
pins() { find /sys/fs/bpf -type f 2>/dev/null | sort; }

# Other processes may work on this machine. What they pin disappears again.
no_pin_left() { await no_new_pin; }
no_new_pin() {
    local left
    left=$(comm -13 "$WORK/pins" <(pins))
    [ -z "$left" ] || { echo "left behind: $left" >"$WORK/awaited" && return 1; }
}

# Ends a test function as skipped, for this reason: the machine cannot run it.
skip() {
    echo "$*" >"$WORK/skipped"
    exit "$KSFT_SKIP"
}

# Ends a test function as failed.
fail() {
    echo "$*"
    exit "$KSFT_FAIL"
}

# await COMMAND...: returns as soon as the command succeeds. The last output that it wrote to $WORK/awaited says what
# was missing. What has not come within half a second is asked for less often.
await() {
    local end=$((SECONDS + PATIENCE)) tries=0 pause=0.05
    : >"$WORK/awaited"
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || fail "not within $PATIENCE s: $* $(cat "$WORK/awaited")"
        tries=$((tries + 1))
        [ "$tries" -lt 10 ] || pause=0.2
        sleep "$pause"
    done
}

# await_line FILE PATTERN: waits until a background process has written a matching line.
await_line() { await grep -Eqs -- "$2" "$1"; }

# --- messages -----------------------------------------------------------------------------------------------

# messages/COMMAND has the wording of what that command refuses: below the name of script and test, the exit code and
# the line of each refusal, in their order. MESSAGES=record tests/selftests/SCRIPT writes that script's entries anew.
MESSAGES=${MESSAGES-compare}
script=$(basename "$0")
# Variables whose values differ between runs. An entry has $NAME where the line had the value.
varies=(WORK BUILD DATA here IN OUT)

# refused CODE COMMAND...: the command must fail with that code, and say what messages/ has for this place. The lines
# are compared when the test has ended.
refused() {
    fails_in_one_line "$@"
    local line name word file=xdp-sieve
    line=$(<"$WORK/err")
    for name in "${varies[@]}"; do
        [ -z "${!name-}" ] || line=${line//"${!name}"/"\$$name"}
    done
    for word in "${@:2}"; do
        word=${word##*/}
        if [ "$word" != xdp-sieve ] && [ -f "$here/messages/$word" ]; then
            file=$word
            break
        fi
    done
    # shellcheck disable=SC2154 # ktap_run has the description
    printf '%s\t%s\t    exit %s: %s\n' "$file" "$script: $description" "$1" "$line" >>"$WORK/.wording/met"
}

# refused_with CODE PATTERN COMMAND...: the same where the line is not the same everywhere and always: other programs'
# words, numbers, processes.
refused_with() {
    fails_in_one_line "$1" "${@:3}"
    grep -Eq -- "$2" "$WORK/err" || fail "the message does not say /$2/: $(cat "$WORK/err")"
}

# fails_in_one_line CODE COMMAND...: with that exit code, one line on standard error and no output.
fails_in_one_line() {
    local code=$1 status=0
    shift
    "$@" >"$WORK/out" 2>"$WORK/err" || status=$?
    [ "$status" -eq "$code" ] || fail "exit code $status instead of $code: $* ($(cat "$WORK/err"))"
    [ "$(wc -l <"$WORK/err")" -eq 1 ] || fail "not one line on standard error: $*: $(cat "$WORK/err")"
    [ ! -s "$WORK/out" ] || fail "something on standard output: $*: $(cat "$WORK/out")"
}

# Prints what messages/ has, a line for each entry: command, test and entry, with tabs between them.
all_wordings() {
    (cd "$here/messages" && awk '
        /^#/ { next }
        /^[^ ]/ { test = $0; next }
        { print substr(FILENAME, 3) "\t" test "\t" $0 }' ./*) | LC_ALL=C sort -s -t $'\t' -k 1,2
}

# as_worded STATUS TEST: compares the refusals of a test with its entries, or keeps them for record_wordings.
as_worded() {
    local folder=$WORK/.wording
    [ -s "$folder/met" ] || [ -s "$folder/recorded" ] || return 0
    grep -F -- $'\t'"$2"$'\t' "$folder/recorded" >"$folder/expected" || true
    LC_ALL=C sort -s -t $'\t' -k 1,1 "$folder/met" | awk '
        function put() { if (times > 1) sub(/\t    exit ./, "&, " times " times", line); if (times) print line }
        $0 != last { put(); times = 0 }
        { times++; line = last = $0 }
        END { put() }' >"$folder/found"
    if [ "$MESSAGES" = record ]; then
        if [ "$1" -eq "$KSFT_PASS" ]; then cat "$folder/found"; else cat "$folder/expected"; fi >>"$folder/new"
    elif [ "$1" -ne "$KSFT_SKIP" ]; then
        diff -U 0 <(cut -f 1,3 "$folder/expected") <(cut -f 1,3 "$folder/found") >"$folder/differences" || {
            echo "not as in messages (-); if it is meant, MESSAGES=record tests/selftests/$script records it:"
            sed '1,2d; /^@@/d' "$folder/differences"
            return 1
        }
    fi
}

# Writes messages/ with what this script's tests have met. A test that failed or was skipped keeps its entries.
record_wordings() {
    local folder=$WORK/.wording file
    all_wordings | grep -vF -- $'\t'"$script: " >>"$folder/new" || true
    LC_ALL=C sort -s -t $'\t' -k 1,2 "$folder/new" >"$folder/all"
    for file in "$here"/messages/*; do
        echo "# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)" >"$file"
    done
    (cd "$here/messages" && awk -F '\t' '$1 $2 != last { print $2 >>$1 } { last = $1 $2; print $3 >>$1 }' "$folder/all")
}

# --- the network --------------------------------------------------------------------------------------------

# Runs a command in a network namespace. Unlike `ip netns exec`, this keeps the caller's mounts.
inside() {
    local namespace=$1
    shift
    nsenter --net="/run/netns/$namespace" "$@"
}

# Ends every process in our namespaces, and waits for its end: the next test may need its port or its lock. Uses no
# external program, because it runs after every test.
end_jobs() {
    local process namespace left=1 end=$((SECONDS + PATIENCE))
    while [ "$left" -ne 0 ] && [ "$SECONDS" -lt "$end" ]; do
        left=0
        for process in /proc/[0-9]*; do
            for namespace in "$OUT" "$IN" "${MORE_NAMESPACES[@]}"; do
                if [ "$process/ns/net" -ef "/run/netns/$namespace" ]; then
                    kill -KILL "${process#/proc/}" 2>/dev/null || true
                    left=1
                fi
            done
        done
    done
}

# Takes off what a test that failed has left mounted.
end_mounts() {
    local place
    while read -r _ place _; do
        [[ $place != "${WORK:?}"/* ]] || umount --lazy "$place"
    done </proc/self/mounts
}

cleanup() {
    local status=$? namespace
    trap '' HUP INT PIPE TERM
    if [ -n "$WORK" ]; then
        end_jobs
        end_mounts
        [ -z "$verdicts_job" ] || kill "$verdicts_job" 2>/dev/null || true
        reset_interfaces
        for namespace in "$OUT" "$IN" "${MORE_NAMESPACES[@]}"; do ip netns del "$namespace" 2>/dev/null || true; done
        rm -rf "$WORK"
    fi
    exit "$status"
}

# Makes two namespaces and a veth pair with one queue, so that packets keep their order. Skips all tests if it cannot.
setup() {
    local tool
    [ "$(id -u)" -eq 0 ] || skip_all "root is needed"
    for tool in ip nsenter python3 bpftool gojq; do
        command -v "$tool" >/dev/null || skip_all "$tool is not installed"
    done
    [ -x "$SIEVE" ] && [ -e "$OBJECT" ] && [ -e "$TC_OBJECT" ] || skip_all "nothing is built: run make first"
    WORK=$(mktemp -d)
    pins >"$WORK/pins"
    trap cleanup EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 141' PIPE
    trap 'exit 143' TERM
    make_namespaces
    make_link
    conversation verdicts "$here/traffic.py" verdicts
}

# Makes the namespaces anew if they exist: nothing remains of what the stack held, such as fragments.
make_namespaces() {
    local namespace
    reset_interfaces
    for namespace in "$OUT" "$IN"; do
        ip netns del "$namespace" 2>/dev/null || true
        ip netns add "$namespace" || skip_all "this kernel has no network namespaces"
        # Only the tests' own packets may flow, so IPv6 stays down unless a test asks for it.
        inside "$namespace" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
        ip -n "$namespace" link set lo up
    done
}

# make_link [MTU]
make_link() {
    local end="mtu ${1:-1500} numtxqueues 1 numrxqueues 1"
    reset_interfaces
    ip -n "$OUT" link del "$OUT_IF" 2>/dev/null || true
    ip -n "$OUT" -batch - <<END || skip_all "this kernel has no veth pairs"
link add $OUT_IF $end type veth peer name $IN_IF netns $IN $end
link set $OUT_IF up
address add $OUT4/24 dev $OUT_IF
END
    ip -n "$IN" -batch - <<END
link set $IN_IF up
address add $IN4/24 dev $IN_IF
END
}

ipv6_up() {
    inside "$OUT" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 "net.ipv6.conf.$OUT_IF.disable_ipv6=0"
    inside "$IN" sysctl -qw net.ipv6.conf.all.disable_ipv6=0 "net.ipv6.conf.$IN_IF.disable_ipv6=0"
    ip -n "$OUT" address add "$OUT6/64" dev "$OUT_IF" nodad
    ip -n "$IN" address add "$IN6/64" dev "$IN_IF" nodad
}

ipv6_down() {
    inside "$OUT" sysctl -qw net.ipv6.conf.all.disable_ipv6=1
    inside "$IN" sysctl -qw net.ipv6.conf.all.disable_ipv6=1
}

# After each test: detaches the program, whoever attached it. A dispatcher's pins outlive the dispatcher. Another
# network namespace's dispatcher may have pins of the same names, so only the owner may remove them.
reset_interfaces() {
    if compgen -G "/sys/fs/bpf/xdp/dispatch-*" >/dev/null; then
        sieve -q unload --hook xdp "$IN_IF" 2>/dev/null || true
    fi
    ip -n "$IN" -force -batch - 2>/dev/null <<END || true
link set dev $IN_IF xdp off
link set dev $IN_IF xdpgeneric off
END
    # The program that notes flows for replies stays when ours is taken away by other means.
    tc -n "$IN" filter del dev "$IN_IF" egress pref 50000 2>/dev/null || true
}

# attach [MODE [SECTION]]: attaches our program by plain ip link.
attach() {
    ip -n "$IN" link set dev "$IN_IF" "${1:-xdp}" obj "$OBJECT" sec "${2:-xdp}"
}

# Prints the id of the program on the filtering side, ours or foreign; nothing if there is none.
program_id() {
    ip -n "$IN" link show "$IN_IF" | sed -nE 's/.*prog\/xdp id ([0-9]+).*/\1/p'
}

# --- the controller -----------------------------------------------------------------------------------------

# A filter that is built for the host matches none of its addresses by a false positive. A ready-made image may.
# Tests put one table after another in force; remove.sh has the test of `load` without --replace.
sieve() {
    case " $* " in
    *" load "*) set -- "$@" --replace ;;
    esac
    case " $* " in
    *" load "*.sieve* | *" swap "*.sieve* | *" add "*.sieve*) set -- "$@" --allow-lockout ;;
    esac
    inside "$IN" "$SIEVE" "$@"
}

# insist COMMAND...: retries while the command gives up on the controllers' lock, as it does after ten seconds.
insist() {
    local status said=$WORK/said-$BASHPID
    while true; do
        status=0
        "$@" 2>"$said" || status=$?
        [ "$status" -eq 4 ] && grep -q 'another controller' "$said" || break
    done
    cat "$said" >&2
    return "$status"
}

# image FILE KEY ENTRY...: builds an image from these entries.
image() {
    local file=$1 key=$2
    shift 2
    printf '%s\n' "$@" | "$SIEVE" -q build --key "$key" -o "$file" -
}

# address_lists SEED NAME COUNT ...: writes files of these names with random IPv4 addresses, no address twice.
address_lists() {
    python3 - "$WORK" "$@" <<'END'
import random, sys
work, seed, *lists = sys.argv[1:]
draw = random.Random(int(seed))
addresses = {}
for name, count in zip(lists[::2], map(int, lists[1::2])):
    first = len(addresses)
    while len(addresses) < first + count:
        octets = draw.randrange(11, 100), draw.randrange(256), draw.randrange(256), draw.randrange(256)
        addresses[".".join(map(str, octets))] = None
    with open(f"{work}/{name}", "w") as out: out.writelines(f"{key}\n" for key in list(addresses)[first:])
END
}

# said_of IMAGE FILE: prints each address of the file, with "drop" if the image holds it and "pass" if not.
said_of() {
    ("$SIEVE" query "$1" --stdin || true) <"$2" | sed 's/ present$/ drop/; s/ absent$/ pass/'
}

# expect_joined NAMES: these sets, in this order, share one lookup.
joined() { sieve --json status "$IN_IF" | jq -r '[.interfaces[0].sets[] | select(.joined) | .name] | join(" ")'; }
expect_joined() { [ "$(joined)" = "$1" ] || fail "joined: $(joined), expected: $1"; }

# Prints everything that a refused command must leave as it was.
state() {
    program_id
    if sieve --json status "$IN_IF"; then sieve --json stats "$IN_IF"; fi 2>&1 | without_flows
}
# What a flow memory holds changes by itself.
without_flows() { sed '/"flows": {/,/}/d'; }

# unchanged STATE: checks that the state is still this one.
unchanged() {
    diff <(echo "$1") <(state) || fail "something has changed"
}

# counter JQ-PATH: prints one number of `stats`.
counter() { sieve --json stats "$IN_IF" | jq -r ".interfaces[0].$1"; }

# counter_at HOOK JQ-PATH: prints one number of one hook.
counter_at() { sieve --json stats "$IN_IF" --hook "$1" | jq -r ".interfaces[0].$2"; }

# --- packets ------------------------------------------------------------------------------------------------

verdicts_in='' verdicts_out=''
stream_job='' stream_in='' stream_out='' stream_sent=0 stream_meanwhile=0

# conversation NAME COMMAND...: runs the command in the background. Its process is $NAME_job. What is written to
# $NAME_in becomes its standard input, and $NAME_out reads its standard output.
conversation() {
    local -n job=$1_job input=$1_in output=$1_out
    local pipe=$WORK/$1
    shift
    rm -f "$pipe.in" "$pipe.out"
    mkfifo "$pipe.in" "$pipe.out"
    "$@" <"$pipe.in" >"$pipe.out" &
    job=$!
    exec {input}>"$pipe.in" {output}<"$pipe.out"
}

# verdicts ARGUMENTS...: sends the packets of the table on standard input (lines of VERDICT PACKET) and compares their
# verdicts. traffic.py describes the arguments.
verdicts() {
    local table line
    mapfile -t table
    printf '%s\n' "--from $OUT/$OUT_IF --to $IN/$IN_IF $*" "${table[@]}" end >&"$verdicts_in"
    while IFS= read -r line <&"$verdicts_out"; do
        case $line in
        "status "*) return "${line#status }" ;;
        *) echo "$line" ;;
        esac
    done
    fail "traffic.py has not answered"
}

# start_stream FLOWS REPORT: sends traffic in the background, at most $RATE packets a second, until stop_stream.
# Returns when the first packets have been judged. The sender runs in one of our namespaces, so that end_jobs always
# finds it.
start_stream() {
    rm -f "$2"
    conversation stream nsenter --net="/run/netns/$OUT" "$here/traffic.py" stream --from "$OUT/$OUT_IF" \
        --to "$IN/$IN_IF" --flows "$1" --report "$2" --rate "${RATE:-20000}"
    hear_stream sending
}

# hear_stream WORD: returns when the stream has printed WORD. $stream_sent is the number of packets sent by then.
hear_stream() {
    local word=
    read -r -t "$PATIENCE" word stream_sent <&"$stream_out" || fail "no '$1' from the traffic: hung or ended"
    [ "$word" = "$1" ] || fail "the traffic said $word instead of $1"
}

# tell_stream WORD [N]: sends one of traffic.py's requests; returns when the stream has answered.
tell_stream() {
    echo "$*" >&"$stream_in"
    hear_stream "$1"
}

# Returns when, since the call, a packet of every flow has been sent and judged.
stream_round() { tell_stream more; }

# under_stream COMMAND...: runs the command. $stream_meanwhile is the number of packets sent while it ran.
under_stream() {
    local before
    tell_stream count
    before=$stream_sent
    "$@"
    tell_stream count
    stream_meanwhile=$((stream_meanwhile + stream_sent - before))
}

# Ends the traffic. The exit status tells whether every verdict was right.
stop_stream() {
    tell_stream stop
    exec {stream_in}>&- {stream_out}<&-
    wait "$stream_job"
}

# tcp FROM TO ADDRESS: connects a namespace to that address of another namespace.
tcp() {
    local answer
    # If the sender's own egress hook drops its packets, Linux tries again every half second and gives up after this
    # many times. The number must outlast the time that a set is in force, however slow the machine is.
    inside "$1" sysctl -qw net.ipv4.tcp_retries2=255
    coproc tcp_pair { exec "$here/tcp_pair.py" "$1" "$2" "$3"; }
    exec {tcp_out}<&"${tcp_pair[0]}" {tcp_in}>&"${tcp_pair[1]}"
    read -r -t "$PATIENCE" answer <&"$tcp_out" || fail "no connection"
    [ "$answer" = connected ] || fail "$answer"
}

# tell_tcp COMMAND: $told is the number in the answer.
tell_tcp() {
    local word
    echo "$1" >&"$tcp_in"
    read -r -t "$((PATIENCE * 2))" word told <&"$tcp_out" || fail "no answer to $1"
}

# tcp_is_stopped WAIT...: what the far end has not got yet does not arrive. WAIT succeeds once the set has dropped the
# packets that are sent meanwhile.
tcp_is_stopped() {
    tell_tcp "arrived"
    tell_tcp "queue 200000"
    [ "$told" -gt 0 ] || fail "the kernel took nothing"
    await "$@"
    tell_tcp "arrived"
    [ "$told" = 0 ] || fail "$told bytes arrived"
}

# Ends the TCP connection.
end_tcp() { exec {tcp_in}>&- {tcp_out}<&-; }
