#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# xdp-sieved keeps a configuration in force: it follows files, interfaces and signals, and a failure of any of them
# changes no verdict.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# shellcheck source=service.sh
. "$here/service.sh"
needs_daemon

# Gives each test a clean start, and a service manager that listens.
fresh() {
    fresh_lists "$@"
    service_manager
}

# The daemon may come and go without a change of what is in force.
state() {
    program_id
    sieve --json status "$IN_IF" | jq 'del(.manager)' | without_flows
    sieve --json stats "$IN_IF"
}

# The first start asks the sources. The next one needs none of them, and puts the last good images in force.
from_nothing() {
    fresh
    start
    says 'set bad: a new list with 2 entries'
    says 'set friends: a new list with 1 entry'
    says "^xdp-sieved: $IN_IF: attached; in force: friends, bad"
    judged
    stop
    [ -n "$(program_id)" ] || fail "it has taken its program away"
    judged
    reset_interfaces
    rm -r "$LISTS"
    start
    judged
    says 'set bad: .*lists/bad.txt: cannot be read: No such file or directory; the list of .* with 2 entries stays'
    grep -q "^READY=1 | STATUS=2 sets in force on $IN_IF\$" "$WORK/notified" || fail "$(cat "$WORK/notified")"
    judged
}

# Nobody has to name the lists: the daemon keeps them, and knows where they are from.
lists_are_known() {
    fresh "" 'guards.own-addresses = "skip"'
    echo "$IN4" >>"$LISTS/bad.txt"
    start
    says "set bad: one address or range was left out, since this host depends on it: $IN4, this host's own address"
    says 'set bad: a new list with 2 entries'
    judged
    sieve explain "$IN_IF" "$MEMBER" >"$WORK/explained"
    grep -q "the key is a member: $LISTS/bad.txt:1\$" "$WORK/explained" || fail "$(cat "$WORK/explained")"
    sieve explain "$IN_IF" 203.0.113.70 >"$WORK/explained"
    grep -q "the key is a member: $LISTS/bad.txt:2\$" "$WORK/explained" || fail "$(cat "$WORK/explained")"
}

# A list that is changed in any of the usual ways comes into force.
changed_files() {
    fresh
    start
    says 'set bad: a new list with 2 entries'
    echo "$STRANGER" >>"$LISTS/bad.txt"
    says 'set bad: a new list with 3 entries \(before: 2\)'
    verdicts <<<"drop udp $STRANGER $IN4 1 2"
    printf '%s\n' "$MEMBER" >"$LISTS/.bad.txt.swp" # as editors do
    mv "$LISTS/.bad.txt.swp" "$LISTS/bad.txt"
    says 'set bad: a new list with 1 entry \(before: 3\)'
    verdicts <<<"pass udp $STRANGER $IN4 1 2"
    echo "$MEMBER" >"$LISTS/friends/b.txt"
    says 'set friends: a new list with 2 entries'
    verdicts <<<"pass udp $MEMBER $IN4 1 2"
    mv "$LISTS" "$WORK/elsewhere"
    says 'set friends: .*cannot be read: No such file'
    verdicts <<<"pass udp $MEMBER $IN4 1 2"
    mkdir "$WORK/other" && cp -r "$WORK/elsewhere/friends" "$WORK/elsewhere/bad.txt" "$WORK/other"
    rm "$WORK/other/friends/b.txt"
    mv "$WORK/other" "$LISTS"
    says 'set friends: a new list with 1 entry \(before: 2\)'
    verdicts <<<"drop udp $MEMBER $IN4 1 2"
    rm -r "$WORK/elsewhere"
}

# A set keeps its list while a folder of its patterns is away, or a link in it leads nowhere.
patterns() {
    fresh
    mkdir "$LISTS/p" "$LISTS/q"
    echo "$MEMBER" >"$LISTS/p/a.txt"
    echo "$STRANGER" >"$LISTS/q/b.txt"
    sed -i 's|^sources = ."lists/bad.txt".|sources = ["lists/p/*.txt", "lists/q/*.txt"]|' "$CONFIG"
    start
    says 'set bad: a new list with 2 entries'
    mv "$LISTS/q" "$LISTS/away"
    says 'warning: set bad: .*lists/q/: cannot be read: No such file .*; the list of .* with 2 entries stays in force'
    verdicts <<<"drop udp $STRANGER $IN4 1 2"
    mv "$LISTS/away" "$LISTS/q"
    says 'set bad: its sources answer again'
    ln -s gone "$LISTS/q/c.txt"
    says 'warning: set bad: .*lists/q/c.txt: .*; the list of .* with 2 entries stays in force'
    rm "$LISTS/q/b.txt" "$LISTS/q/c.txt"
    says 'set bad: a new list with 1 entry \(before: 2\)'
    verdicts <<<"pass udp $STRANGER $IN4 1 2"
    stop
}

