#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Sources that are dead, hang or have nothing to say, and lists that take long, concern their own sets only.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# shellcheck source=service.sh
. "$here/service.sh"
needs_daemon

LETTERS=(one two three four five)
address_of() { echo "203.0.113.$((10 + $1))"; }

serve() {
    rm -rf "$LISTS" "$STATE" "$WORK/served"
    mkdir -p "$LISTS"
    inside "$IN" "$here/list_server.py" 127.0.0.1 8080 "$LISTS" >"$WORK/served" &
    server=$!
    await_line "$WORK/served" '^listens'
    service_manager
}
unserve() {
    rm -f "$LISTS"/*.hangs
    kill "$server"
    wait "$server" || true
}

# A configuration of sets that drop, each of one URL. Arguments: the interface's name, and further lines for it.
configure_urls() {
    local i
    {
        printf '[service]\nstate-directory = "%s"\nlisten = ""\n' "$STATE"
        printf '[[interface]]\nname = "%s"\nsets = ["one", "two", "three", "four", "five"]\n%s\n' "$1" "${2-}"
        for i in "${!LETTERS[@]}"; do
            printf '[set.%s]\nsources = [{ url = "http://127.0.0.1:8080/%s", timeout = "60s" }]\n' "${LETTERS[i]}" \
                "${LETTERS[i]}"
            address_of "$i" >"$LISTS/${LETTERS[i]}"
        done
    } >"$CONFIG"
}

# verdict_of VERDICT NUMBER...: whether packets from the members of these sets have this verdict.
verdict_of() {
    local i
    for i in "${@:2}"; do echo "$1 udp $(address_of "$i") $IN4 1 2"; done | verdicts
}
has_sets() { [ "$(sieve --json status "$IN_IF" | jq -c '[.interfaces[0].sets[]?.name]')" = "$1" ]; }

# One dead URL of five, on a host that has no list yet.
dead() {
    serve
    configure_urls "$IN_IF"
    sed -i 's|127.0.0.1:8080/three|127.0.0.1:9/three|' "$CONFIG"
    start
    await has_sets '["one","two","four","five"]'
    verdict_of drop 0 1 3 4
    verdict_of pass 2
    local standing="4 of 5 sets in force on $IN_IF; set three waits for its first list: http://127.0.0.1:9/three: "
    await_line "$WORK/notified" "^STATUS=$standing.*, asked again at 20"
    sieve status "$IN_IF" >"$WORK/status"
    grep -q "^$standing" "$WORK/status" || fail "$(cat "$WORK/status")"
    # The others are refreshed, and it joins them.
    sed -i 's|127.0.0.1:9/three|127.0.0.1:8080/three|' "$CONFIG"
    echo 203.0.113.77 >>"$LISTS/one"
    kill -s HUP "$daemon"
    await has_sets '["one","two","three","four","five"]'
    verdict_of drop 0 1 2 3 4
    says 'set one: a new list with 2 entries'
    await_line "$WORK/notified" "^STATUS=5 sets in force on $IN_IF\$"
    stop
    unserve
}

# One of a set's servers fails: the other's news come into force, and what the first one said last stays.
one_of_several() {
    local one="$LISTS/list?one" own="$LISTS/list?own"
    serve
    configure_urls "$IN_IF"
    # Both have one name for messages, which show no query.
    sed -i 's|/one"|/list?one"|' "$CONFIG"
    sed -i '/set.one/{n;s|\[|[{ url = "http://127.0.0.1:8080/list?own", timeout = "60s" }, |}' "$CONFIG"
    echo 203.0.113.50 >"$own"
    start
    says 'set one: http://127.0.0.1:8080/list.*: .*; a new list with 1 entry is in force: what its other'
    verdict_of drop 40
    verdict_of pass 0
    address_of 0 >"$one"
    kill -s HUP "$daemon"
    says 'set one: a new list with 2 entries.*; its sources answer again'
    await has_sets '["one","two","three","four","five"]'
    rm "$one"
    echo 203.0.113.51 >"$own"
    kill -s HUP "$daemon"
    says 'set one: http://127.0.0.1:8080/list.*: .*; a new list with 2 entries is in force: what its other'
    verdict_of drop 0 41
    verdict_of pass 40
    await_line "$WORK/notified" "^STATUS=5 sets in force on $IN_IF; set one: its refresh failed"
    # Nor is a page with an apology a list.
    echo '<html>we are down</html>' >"$one"
    echo 203.0.113.53 >"$own"
    says_anew 'set one: http://127.0.0.1:8080/list.*: found an HTML page.*; a new list with 2' kill -s HUP "$daemon"
    verdict_of drop 0 43
    # A daemon that starts anew knows it, too.
    stop
    start
    echo 203.0.113.52 >"$own"
    says_anew 'set one: .*; a new list with 2 entries is in force: what its other' kill -s HUP "$daemon"
    verdict_of drop 0 42
    echo 203.0.113.10 >"$one"
    kill -s HUP "$daemon"
    says 'set one: its sources answer again'
    stop
    unserve
}

# A file changes beside a server that nobody need ask for that, and is then replaced while that server is asked.
file_beside_server() {
    serve
    configure_urls "$IN_IF"
    sed -i '/set.one/{n;s|\[|["lists/own", |}' "$CONFIG"
    echo 203.0.113.50 >"$LISTS/own"
    start
    says 'set one: a new list with 2 entries'
    touch "$LISTS/one.hangs"
    echo 203.0.113.54 >>"$LISTS/own"
    says 'set one: a new list with 3 entries'
    verdict_of drop 0 40 44
    [ "$(grep -c '^one$' "$WORK/served")" = 1 ] || fail "$(cat "$WORK/served")"
    kill -s HUP "$daemon"
    await more_requests one 1
    printf '203.0.113.%s\n' 51 52 >"$LISTS/own.new"
    mv "$LISTS/own.new" "$LISTS/own"
    rm "$LISTS/one.hangs"
    says 'set one: http://127.0.0.1:8080/one: .*; a new list with 3 entries is in force: what its other'
    verdict_of drop 0 41 42
    verdict_of pass 40 44
    stop
    unserve
}

drops() { verdict_of drop "$@" >"$WORK/awaited"; }
# So it is beside bans: there the list changes in place.
beside_bans() {
    local own="$WORK/own.txt"
    serve
    configure_urls "$IN_IF"
    sed -i "/set.one/{n;s|\[|[\"bans\", \"$own\", |}" "$CONFIG"
    rm "$LISTS/one"
    echo 203.0.113.50 >"$own"
    start
    says 'set one: http://127.0.0.1:8080/one: .*; a list with 1 entry is in force: what its other'
    await drops 40 1
    await_line "$WORK/notified" "^STATUS=6 sets in force on $IN_IF; set one: http://127.0.0.1:8080/one: "
    echo 203.0.113.51 >"$own"
    await drops 41
    verdict_of pass 40
    address_of 0 >"$LISTS/one"
    kill -s HUP "$daemon"
    await drops 0 41
    # A daemon that starts anew knows what it said.
    stop
    rm "$LISTS/one"
    start
    echo 203.0.113.52 >"$own"
    await drops 0 42
    verdict_of pass 41
    stop
    unserve
}

# A source that another set is to have stays on its list until that set has it in force, here behind a server that
# hangs.
moved() {
    serve
    configure_urls "$IN_IF"
    local url='{ url = "http://127.0.0.1:8080/moved" }, '
    sed -i "/set.one/{n;s|\[|[$url|}" "$CONFIG"
    echo 203.0.113.60 >"$LISTS/moved"
    start
    await has_sets '["one","two","three","four","five"]'
    touch "$LISTS/two.hangs"
    sed -i -e "/set.one/{n;s|$url||}" -e "/set.two/{n;s|\[|[$url|}" "$CONFIG"
    says_anew 'set one: http://127.0.0.1:8080/moved stays on its list until set two has it' kill -s HUP "$daemon"
    verdict_of drop 0 1 50
    rm "$LISTS/two.hangs"
    says_anew 'set two: a new list with 2 entries' kill -s HUP "$daemon"
    says_anew 'set one: a new list with 1 entry' kill -s HUP "$daemon"
    verdict_of drop 0 1 50
    stop
    unserve
}

# A set that passes keeps out what could drop its members, as long as it has no list.
friends() {
    serve
    configure_urls "$IN_IF" 'default = "drop"'
    sed -i -e 's|127.0.0.1:8080/two|127.0.0.1:9/two|' -e '/^\[set/a action = "drop"' "$CONFIG"
    sed -i -e '/^\[set.two\]/,/^\[set.three/s/^action.*/action = "pass"/' "$CONFIG"
    start
    await has_sets '["one"]'
    verdict_of drop 0
    verdict_of pass 1 2 3 4
    await_line "$WORK/notified" "set three waits for set two; .*$IN_IF: the default is pass until then"
    sed -i 's|127.0.0.1:9/two|127.0.0.1:8080/two|' "$CONFIG"
    kill -s HUP "$daemon"
    await has_sets '["one","two","three","four","five"]'
    verdict_of drop 0 2 3 4
    verdict_of pass 1
    verdicts <<<"drop udp $STRANGER $IN4 1 2"
    stop
    unserve
}

