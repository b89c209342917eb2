#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# `apply` puts a configuration in force: it attaches, swaps only what changed, and changes nothing if there is a
# mistake.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# shellcheck source=service.sh
. "$here/service.sh"

hits() { of_set stats "$1" packets; }

from_nothing() {
    fresh_lists
    sieve apply "$CONFIG" >"$WORK/said"
    grep -q "^$IN_IF: attached" "$WORK/said" || fail "$(cat "$WORK/said")"
    judged
    [ "$(stat -c %a "$STATE")" = 700 ] || fail "the state directory is open to others"
}

twice() {
    local before map_ids
    fresh_lists
    sieve -q apply "$CONFIG"
    judged
    before=$(state)
    map_ids=$(bpftool -j prog show id "$(program_id)" | jq -c .map_ids)
    sieve apply "$CONFIG" >"$WORK/said"
    [ "$(cat "$WORK/said")" = "nothing to do" ] || fail "$(cat "$WORK/said")"
    unchanged "$before"
    [ "$(bpftool -j prog show id "$(program_id)" | jq -c .map_ids)" = "$map_ids" ] || fail "other maps"
    [ "$(sieve --json apply "$CONFIG" | jq -c '[.changed, .hooks[0].step, .sets[].replaced]')" = \
        '[false,"nothing",false,false]' ] || fail "$(sieve --json apply "$CONFIG")"
    # Writing a file anew with the same content is no change either.
    cp "$LISTS/bad.txt" "$WORK/same" && cp "$WORK/same" "$LISTS/bad.txt"
    sieve apply "$CONFIG" | grep -qx "nothing to do" || fail "the same content was built again"
    unchanged "$before"
}

one_list() {
    local program friends bad hits
    fresh_lists
    sieve -q apply "$CONFIG"
    judged
    program=$(program_id) friends=$(identity friends) bad=$(identity bad) hits=$(hits bad)
    echo "$STRANGER" >>"$LISTS/bad.txt"
    sieve apply "$CONFIG" >"$WORK/said"
    grep -q '~ set bad: new filter' "$WORK/said" || fail "$(cat "$WORK/said")"
    if grep -q friends "$WORK/said"; then fail "friends was touched: $(cat "$WORK/said")"; fi
    [ "$(program_id)" = "$program" ] && [ "$(identity friends)" = "$friends" ] || fail "more than one set was swapped"
    [ "$(identity bad)" != "$bad" ] || fail "the filter was not swapped"
    [ "$(hits bad)" = "$hits" ] && [ "$hits" -gt 0 ] || fail "counters were not kept: $hits, $(hits bad)"
    verdicts <<END
drop udp $STRANGER $IN4 1 2
drop udp $MEMBER $IN4 1 2
END
    # Add one more file to a folder.
    echo "$MEMBER" >"$LISTS/friends/b.txt"
    sieve -q apply "$CONFIG"
    verdicts <<<"pass udp $MEMBER $IN4 1 2"
}

other_table() {
    local bad
    fresh_lists
    sieve -q apply "$CONFIG"
    bad=$(identity bad)
    sed -i -e 's/sets = .*/sets = ["bad", "friends"]/' -e 's/^action = .*/action = "count"/' \
        -e '/^\[\[/a default = "drop"' -e 's/^fpr = .*/&\naction = "pass"/' "$CONFIG"
    sieve apply --diff "$CONFIG" >"$WORK/said"
    for line in 'order: friends, bad -> bad, friends' 'set friends: pass -> count' 'set bad: drop -> pass' \
        'default: pass -> drop'; do
        grep -q "  ~ $line" "$WORK/said" || fail "no '$line' in: $(cat "$WORK/said")"
    done
    sieve -q apply "$CONFIG"
    [ "$(identity bad)" = "$bad" ] || fail "the filter was swapped for a change of actions"
    verdicts <<END
pass udp $MEMBER $IN4 1 2
drop udp $STRANGER $IN4 1 2
END
    # `apply` detaches from a hook that the configuration no longer names, and removes the set's record from disk.
    sed -i 's/^default = .*/hook = "egress"/' "$CONFIG"
    sieve -q apply "$CONFIG"
    [ -z "$(program_id)" ] || fail "still attached at XDP"
    sieve --json status "$IN_IF" | jq -e '.interfaces[0].hook == "egress"' >/dev/null || fail "not at egress"
    sieve -q unload --hook egress "$IN_IF"
}