# A list that is broken, or that a guard refuses, changes nothing; log and status say so.
broken_lists() {
    local before
    fresh
    address_lists 20261122 long 400
    cp "$WORK/long" "$LISTS/bad.txt"
    echo "$MEMBER" >>"$LISTS/bad.txt"
    start
    says 'set bad: a new list with 401 entries'
    before=$(state)
    echo '<html>' >"$LISTS/bad.txt"
    says 'warning: set bad: .*bad.txt: found an HTML page, .*; the list of .* with 401 entries stays in force'
    await_line "$WORK/notified" "^STATUS=2 sets in force on $IN_IF; set bad: its refresh failed"
    echo "$MEMBER" >"$LISTS/bad.txt"
    says 'warning: set bad: .*shrink.*refused.*; the list of .* with 401 entries stays in force'
    await_line "$WORK/notified" "^STATUS=2 sets in force on $IN_IF; set bad: its new list was refused"
    # At once: a daemon that asks again after a failure may read a file at any time.
    { cat "$WORK/long" && echo "$IN4"; } >"$WORK/new"
    mv "$WORK/new" "$LISTS/bad.txt"
    says "set bad: .*the list holds $IN4, this host's own address"
    unchanged "$before"
    : >"$WORK/notified"
    { cat "$WORK/long" && echo "$MEMBER"; } >"$WORK/new"
    mv "$WORK/new" "$LISTS/bad.txt"
    says 'set bad: its sources answer again'
    await_line "$WORK/notified" "^STATUS=2 sets in force on $IN_IF\$"
    unchanged "$before"
    verdicts <<<"drop udp $MEMBER $IN4 1 2"
}

# Interfaces come, go, and change their names.
interfaces() {
    local program
    fresh
    start
    says "^xdp-sieved: $IN_IF: attached"
    ip -n "$IN" link del "$IN_IF"
    says "$IN_IF: there is no interface of that name; its sets are put in force when it appears"
    await_line "$WORK/notified" "interface $IN_IF is missing"
    says_anew "^xdp-sieved: $IN_IF: attached" make_link
    judged
    program=$(program_id)
    # A name that the configuration does not have: the program goes. With its name, it comes back.
    says_anew "^xdp-sieved: other0: unloaded" ip -n "$IN" link set "$IN_IF" name other0
    says_anew "^xdp-sieved: $IN_IF: attached" ip -n "$IN" link set other0 name "$IN_IF"
    judged
    [ "$(program_id)" != "$program" ] || fail "it was not unloaded"
    # A name that the pattern has: the program stays.
    sed -i "s/^name = .*/name = \"veth-*\"/" "$CONFIG"
    says_anew 'the configuration was read anew' kill -HUP "$daemon"
    await_line "$WORK/notified" '^READY=1 .*'
    program=$(program_id)
    says_anew 'veth-new: taken over as it runs' ip -n "$IN" link set "$IN_IF" name veth-new
    says_anew "$IN_IF: taken over as it runs" ip -n "$IN" link set veth-new name "$IN_IF"
    [ "$(program_id)" = "$program" ] || fail "another program"
    judged
}

# The interface's entry goes while it is in another network namespace. Its program goes when it is back.
elsewhere() {
    fresh
    start
    says "^xdp-sieved: $IN_IF: attached"
    ip -n "$IN" link set "$IN_IF" netns "$OUT"
    says "$IN_IF: there is no interface of that name"
    sed -i 's/^name = .*/name = "other0"/' "$CONFIG"
    kill -HUP "$daemon"
    says "warning: $IN_IF: the configuration does not name it any more, and its program runs at no interface"
    await_line "$WORK/notified" "^READY=1 .*; $IN_IF: its program is to be unloaded, and runs elsewhere\$"
    : >"$WORK/notified"
    ip -n "$OUT" link set "$IN_IF" name other1 netns "$IN"
    says "^xdp-sieved: other1: unloaded, since the configuration does not name it any more"
    await_line "$WORK/notified" "^STATUS=nothing is in force; interface other0 is missing\$"
    ip -n "$IN" link show other1 | grep -q 'prog/xdp' && fail "$(ip -n "$IN" link show other1)"
    stop
    ip -n "$IN" link del other1
    make_link
}

