#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Changes on probation: a change that locks its operator out is taken back by the program itself, whoever dies.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# shellcheck source=service.sh
. "$here/service.sh"

printf '%s\n' "$OUT4" >"$WORK/peer"
printf '%s\n' 192.0.2.1 >"$WORK/nobody"

now() { python3 -c 'import time; print(time.monotonic_ns())'; }
is_dropping() { [ "$(counter dropped.packets)" -gt 0 ]; }
is_over() { sieve --json status "$IN_IF" | jq -e '.interfaces[0].taken_back == true' >/dev/null; }
on_probation() { sieve --json status "$IN_IF" | jq -e '.interfaces[0].probation.seconds_left > 0' >/dev/null; }

# locked_out_by COMMAND...: the command locks a TCP session out for three seconds, and dies. Nothing but the clock ends
# the lockout, and it does not do so before its time.
locked_out_by() {
    local begin
    tcp "$OUT" "$IN" "$IN4"
    tell_tcp "transfer 100000"
    knock &
    begin=$(now)
    "$@"
    tell_tcp "queue 200000"
    await is_dropping
    kill_all_inside
    tell_tcp finish
    [ "$(($(now) - begin))" -ge 3000000000 ] || fail "taken back too early"
    tell_tcp "transfer 100000"
    end_tcp
    await is_over
}

# Packets all the time, so that the set has some to drop however long the machine takes for everything else.
knock() {
    # shellcheck disable=SC2016 # the inner shell expands it
    inside "$OUT" bash -c 'while sleep 0.05; do echo knock >"/dev/udp/$1/9"; done' knock "$IN4" 2>/dev/null
}

# Nobody takes part any more: no process of ours is left. What else there is, is killed.
kill_all_inside() {
    local process
    no_process_is_left
    for process in /proc/[0-9]*; do
        if [ "$process/ns/net" -ef "/run/netns/$IN" ]; then kill -KILL "${process#/proc/}"; fi
    done
}
no_process_is_left() {
    local process left=
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/exe" 2>/dev/null)" != "$(realpath "$SIEVE")" ] ||
            ! [ "$process/ns/net" -ef "/run/netns/$IN" ] || left="$left ${process#/proc/}"
    done
    [ -z "$left" ] || fail "processes are left:$left"
}

# The command has ended, and everything that it might have left behind has been killed.
nobody_is_left() {
    locked_out_by sieve -q load "$IN_IF" "bad=$WORK/peer" --confirm 3
    # The program is still there, and passes all packets.
    [ -n "$(program_id)" ]
    [ "$(sieve --json status "$IN_IF" | jq -c '.interfaces[0] | [.default, (.sets | length)]')" = '["pass",0]' ]
}

# The terminal in which the command was given goes away, and takes its shell along.
the_terminal_ends() { locked_out_by in_a_terminal; }
in_a_terminal() {
    python3 - "$IN" "$SIEVE" load "$IN_IF" "bad=$WORK/peer" --confirm 3 <<'END'
import os, pty, signal, sys
shell, terminal = pty.fork()
if shell == 0:
    os.execvp("nsenter", ["nsenter", f"--net=/run/netns/{sys.argv[1]}", "bash", "-c",
                          '"$@"; echo "exit $?"; read -r line', "bash", *sys.argv[2:]])
said = b""
while b"exit " not in said:
    said += os.read(terminal, 4096)
print(said.decode())
assert b"exit 0" in said
os.close(terminal)  # the far end hangs up
_, status = os.waitpid(shell, 0)
assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGHUP or status != 0, status
END
}

# The command is killed before it can say anything: its standard output is a pipe that is full.
the_command_is_killed() { locked_out_by a_killed_command; }
a_killed_command() {
    python3 - "$IN" "$SIEVE" load "$IN_IF" "bad=$WORK/peer" --confirm 3 <<'END'
import fcntl, os, signal, subprocess, sys, time
_, end = os.pipe()
fcntl.fcntl(end, fcntl.F_SETFL, os.O_NONBLOCK)
try:
    while True:
        os.write(end, bytes(4096))
except BlockingIOError:
    fcntl.fcntl(end, fcntl.F_SETFL, 0)
inside = ["nsenter", f"--net=/run/netns/{sys.argv[1]}"]
command = subprocess.Popen([*inside, *sys.argv[2:]], stdout=end)
status = [*inside, sys.argv[2], "--json", "status", sys.argv[4]]
limit = time.monotonic() + int(os.environ["PATIENCE"])
while b'"probation"' not in subprocess.run(status, stdout=subprocess.PIPE).stdout:
    assert command.poll() is None and time.monotonic() < limit
    time.sleep(0.02)
assert command.poll() is None, "the command has ended by itself"
command.kill()
assert command.wait() == -signal.SIGKILL
END
}

# A change of a table that was there brings that table back, with its counters.
the_table_from_before_comes_back() {
    sieve -q load "$IN_IF" "bad=$WORK/nobody" "seen=$WORK/peer,action=count"
    locked_out_by sieve -q swap "$IN_IF" "bad=$WORK/peer" --confirm 3
    [ "$(counter sets[1].packets)" -gt 0 ]
    sieve --json status "$IN_IF" | jq -e '.interfaces[0].sets | length == 2' >/dev/null
    # The next change tidies up.
    sieve -q remove "$IN_IF" bad
    ! is_over || fail "still taken back"
}