wrong_changes_nothing() {
    local before
    fresh_lists
    sieve -q apply "$CONFIG"
    before=$(state)
    configure "" 'souces = []'
    refused 3 sieve apply "$CONFIG"
    unchanged "$before"
    configure
    echo "no address" >>"$LISTS/bad.txt"
    refused 3 sieve apply "$CONFIG"
    unchanged "$before"
    rm "$LISTS/bad.txt"
    refused 3 sieve apply "$CONFIG"
    unchanged "$before"
    sed -i "s/^name = .*/name = \"nowhere0\"/" "$CONFIG"
    echo "$MEMBER" >"$LISTS/bad.txt"
    refused 4 sieve apply "$CONFIG"
    unchanged "$before"
    refused 3 sieve apply "$WORK/nothing.toml"
    judged || fail "judged otherwise"
    # State of another version is set aside.
    echo "xdp-sieve state 1" >"$STATE/version"
    configure
    printf '%s\n' "$MEMBER" 203.0.113.64/28 >"$LISTS/bad.txt"
    sieve apply "$CONFIG" >"$WORK/said" 2>&1 || fail "$(cat "$WORK/said")"
    grep -q 'another version.*; what it had is in ' "$WORK/said" || fail "$(cat "$WORK/said")"
    judged || fail "judged otherwise"
}