# A reload takes a configuration as a whole, or not at all.
reloads() {
    local before
    fresh
    start
    says 'set bad: a new list with 2 entries'
    before=$(state)
    configure "" 'souces = []'
    : >"$WORK/notified"
    says_anew 'error: the configuration was not taken, and the one before stays: .*toml:14:1: .*did you mean sources' \
        kill -HUP "$daemon"
    await_line "$WORK/notified" '^RELOADING=1 \| MONOTONIC_USEC=[0-9]+ \| '
    await_line "$WORK/notified" '^READY=1 \| STATUS=2 sets in force .*; the new configuration was not taken: '
    unchanged "$before"
    echo "$STRANGER" >>"$LISTS/bad.txt" # it goes on
    says 'set bad: a new list with 3 entries'
    before=$(identity bad)
    configure 'default = "drop"' 'action = "count"'
    : >"$WORK/notified"
    kill -HUP "$daemon"
    await_line "$WORK/notified" '^READY=1 '
    verdicts <<END
pass udp $FRIEND $IN4 1 2
drop udp 192.0.2.99 $IN4 1 2
END
    [ "$(identity bad)" = "$before" ] || fail "another filter"
}

# What is in force when the daemon ends is up to the configuration.
# The first URL of a configuration needs libcurl. Without room for it, the daemon goes on with what it has.
no_room_for_libcurl() {
    local pages
    fresh
    start
    says 'set bad: a new list with 2 entries'
    sed -i 's|"lists/bad.txt"|"http://127.0.0.1:1/bad.txt", "lists/bad.txt"|' "$CONFIG"
    read -r pages _ <"/proc/$daemon/statm"
    prlimit --pid "$daemon" --as="$((pages * $(getconf PAGESIZE) + (6 << 20))):"
    kill -HUP "$daemon"
    says 'the configuration was not taken, and the one before stays: .*: a URL cannot be understood: lib.*libcurl4'
    judged
    prlimit --pid "$daemon" --as=unlimited:
    kill -HUP "$daemon"
    says 'set bad: .*127.0.0.1:1/bad.txt'
    judged
    stop
}

stops() {
    fresh
    start
    says 'set bad: a new list with 2 entries'
    stop INT
    judged
    configure "" "" 'on-stop = "unload"'
    start
    : >"$WORK/notified"
    stop
    await_line "$WORK/notified" '^STOPPING=1'
    [ -z "$(program_id)" ] || fail "its program is still there"
    # The last good images have stayed.
    rm -r "$LISTS"
    start
    judged
}

# meanwhile NAME COMMAND...: runs it in the background.
meanwhile() {
    "${@:2}" >"$WORK/$1.out" 2>"$WORK/$1.err" &
    printf '%s' $! >"$WORK/$1.process"
}
# outcome_of NAME [PROGRAM]: waits for it, says what it has said, and ends as it has ended. messages/ has the refusals
# below the command, which is the name here, or the program.
outcome_of() {
    local status=0
    wait "$(<"$WORK/$1.process")" || status=$?
    cat "$WORK/$1.out"
    cat "$WORK/$1.err" >&2
    return "$status"
}
# A second daemon, and a person, are told who manages this host.
not_alone() {
    local before
    varies+=(daemon)
    fresh
    start
    says 'set bad: a new list with 2 entries'
    before=$(sieve --json status "$IN_IF" | jq -c .interfaces)
    # Each of them waits for the daemon's end, up to 20 s, so they do that beside each other.
    meanwhile daemon inside "$IN" "$SIEVED" --config "$CONFIG"
    meanwhile elsewhere inside "$OUT" "$SIEVED" --config "$CONFIG" --log stderr
    meanwhile apply sieve -q apply "$CONFIG"
    refused 4 outcome_of daemon xdp-sieved
    # In another namespace the state directory is the one to be missed.
    outcome_of elsewhere >"$WORK/out" 2>&1 && fail "a second daemon"
    grep -q "error: state directory $STATE: process $daemon is at work with it" "$WORK/out" || fail "$(cat "$WORK/out")"
    refused 4 outcome_of apply
    sieve status | grep -q "^managed by xdp-sieved [0-9.]*, process $daemon" ||
        fail "$(sieve status)"
    [ "$(sieve --json status | jq -r .manager.pid)" = "$daemon" ] || fail "$(sieve --json status)"
    [ "$(sieve --json status "$IN_IF" | jq -c .interfaces)" = "$before" ] || fail "something has changed"
    # What a person changes by hand stays until the daemon compares.
    sieve -q remove --force "$IN_IF" friends
    verdicts <<<"drop udp $FRIEND $IN4 1 2"
    says_anew "$IN_IF: changed: \+friends" kill -HUP "$daemon"
    judged
    stop
    if sieve status | grep -q '^managed by'; then fail "still managed"; fi
    [ -z "$(find /run/xdp-sieve -name "net-$(stat -L -c %i "/run/netns/$IN").*")" ] || fail "a file is left"
}