# `apply` as well: first with nothing before it, then with a table to go back to.
a_configuration_is_taken_back() {
    local before
    fresh_lists '' 'guards.protect-host = false'
    printf '%s\n' "$OUT4" >"$LISTS/bad.txt"
    locked_out_by sieve -q apply --confirm 3 "$CONFIG"
    [ "$(sieve --json status "$IN_IF" | jq -c '.interfaces[0] | [.default, (.sets | length)]')" = '["pass",0]' ]
    cp "$WORK/nobody" "$LISTS/bad.txt"
    sieve -q apply "$CONFIG"
    before=$(identity bad)
    printf '%s\n' "$OUT4" >"$LISTS/bad.txt"
    locked_out_by sieve -q apply --confirm 3 "$CONFIG"
    [ "$(identity bad)" = "$before" ] || fail "the filter from before is not back"
    # Applied once more and confirmed, it stays.
    sieve -q apply --confirm 300 "$CONFIG"
    on_probation
    sieve -q confirm "$IN_IF"
    [ "$(identity bad)" != "$before" ]
    ! on_probation || fail "still on probation"
    sieve apply "$CONFIG" | grep -qx 'nothing to do'
}

# Confirmed, a change stays. Until then no other change is made.
a_confirmed_change_stays() {
    local before
    sieve -q load "$IN_IF" "bad=$WORK/nobody" --confirm 86400
    before=$(sieve --json status "$IN_IF" | jq -c '.interfaces[0].sets')
    refused_with 4 'on probation, and is taken back in [0-9]+ s unless it is confirmed; .xdp-sieve confirm' \
        sieve swap "$IN_IF" "bad=$WORK/peer"
    refused_with 4 'on probation' sieve load "$IN_IF" "bad=$WORK/peer"
    refused_with 4 'on probation' sieve remove "$IN_IF" bad
    [ "$before" = "$(sieve --json status "$IN_IF" | jq -c '.interfaces[0].sets')" ]
    sieve status "$IN_IF" | grep -q 'on probation: taken back in'
    sieve confirm "$IN_IF" | grep -q 'the last change is confirmed'
    ! on_probation || fail "still on probation"
    [ "$before" = "$(sieve --json status "$IN_IF" | jq -c '.interfaces[0].sets')" ]
    refused 1 sieve confirm "$IN_IF"
    sieve -q swap "$IN_IF" "bad=$WORK/peer" --confirm 86400
    sieve --json confirm --take-back | jq -e '.verdict == "taken_back" and .interfaces[0].hook == "xdp"' >/dev/null
    [ "$before" = "$(sieve --json status "$IN_IF" | jq -c '.interfaces[0].sets')" ]
}

# What is typed into a filter on probation goes with it, and whoever types it is told.
keys_go_with_their_filter() {
    seq -f '198.18.7.%g' 250 >"$WORK/many" # a table of so many keys has room for one more
    sieve -q load "$IN_IF" "bad=$WORK/many"
    sieve insert "$IN_IF" bad 192.0.2.2 2>"$WORK/said"
    [ ! -s "$WORK/said" ]
    sieve -q swap "$IN_IF" "bad=$WORK/many" --confirm 86400
    sieve insert "$IN_IF" bad 192.0.2.3 2>"$WORK/said"
    grep -q 'its filter is taken back in [0-9]* s, and these keys with it, unless `xdp-sieve confirm' "$WORK/said"
    sieve -q confirm --take-back
    sieve list "$IN_IF" bad | grep -qx 192.0.2.2
    ! sieve list "$IN_IF" bad | grep -qx 192.0.2.3 || fail "it stays"
    # An action on probation leaves the filter and its keys.
    sieve -q set "$IN_IF" bad action=count --confirm 86400
    sieve delete "$IN_IF" bad 192.0.2.2 2>"$WORK/said"
    [ ! -s "$WORK/said" ]
}

too_late() {
    sieve -q load "$IN_IF" "bad=$WORK/peer" --confirm 1
    await is_over
    refused 1 sieve confirm "$IN_IF"
    sieve status "$IN_IF" | grep -q 'not confirmed in time'
    sieve unload "$IN_IF"
    refused 1 sieve confirm "$IN_IF"
    refused_with 2 'confirm' sieve load "$IN_IF" "bad=$WORK/peer" --confirm 0
}

at_tc() {
    locked_out_by sieve -q load "$IN_IF" --hook egress "bad=$WORK/peer,key=dst" --confirm 3
    sieve -q unload "$IN_IF"
}

ktap_run \
    "locked out, and the end of all of our processes does not matter" nobody_is_left \
    "locked out, and the terminal ends" the_terminal_ends \
    "locked out, and the command is killed" the_command_is_killed \
    "the table from before comes back" the_table_from_before_comes_back \
    "a configuration is taken back, or confirmed" a_configuration_is_taken_back \
    "a confirmed change stays, and holds up others until then" a_confirmed_change_stays \
    "keys that change in a filter on probation go with it" keys_go_with_their_filter \
    "a confirmation can come too late" too_late \
    "the same at a hook of tc" at_tc