# wrong EDIT [PATTERN]: a configuration with that mistake, made by sed from a correct one. `apply --check` and
# `xdp-sieved --check` name the same place and say what was expected.
wrong() {
    local refusal=(refused 3)
    [ $# -eq 1 ] || refusal=(refused_with 3 "$2")
    configure
    sed -i "$1" "$CONFIG"
    "${refusal[@]}" sieve apply --check "$CONFIG"
    sed "s|.*/xdp-sieve.toml|xdp-sieve.toml|" "$WORK/err"
    [ -x "$SIEVED" ] || return 0
    cp "$WORK/err" "$WORK/first"
    refused_with 3 . "$SIEVED" --check --config "$CONFIG"
    diff <(cut -d: -f3- "$WORK/first") <(cut -d: -f3- "$WORK/err") || fail "the daemon says something else"
}

wrong_configurations() {
    fresh_lists
    wrong '2s/"//' 'xdp-sieve.toml:2:[0-9]+: not TOML'
    wrong '2s|= .*|= "state"|'
    wrong '3s/^/on-stop = "never"/'
    wrong '3s/^/listen = "localhost"/'
    wrong '3s/^/lissen = ""/'
    wrong '3s/^/[servics]/'
    wrong '5d'
    wrong '5s/=.*/= "an-interface-of-long-name"/'
    wrong '7s/^/hook = "forward"/'
    wrong '7s/^/mode = "fast"/'
    wrong '7s/^/default = "maybe"/'
    wrong '7s/^/priority = 0/'
    wrong '7s|^|protect = ["192.0.2.0/33"]|'
    wrong '6s/"bad"/"bat"/'
    wrong '6s/"bad"/"bad", "bad"/'
    wrong '6s/=.*/= []/'
    wrong '9s/=.*/= []/'
    wrong '9s|=.*|= ["ftp://lists.example.net/a.txt"]|'
    wrong '10s/"pass"/"accept"/'
    wrong '13s/=.*/= 3/'
    wrong '14s/^/kind = "cuckoo"/'
    wrong '14s/^/refresh = "never"/'
    wrong '14s/^/verify = "yes"/'
    wrong '14s/^/guards.most-shrink = 50/'
    wrong '14s/^/seed = 1/'
}

# A table that would cut an administrator off is refused by the filters themselves, unless the configuration says that
# it is meant. The session is between the two ends; a set of flows names it.
# shellcheck disable=SC2154 # conversation() sets what the ends are read and written by
lockouts() {
    local before port
    fresh_lists
    sieve -q apply "$CONFIG"
    before=$(program_id; identity bad; identity friends)
    conversation server nsenter --net="/run/netns/$IN" python3 -c "import socket
listening = socket.create_server(('$IN4', 22))
print(listening.getsockname(), flush=True)
peer, _ = listening.accept()
print('connected', flush=True)
peer.recv(1)"
    read -r _ <&"$server_out"
    conversation client nsenter --net="/run/netns/$OUT" python3 -c "import socket, sys
end = socket.create_connection(('$IN4', 22))
print(end.getsockname()[1], flush=True)
sys.stdin.read()"
    read -r port <&"$client_out"
    read -r _ <&"$server_out"
    sed -i "s|^fpr = .*|key = \"src,dport\"|" "$CONFIG"
    echo "$OUT4 22" >"$LISTS/bad.txt"
    # All hooks change or none: nothing speaks against the other one.
    sed -i '0,/^\[\[/s//[[interface]]\nname = "lo"\nhook = "ingress"\nsets = ["friends"]\n&/' "$CONFIG"
    refused_with 3 "set bad would drop $OUT4, an administrator's session .TCP port 22.*protect-host" \
        sieve apply "$CONFIG"
    [ "$(program_id; identity bad; identity friends)" = "$before" ] || fail "something has changed"
    [ -z "$(ip netns exec "$IN" tc filter show dev lo ingress)" ] || fail "the other hook has changed"
    sed -i '/^name = "lo"/,/^sets/d; 0,/^\[\[.*/s///' "$CONFIG"
    # Meant for this set.
    sed -i 's|^key = .*|&\nguards.protect-host = false|' "$CONFIG"
    sieve -q apply "$CONFIG"
    echo "$MEMBER" >"$LISTS/bad.txt"
    configure
    sieve -q apply "$CONFIG"
    # The default, in the other direction: nobody is let in from the peer.
    configure 'default = "drop"'
    sed -i 's/^sets = .*/sets = ["friends"]/; /^.set.bad/,$d' "$CONFIG"
    refused 3 sieve apply "$CONFIG"
    # An address that the interface protects must get in, too. What is dropped already is no reason to refuse.
    echo "$OUT4" >>"$LISTS/friends/a.txt"
    configure "default = \"drop\"
protect = [\"203.0.113.99\"]"
    sed -i 's/^sets = .*/sets = ["friends"]/; /^.set.bad/,$d' "$CONFIG"
    refused 3 sieve apply "$CONFIG"
    echo 203.0.113.99 >>"$LISTS/friends/a.txt"
    sieve -q apply "$CONFIG"
    exec {server_in}>&- {server_out}<&- {client_in}>&- {client_out}<&-
    echo "a session from $OUT4 port $port"
}

guards() {
    local before
    fresh_lists
    address_lists 20261122 long 400 more 1
    cp "$WORK/long" "$LISTS/bad.txt"
    sieve -q apply "$CONFIG"
    before=$(state)
    head -n 100 "$WORK/long" >"$LISTS/bad.txt"
    refused 3 sieve apply "$CONFIG"
    : >"$LISTS/bad.txt"
    refused 3 sieve apply "$CONFIG"
    echo 0.0.0.0/1 >"$LISTS/bad.txt"
    configure "" 'guards.most-shrink = 1
guards.most-growth = 1e9'
    refused 3 sieve apply "$CONFIG"
    configure
    { cat "$WORK/long" && echo "$IN4"; } >"$LISTS/bad.txt"
    refused 3 sieve apply "$CONFIG"
    { cat "$WORK/long" && echo 192.0.2.0/24; } >"$LISTS/bad.txt"
    configure "" 'guards.protect = ["192.0.2.7"]'
    refused 3 sieve apply "$CONFIG"
    unchanged "$before"
    # A change that the operator allows goes through.
    head -n 100 "$WORK/long" >"$LISTS/bad.txt"
    configure "" 'guards.most-shrink = 0.8'
    sieve -q apply "$CONFIG"
    [ "$(sieve --json status "$IN_IF" | jq '.interfaces[0].sets[1].keys')" = 100 ] || fail "not allowed"
}

difference() {
    local before
    fresh_lists
    sieve apply --diff "$CONFIG" >"$WORK/said"
    grep -q "^$IN_IF: attach" "$WORK/said" && grep -q '  + set bad: drop' "$WORK/said" || fail "$(cat "$WORK/said")"
    [ -z "$(program_id)" ] && [ ! -e "$STATE" ] || fail "--diff has changed something"
    sieve -q apply "$CONFIG"
    [ "$(sieve apply --diff "$CONFIG")" = "nothing to do" ] || fail "a difference to itself"
    before=$(state)
    printf '%s\n' 203.0.113.64/28 192.0.2.9 192.0.2.10 >"$LISTS/bad.txt"
    sieve apply --diff "$CONFIG" >"$WORK/said"
    diff - "$WORK/said" <<END || fail "another difference"
$IN_IF: change
  ~ set bad: new filter
set bad: 3 entries, 2 added, 1 gone
    + 192.0.2.9
    + 192.0.2.10
    - $MEMBER
END
    [ "$(sieve --json apply --diff "$CONFIG" | jq -c '[.changes, .sets[0].list.added, .sets[0].list.first_gone]')" = \
        "[true,2,[\"$MEMBER\"]]" ] || fail "$(sieve --json apply --diff "$CONFIG")"
    unchanged "$before"
}

unprivileged() {
    local user=(python3 -c 'import os, sys
os.setgroups([]), os.setgid(65534), os.setuid(65534), os.execv(sys.argv[1], sys.argv[1:])')
    fresh_lists
    chmod 755 "$WORK" && cp "$SIEVE" "$WORK/xdp-sieve"
    "${user[@]}" "$WORK/xdp-sieve" apply --check "$CONFIG" >"$WORK/said"
    grep -q 'is correct' "$WORK/said" || fail "$(cat "$WORK/said")"
    [ ! -e "$STATE" ] || fail "--check has made the state directory"
    # Command and daemon name the configuration in the same two ways.
    sieve -q apply --check --config "$CONFIG"
    refused 2 sieve apply --check "$CONFIG" --config "$WORK/other.toml"
    if [ -x "$SIEVED" ]; then
        "$SIEVED" --check "$CONFIG" >"$WORK/said"
        "$SIEVED" --check --config "$CONFIG" | diff - "$WORK/said"
        refused_with 2 'expected one configuration' "$SIEVED" --check "$CONFIG" --config "$WORK/other.toml"
    fi
    # The same with a state directory that it may not read.
    sieve -q apply "$CONFIG"
    "${user[@]}" "$WORK/xdp-sieve" -q apply --check "$CONFIG"
    echo "no address" >>"$LISTS/bad.txt"
    refused 3 "${user[@]}" "$WORK/xdp-sieve" apply --check "$CONFIG"
    sed -i 's/^fpr = .*/fpr = 3/' "$CONFIG"
    refused 3 "${user[@]}" "$WORK/xdp-sieve" apply --check "$CONFIG"
    configure
    refused_with 4 'root' "${user[@]}" "$WORK/xdp-sieve" apply "$CONFIG"
    refused 2 "${user[@]}" "$WORK/xdp-sieve" apply --check --diff "$CONFIG"
}

effective() {
    fresh_lists
    sieve config "$CONFIG" >"$WORK/first.toml"
    grep -qx 'most-shrink = 0.5' "$WORK/first.toml" || fail "a default is missing: $(cat "$WORK/first.toml")"
    sieve config "$WORK/first.toml" | diff "$WORK/first.toml" - || fail "it reads back otherwise"
    sieve --json config "$CONFIG" | jq -e '.set.bad.fpr == 1e-9 and .service."on-stop" == "keep"' >/dev/null ||
        fail "$(sieve --json config "$CONFIG")"
    # The installed example is valid, apart from the lists that it names.
    if [ -e "$here/../../examples/xdp-sieve.toml" ]; then "$SIEVE" -q config "$here/../../examples/xdp-sieve.toml"; fi
}

verified() {
    fresh_lists
    # Of a list of addresses and prefixes, the keys need not be kept beside the set.
    sed -i 's/^fpr = .*/verify = true/' "$CONFIG"
    sieve apply "$CONFIG" >"$WORK/said" 2>&1
    grep -q 'set bad: kind ranges is exact, so its matches need no verification' "$WORK/said" ||
        fail "$(cat "$WORK/said")"
    [ "$(sieve --json status "$IN_IF" | jq -c '.interfaces[0].sets[1] | [.kind, .verify]')" = '["ranges",false]' ] ||
        fail "$(sieve --json status "$IN_IF" | jq -c '.interfaces[0].sets[1]')"
    judged
    [ "$(sieve apply "$CONFIG")" = "nothing to do" ] || fail "not the same"
    # Behind a filter they are.
    sed -i 's/^verify = true/verify = true\nkind = "xorsat"/' "$CONFIG"
    sieve -q apply "$CONFIG"
    [ "$(sieve --json status "$IN_IF" | jq '.interfaces[0].sets[1].verify_bytes > 0')" = true ] || fail "not verified"
    judged
    [ "$(sieve apply "$CONFIG")" = "nothing to do" ] || fail "not the same"
    # The list and the program are gone. The last good image comes back, with its keys once the sources are back.
    echo "$STRANGER" >>"$LISTS/bad.txt"
    sieve -q apply "$CONFIG"
    verdicts <<<"drop udp $STRANGER $IN4 1 2"
    # Its keys were damaged on the disk.
    local keys damage
    for damage in flipped cut; do
        sieve -q unload "$IN_IF"
        keys=$(echo "$STATE"/sets/bad/*.exact)
        case $damage in
            flipped) python3 -c 'f = open(__import__("sys").argv[1], "r+b"); f.seek(-1, 2); last = f.read()[0]
f.seek(-1, 2); f.write(bytes([last ^ 1]))' "$keys" ;;
            cut) truncate -s 100 "$keys" ;;
        esac
        sieve apply "$CONFIG" >/dev/null 2>"$WORK/said"
        grep -qF "$keys: the keys for verification " "$WORK/said" || fail "$damage: $(cat "$WORK/said")"
        grep -q 'the set is built anew' "$WORK/said" || fail "$damage: $(cat "$WORK/said")"
        verdicts <<<"drop udp $STRANGER $IN4 1 2"
    done
}

# flows ENTRY...: a list of these flows.
flows() { printf '%s\n' "$@" >"$LISTS/bad.txt"; }

# Entries of several fields may have prefixes, ranges and `*`, whatever kind holds them.
open_flows() {
    local options bad
    for options in "" "verify = true" 'kind = "blocked"' 'kind = "bloom"' $'kind = "dleft64"\nverify = true' \
        $'kind = "ddlcbf"\nverify = true'; do
        fresh_lists "" "key = \"src,dport\"
$options"
        flows "203.0.113.0/26 443" "203.0.113.100-203.0.113.102 53" "* 2222" "$STRANGER 80"
        sieve -q apply "$CONFIG"
        verdicts <<END
drop udp $MEMBER $IN4 1 443
drop udp 203.0.113.101 $IN4 1 53
drop udp 198.51.100.7 $IN4 1 2222
drop udp $STRANGER $IN4 1 80
pass udp $MEMBER $IN4 1 444
pass udp 203.0.113.64 $IN4 1 443
pass udp 203.0.113.103 $IN4 1 53
pass udp $STRANGER $IN4 1 81
END
        sieve apply "$CONFIG" | grep -qx "nothing to do" || fail "the same list was built again ($options)"
        flows "203.0.113.0/27 443" "203.0.113.100-203.0.113.102 53" "* 2223" "$STRANGER 80"
        sieve apply --diff "$CONFIG" >"$WORK/said"
        diff - <(sed -n '/^set bad/,$p' "$WORK/said") <<END || fail "another difference ($options)"
set bad: 4 entries, 2 added, 2 gone
    + * 2223
    + 203.0.113.0/27 443
    - * 2222
    - 203.0.113.0/26 443
END
        sieve -q apply "$CONFIG"
        verdicts <<END
drop udp $MEMBER $IN4 1 443
pass udp 203.0.113.33 $IN4 1 443
drop udp 198.51.100.7 $IN4 1 2223
pass udp 198.51.100.7 $IN4 1 2222
END
    done
    # What no list of one address can hold is refused.
    bad=$(identity bad)
    sed -i -e '/^kind = /d' -e 's/^key = .*/key = "src"/' "$CONFIG"
    refused 3 sieve apply "$CONFIG"
    [ "$(identity bad)" = "$bad" ] || fail "a set that was refused has changed"
}

# Exceptions of such a list may be ranges as well. Sets with open flows are not joined with others, nor in their way.
open_flows_beside_others() {
    fresh_lists "join = true" 'key = "src,dport"
except = "lists/partners.txt"'
    sed -i -e 's/^sets = .*/sets = ["friends", "bad", "worse"]/' -e '/^action = "pass"/a key = "src,dport"' "$CONFIG"
    printf '\n[set.worse]\nkey = "src,dport"\nfpr = 1e-9\nsources = ["lists/worse.txt"]\n' >>"$CONFIG"
    echo "$FRIEND 443" >"$LISTS/friends/a.txt"
    echo "198.51.100.7 25" >"$LISTS/worse.txt"
    flows "203.0.113.0/24 443" "* 2222"
    echo "203.0.113.4/30 443" >"$LISTS/partners.txt"
    sieve apply "$CONFIG" >"$WORK/said" 2>&1
    grep -q 'one lookup answers for friends, worse' "$WORK/said" || fail "$(cat "$WORK/said")"
    verdicts --repeat 1 <<END
pass udp $FRIEND $IN4 1 443
drop udp $MEMBER $IN4 1 443
pass udp 203.0.113.4 $IN4 1 443
pass udp 203.0.113.7 $IN4 1 443
drop udp 203.0.113.8 $IN4 1 443
drop udp 198.51.100.7 $IN4 1 25
drop udp 198.51.100.7 $IN4 1 2222
END
    echo "203.0.113.4/31 443" >"$LISTS/partners.txt"
    sieve -q apply "$CONFIG"
    verdicts --repeat 1 <<END
pass udp 203.0.113.5 $IN4 1 443
drop udp 203.0.113.7 $IN4 1 443
END
    echo "203.0.113.4 2222" >"$LISTS/partners.txt"
    refused 3 sieve apply "$CONFIG"
}

all_sources() {
    local before both
    fresh_lists
    sieve -q apply "$CONFIG"
    before=$(state)
    # A command that fails, hangs or says too much leaves the last good list in force.
    sed -i 's|^sources = .*bad.txt.*|sources = { command = ["sh", "-c", "echo out of order >\&2; exit 3"] }|' "$CONFIG"
    refused 3 sieve apply "$CONFIG"
    sed -i 's|^sources = { command.*|sources = { command = ["sleep", "1000"], timeout = "1s" }|' "$CONFIG"
    refused 3 sieve apply "$CONFIG"
    sed -i 's|^sources = { command.*|sources = { command = ["yes"], most-bytes = 1000 }|' "$CONFIG"
    refused 3 sieve apply "$CONFIG"
    echo '<!DOCTYPE html>' >"$LISTS/bad.txt"
    sed -i 's|^sources = { command.*|sources = ["lists/bad.txt"]|' "$CONFIG"
    refused 3 sieve apply "$CONFIG"
    unchanged "$before"
    judged
    # A command and a packed list together make the list.
    python3 -c "import gzip; open('$LISTS/range.gz', 'wb').write(gzip.compress(b'203.0.113.64/28\\n'))"
    both="[\"lists/range.gz\", { command = [\"echo\", \"$MEMBER\"] }]"
    sed -i "s|^sources = \[\"lists/bad.txt.*|sources = $both|" "$CONFIG"
    sieve -q apply "$CONFIG"
    judged
    [ "$(sieve apply "$CONFIG")" = "nothing to do" ] || fail "the same lists were built again"
    # So does a filter that was built elsewhere.
    printf '%s\n' "$MEMBER" 203.0.113.64/28 >"$WORK/list"
    sieve -q build --fpr 1e-9 -o "$LISTS/ready.sieve" "$WORK/list"
    sed -i 's|^sources = \["lists/range.gz.*|sources = ["lists/ready.sieve"]|' "$CONFIG"
    before=$(state)
    refused 3 sieve apply "$CONFIG"
    unchanged "$before"
    sed -i 's|^sources = \["lists/ready.*|&\nguards.unchecked-images = true|' "$CONFIG"
    sieve -q apply "$CONFIG"
    judged
    [ "$(identity bad)" = "$(sieve --json inspect "$LISTS/ready.sieve" | jq -r .identity)" ] || fail "another filter"
    sed -i '/^guards.unchecked-images/d' "$CONFIG"
    foreign_images
}

# What a server or a command hands over in the place of a list: a filter that lets everybody match. Its header
# says that it is small.
foreign_images() {
    local before
    sieve -q build -o "$LISTS/ready.sieve" "$WORK/list"
    chmod a+rx "$WORK" "$LISTS" # a command runs without privileges
    chmod a+r "$LISTS/ready.sieve"
    sed -i "s|^sources = .*ready.sieve.*|sources = { command = [\"cat\", \"$LISTS/ready.sieve\"] }|" "$CONFIG"
    before=$(state)
    refused 3 sieve apply "$CONFIG"
    unchanged "$before"
    sed -i 's|^sources = { command = \["cat".*|&\nguards.protect-host = false|' "$CONFIG"
    sed -i 's|ready.sieve"\] }|ready.sieve"], image = true }|' "$CONFIG"
    sieve -q apply "$CONFIG"
    judged
    [ "$(identity bad)" = "$(sieve --json inspect "$LISTS/ready.sieve" | jq -r .identity)" ] || fail "another filter"
    before=$(state)
    printf '%s\n' 0.0.0.0/1 128.0.0.0/1 >"$WORK/all"
    sieve -q build --allow-wide -o "$LISTS/ready.sieve" "$WORK/all"
    chmod a+r "$LISTS/ready.sieve"
    refused 3 sieve apply "$CONFIG"
    unchanged "$before"
}

unreadable() {
    fresh_lists 'unreadable = "pass"'
    sieve -q apply "$CONFIG"
    sieve --json status "$IN_IF" | jq -e '.interfaces[0].unreadable.action == "pass"' >/dev/null || fail "not at attach"
    configure
    sieve apply "$CONFIG" >"$WORK/said"
    grep -q '  ~ unreadable: pass -> drop' "$WORK/said" || fail "$(cat "$WORK/said")"
    sieve --json status "$IN_IF" | jq -e '.interfaces[0].unreadable.action == "drop"' >/dev/null || fail "not changed"
}

# on_a_terminal COMMAND...: its standard output and error are a terminal. Prints what appears there.
on_a_terminal() {
    inside "$IN" python3 - "$@" <<'END'
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
said = b""
try:
    while chunk := os.read(terminal, 4096):
        said += chunk
except OSError:  # the far end has closed it
    pass
sys.stdout.buffer.write(said)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
END
}

# What lasts over a second shows how far it is, but only on a terminal. The list comes after more than a second.
progress_bar() {
    local number command
    fresh_lists
    for number in 1 2 3; do
        command="sleep 1.2; echo 203.0.113.$number"
        sed -i "s|^sources = .*|sources = { command = [\"sh\", \"-c\", \"$command\"] }|" "$CONFIG"
        case $number in
        1)
            on_a_terminal "$SIEVE" apply "$CONFIG" >"$WORK/said"
            grep -qE $'\r[a-z ]+ +\\[#* *\\] +[0-9]+%' "$WORK/said" || fail "no bar: $(cat -v "$WORK/said")"
            # It has gone when something else is printed.
            tr '\r' '\n' <"$WORK/said" | sed 's/\x1b\[K//g' | grep -vE '^[a-z ]+ +\[#* *\] +[0-9]+%$' >"$WORK/rest"
            if grep -q '%' "$WORK/rest"; then fail "the bar stays: $(cat -v "$WORK/said")"; fi
            grep -q "^$IN_IF: attached" "$WORK/rest" || fail "$(cat -v "$WORK/said")"
            ;;
        2) on_a_terminal "$SIEVE" -q apply "$CONFIG" >"$WORK/said" ;;
        3) sieve apply "$CONFIG" >"$WORK/said" 2>&1 ;;
        esac
        [ "$number" = 1 ] || ! grep -q '%' "$WORK/said" || fail "a bar: $(cat -v "$WORK/said")"
    done
}

# The service joins sets by itself, those with exceptions among them, and again after each change of a list.
joined_sets() {
    local lists=$WORK/joint
    mkdir -p "$lists"
    printf '%s\n' 203.0.113.1 203.0.113.2 >"$lists/a"
    printf '%s\n' 203.0.113.2 203.0.113.3 203.0.113.4 >"$lists/b"
    echo 203.0.113.3 >"$lists/except"
    cat >"$lists/joint.toml" <<END
[service]
state-directory = "$lists/state"
[[interface]]
name = "$IN_IF"
sets = ["a", "b"]
join = true
[set.a]
kind = "xorsat"
sources = "$lists/a"
[set.b]
kind = "xorsat"
sources = "$lists/b"
except = "$lists/except"
END
    sieve apply "$lists/joint.toml" >"$WORK/out" 2>&1
    grep -q 'one lookup answers for a, b' "$WORK/out" || fail "$(cat "$WORK/out")"
    expect_joined "a b"
    verdicts --repeat 1 <<END
drop udp 203.0.113.2 $IN4 1 2
pass udp 203.0.113.3 $IN4 1 2
drop udp 203.0.113.4 $IN4 1 2
END
    printf '%s\n' 203.0.113.4 203.0.113.5 >"$lists/b"
    sieve -q apply "$lists/joint.toml"
    expect_joined "a b"
    verdicts --repeat 1 <<END
drop udp 203.0.113.5 $IN4 1 2
pass udp 203.0.113.3 $IN4 1 2
END
    sieve apply "$lists/joint.toml" | grep -qx "nothing to do" || fail "the sets were joined once more"
}

ktap_run \
    "apply from nothing" from_nothing \
    "apply twice changes nothing" twice \
    "a list that changed is swapped, nothing else" one_list \
    "order, actions, default and hook" other_table \
    "what is wrong changes nothing" wrong_changes_nothing \
    "each kind of mistake in a configuration" wrong_configurations \
    "guards refuse" guards \
    "a configuration that locks an administrator out" lockouts \
    "--diff shows what would change" difference \
    "--check needs no root" unprivileged \
    "config prints every default" effective \
    "a verified set" verified \
    "sets that share a lookup" joined_sets \
    "entries of several fields with prefixes, ranges and *" open_flows \
    "open flows with exceptions, beside sets that share a lookup" open_flows_beside_others \
    "sources of all sorts" all_sources \
    "packets that cannot be read" unreadable \
    "a progress bar" progress_bar