# Whatever kill -9 leaves, the next start goes on from there, and changes nothing that is right.
killed() {
    local before
    fresh
    start
    says 'set bad: a new list with 2 entries'
    before=$(state)
    stop KILL 137
    unchanged "$before"
    start
    says "$IN_IF: taken over as it runs; in force: friends, bad"
    unchanged "$before"
    stop KILL 137
    echo "$STRANGER" >>"$LISTS/bad.txt" # while nobody looks
    start
    says 'set bad: a new list with 3 entries \(before: 2\)'
    verdicts <<<"drop udp $STRANGER $IN4 1 2"
}

# The watchdog hears from the loop.
watchdog() {
    fresh
    # systemd names the process that the watchdog is about; without a name it is any.
    start WATCHDOG_USEC=200000
    await_line "$WORK/notified" '^WATCHDOG=1'
    : >"$WORK/notified"
    await_line "$WORK/notified" '^WATCHDOG=1'
}

# What is wrong at the start: one line, the documented exit code, and nothing is changed.
wrong_starts() {
    fresh
    refused 3 inside "$IN" "$SIEVED" --config "$WORK/nothing.toml"
    refused 3 inside "$IN" "$SIEVED" --check --config "$WORK/nothing.toml"
    configure "" 'souces = []'
    refused 3 inside "$IN" "$SIEVED" --config "$CONFIG"
    refused_with 2 'see .xdp-sieved --help.' inside "$IN" "$SIEVED" --confg "$CONFIG"
    refused 2 inside "$IN" "$SIEVED" --log paper
    configure
    [ "$(inside "$IN" "$SIEVED" --check --config "$CONFIG")" = "$CONFIG is correct" ] || fail "--check"
    [ -z "$(program_id)" ] || fail "something was attached"
}

# What is at the place of a file of the state directory, or of the configuration, and is none.
no_files() {
    local kind path
    for kind in mkdir mkfifo; do
        reset_interfaces
        fresh
        start
        says 'set bad: a new list with 2 entries'
        stop
        for path in sets/bad/record.json hooks.json counters.json; do
            rm "$STATE/$path"
            "$kind" "$STATE/$path"
        done
        inside "$IN" timeout "$PATIENCE" "$SIEVE" apply --diff "$CONFIG" >/dev/null 2>"$WORK/err" ||
            fail "apply: $(cat "$WORK/err")"
        grep -q 'record.json: is no regular file; the set is built anew' "$WORK/err" || fail "$(cat "$WORK/err")"
        start
        says 'bad/record.json: is no regular file; the set is built anew'
        says 'hooks.json: is no regular file; what the service put on hooks'
        says 'set bad: a new list with 2 entries'
        await test -f "$STATE/sets/bad/record.json"
        await test -f "$STATE/hooks.json"
        judged
        rm "$CONFIG"
        "$kind" "$CONFIG"
        kill -HUP "$daemon"
        says 'the configuration was not taken, and the one before stays: .*toml: is no regular file'
        judged
        stop
        refused 3 inside "$IN" "$SIEVED" --config "$CONFIG"
        rm -r "$CONFIG"
    done
}

ktap_run \
    "from nothing, and from what is remembered" from_nothing \
    "the lists are known, and an own address is left out" lists_are_known \
    "a changed file comes into force" changed_files \
    "a folder of a pattern vanishes, and a link leads nowhere" patterns \
    "a broken list changes nothing" broken_lists \
    "interfaces come, go and are renamed" interfaces \
    "an interface comes back after its entry went" elsewhere \
    "a reload takes all or nothing" reloads \
    "no room for libcurl" no_room_for_libcurl \
    "a stop keeps or unloads" stops \
    "two daemons, and a person" not_alone \
    "a start after kill -9" killed \
    "the watchdog is answered" watchdog \
    "wrong starts" wrong_starts \
    "folders and pipes at the places of files" no_files