# Servers that hang delay no other set, no list on this machine, and no new interface.
hanging() {
    serve
    configure_urls "$IN_IF"
    sed -i 's|"http://127.0.0.1:8080/five", timeout.*|"dummy" }]|; s|{ url = "dummy" }|"lists/five"|' "$CONFIG"
    touch "$LISTS/two.hangs" "$LISTS/three.hangs"
    start
    await has_sets '["one","four","five"]'
    await_line "$WORK/served" '^two$'
    await_line "$WORK/served" '^three$'
    verdict_of drop 0 3 4
    echo 203.0.113.77 >>"$LISTS/five"
    says 'set five: a new list with 2 entries'
    verdicts <<<"drop udp 203.0.113.77 $IN4 1 2"
    ip -n "$IN" link del "$IN_IF"
    says_anew "^xdp-sieved: $IN_IF: attached; in force: one, four, five" make_link
    verdict_of drop 0 3 4
    verdict_of pass 1 2
    # All of that while they hang.
    [ "$(grep -c '^two$' "$WORK/served")" = 1 ] || fail "$(cat "$WORK/served")"
    kill -s HUP "$daemon"
    await more_requests two 1
    verdict_of drop 0 3 4
    rm "$LISTS"/*.hangs
    await has_sets '["one","two","three","four","five"]'
    verdict_of drop 0 1 2 3 4
    touch "$LISTS/two.hangs"
    kill -s HUP "$daemon"
    await more_requests two 3
    stop
    unserve
}

# A long list that is being built delays no other list and no new interface. Its build takes seconds, so that
# a look every 0.05 s finds the child that does it.
building() {
    local child=
    fresh_lists
    seq 0 1499999 | awk '{ print 11 "." int($1 / 65536) "." int($1 / 256) % 256 "." $1 % 256 }' >"$LISTS/bad.txt"
    service_manager
    start
    says 'set bad: a new list with 1500000 entries'
    echo 14.0.0.1 >>"$LISTS/bad.txt"
    await stops_build
    ip -n "$IN" link del "$IN_IF"
    says_anew "^xdp-sieved: $IN_IF: attached; in force: friends, bad" make_link
    verdicts <<END
drop udp 11.0.0.7 $IN4 1 2
drop udp 11.20.0.7 $IN4 1 2
pass udp $FRIEND $IN4 1 2
pass udp 14.0.0.1 $IN4 1 2
END
    echo 11.0.0.7 >>"$LISTS/friends/a.txt"
    says 'set friends: a new list with 2 entries'
    verdicts <<<"pass udp 11.0.0.7 $IN4 1 2"
    # All of that while it is built.
    grep -q '^State:.*stopped' "/proc/$child/status" || fail "nothing was being built"
    kill -s CONT "$child"
    says 'set bad: a new list with 1500001 entries'
    verdicts <<END
drop udp 14.0.0.1 $IN4 1 2
pass udp 11.0.0.7 $IN4 1 2
END
    stop
}
# Holds the daemon's child up that builds an image.
stops_build() {
    local pid
    for pid in $(pgrep -P "$daemon"); do
        if readlink "/proc/$pid/fd/"* 2>/dev/null | grep -q sieve-image; then
            child=$pid
            kill -s STOP "$pid"
            return 0
        fi
    done
    return 1
}

# The last entry of a list is lifted, and then one comes again; all exceptions are lifted.
emptied() {
    fresh_lists "" 'empty = true'
    sed -i '/^fpr/c except = "lists/except.txt"' "$CONFIG"
    printf '%s\n' "$MEMBER" 203.0.113.65 >"$LISTS/bad.txt"
    echo 203.0.113.65 >"$LISTS/except.txt"
    service_manager
    start
    says 'set bad: a new list with 1 entry'
    verdicts <<<"pass udp 203.0.113.65 $IN4 1 2"
    : >"$LISTS/except.txt"
    says 'set bad: a new list with 2 entries \(before: 1\)'
    verdicts <<<"drop udp 203.0.113.65 $IN4 1 2"
    : >"$LISTS/bad.txt"
    says 'set bad: a new list with 0 entries \(before: 2\)'
    verdicts <<END
pass udp $MEMBER $IN4 1 2
pass udp 203.0.113.65 $IN4 1 2
pass udp $STRANGER $IN4 1 2
END
    [ "$(of_set status bad name)" = bad ] || fail "it is not in force"
    stop
    reset_interfaces
    start
    [ "$(of_set status bad name)" = bad ] || fail "it is not in force after a reboot"
    echo "$STRANGER" >"$LISTS/bad.txt"
    says 'set bad: a new list with 1 entry'
    verdicts <<<"drop udp $STRANGER $IN4 1 2"
    sed -i '/^empty/d' "$CONFIG"
    kill -s HUP "$daemon"
    says 'the configuration was read anew'
    echo '# none' >"$LISTS/bad.txt"
    says 'warning: set bad: .*bad.txt.*; the list of .* with 1 entry stays in force'
    stop
}
# What an interface refuses is held back, and keeps nothing else out: a set that redirects to nowhere, and then a
# default of drop that would lock out somebody who must pass.
held_back() {
    fresh_lists
    sed -i 's/^sets = .*/sets = ["mirror", "friends", "bad"]/' "$CONFIG"
    printf '[set.mirror]\nsources = ["lists/mirror.txt"]\nredirect = "nowhere"\n' >>"$CONFIG"
    echo 203.0.113.90 >"$LISTS/mirror.txt"
    service_manager
    start
    await has_sets '["friends","bad"]'
    await_line "$WORK/notified" "^STATUS=2 of 3 sets in force on $IN_IF; $IN_IF: held back: set mirror: .*nowhere"
    judged
    echo 203.0.113.91 >>"$LISTS/bad.txt"
    says 'set bad: a new list with 3 entries'
    verdicts <<<"drop udp 203.0.113.91 $IN4 1 2"
    refused_with 4 nowhere sieve apply --diff "$CONFIG"

    sed -i -e 's/^redirect = .*/redirect = "cpu:0"/' -e '/^\[\[interface/a protect = ["198.51.100.7"]' \
        -e '/^\[\[interface/a default = "drop"' -e '/^\[set.bad/a action = "drop"' "$CONFIG"
    kill -s HUP "$daemon"
    await has_sets '["mirror","friends","bad"]'
    await_line "$WORK/notified" "^STATUS=3 sets in force on $IN_IF; $IN_IF: held back: .*198.51.100.7"
    echo 203.0.113.92 >>"$LISTS/bad.txt"
    says 'set bad: a new list with 4 entries'
    verdicts <<<"drop udp 203.0.113.92 $IN4 1 2"
    verdicts <<<"pass udp $STRANGER $IN4 1 2"
    echo 198.51.100.0/24 >>"$LISTS/friends/a.txt"
    says "$IN_IF: changed: .*default drop"
    verdicts <<<"drop udp $STRANGER $IN4 1 2"
    stop
}
more_requests() { [ "$(grep -c "^$1\$" "$WORK/served")" -gt "$2" ]; }

ktap_run \
    "one dead URL of five" dead \
    "one of a set's servers fails" one_of_several \
    "a file beside a slow server" file_beside_server \
    "a server fails beside bans" beside_bans \
    "a source that moves to another set" moved \
    "a set that passes has no list yet" friends \
    "two servers that hang" hanging \
    "a long list that is being built" building \
    "a list and exceptions that are emptied" emptied \
    "what an interface refuses" held_back
