#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# The commands of the pages that people begin with do what the pages say.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# shellcheck source=service.sh
. "$here/service.sh"
ROOT=$(realpath "$here/../..")

# Files of the names that the pages use, in the folder where their commands run.
prepare() {
    mkdir -p "$WORK/page"
    cd "$WORK/page" || exit
    printf '%s\n' "$FRIEND" 192.0.2.10 "# and their network" 198.51.100.0/24 >friends.txt
    printf '%s\n' "$MEMBER" 203.0.113.64/28 >blocklist.txt
    printf '%s\n' "$STRANGER" >newer.txt
    printf '203.0.113.1 %s 40000 443 tcp\n' "$IN4" >flows.txt
    printf '203.0.113.2 %s 40000 443 tcp\n' "$IN4" >newer-flows.txt
    "$here/mmdb.py" country.mmdb <<END
$FRIEND/32 {"country": {"iso_code": "DE"}}
192.0.2.0/24 {"country": {"iso_code": "DE"}}
203.0.113.128/25 {"country": {"iso_code": "AT"}}
END
    printf '%s,%s,64500,"Example, Inc."\n' "$MEMBER" "$MEMBER" >asn.csv
}

# Prints the commands on standard input as they run here. Not run: what installs, and what asks systemd.
as_here() {
    grep -vE '^sudo (make|systemctl) ' |
        sed -E -e "s/^sudo //; s/ +#.*//; s/ --watch\$//; s/\\beth0\\b/$IN_IF/; s/^xdp-sieve /sieve /" \
            -e "s,/usr/local/lib/xdp-sieve/xdp_sieve.bpf.o,$OBJECT,; s,^ip link,ip -n $IN link,"
}

# commands_of FILE HEADING: prints the commands in the section of that heading, or before the first one if it is empty.
commands_of() {
    awk -v heading="$2" '/^## / { here = $0 == "## " heading; next } NR == 1 { here = heading == "" }
        here && /^    / { sub(/^    /, ""); print }' "$1" | as_here
}
# commands_in_text FILE: prints those that stand between backquotes, which a line may end in.
# shellcheck disable=SC2016 # these are no expansions
commands_in_text() { tr '\n' ' ' <"$1" | grep -o '`sudo [^`]*`' | tr -d '`' | as_here; }

# run_commands FILE HEADING [SED-SCRIPT]: runs them one after the other, after sed has changed them. At least one.
run_commands() {
    local command
    commands_of "$1" "$2" | sed -E "${3-}" >"$WORK/commands"
    [ -s "$WORK/commands" ] || fail "no commands in $1: $2"
    while IFS= read -r command <&3; do
        eval "$command" >"$WORK/out" 2>&1 || fail "$command: $(cat "$WORK/out")"
    done 3<"$WORK/commands"
}

readme() {
    prepare
    run_commands "$ROOT/README.md" ''
    verdicts <<END
drop udp $STRANGER $IN4 1 2
pass udp $MEMBER $IN4 1 2
END
    sieve unload "$IN_IF"
    run_commands "$ROOT/README.md" 'Start safely on a remote host'
    verdicts <<END
pass udp $FRIEND $IN4 1 2
drop udp $MEMBER $IN4 1 2
pass udp $STRANGER $IN4 1 2
END
}

sets_page() {
    prepare
    run_commands "$ROOT/docs/sets.md" 'Flows beside addresses'
    verdicts <<END
drop tcp 203.0.113.2 $IN4 40000 443
drop udp $MEMBER $IN4 1 2
pass tcp 203.0.113.3 $IN4 40000 443
END
}

only_friends() {
    verdicts <<END
pass udp $FRIEND $IN4 1 2
drop udp $MEMBER $IN4 1 2
drop udp $STRANGER $IN4 1 2
END
}

start_page() {
    local page=$ROOT/docs/start.md
    prepare
    run_commands "$page" 'Friends first'
    run_commands "$page" 'A blocklist'
    judged
    run_commands "$page" 'Only friends'
    only_friends
    sieve unload "$IN_IF"
    # shellcheck disable=SC2016 # these are no expansions
    sed -n '/^```toml$/,/^```$/p' "$page" | sed '/^```/d' | sed "s/eth0/$IN_IF/" >"$WORK/page/xdp-sieve.toml"
    sed -i "1i [service]\nstate-directory = \"$WORK/page/state\"" "$WORK/page/xdp-sieve.toml"
    run_commands "$page" 'The service' 's/^sieve apply/& --config xdp-sieve.toml/'
    only_friends
    [ -x "$SIEVED" ] || skip "xdp-sieved is not built"
    CONFIG=$WORK/page/xdp-sieve.toml
    service_manager
    start
    run_commands "$page" 'Off' "/pause/!d; $with_config"
    verdicts <<<"pass udp $STRANGER $IN4 1 2"
    run_commands "$page" 'Off' "/resume/!d; $with_config"
    await only_friends
    stop
    run_commands "$page" 'Off' '/unload/!d'
    verdicts <<<"pass udp $STRANGER $IN4 1 2"
}
# Who follows the pages has the configuration where commands look for it.
with_config='s/^sieve (pause|resume)( veth-in)?/\0 --config xdp-sieve.toml/'

sizing_page() {
    run_commands "$ROOT/docs/sizing.md" ''
    # Both say what the page says of them.
    [ "$(wc -l <"$WORK/commands")" = 2 ] || fail "$(cat "$WORK/commands")"
    grep -q 'xorsat' "$WORK/out" || fail "$(cat "$WORK/out")"
}

# shows COMMAND SENDER...: runs a command of a page that shows events, until it has shown one.
shows() {
    local listener
    eval "$1 --count 1" >"$WORK/out" 2>&1 &
    listener=$!
    shift
    while kill -0 "$listener" 2>/dev/null; do "$@"; done
    wait "$listener" || fail "$(cat "$WORK/out")"
}
send_member() { verdicts <<<"drop udp $MEMBER $IN4 1 2"; }
ask_peer() { inside "$IN" ping -c 1 -W 1 "$OUT4" >/dev/null; }

replies_page() {
    local page=$ROOT/docs/replies.md
    prepare
    echo "$FRIEND" >country.txt
    echo "$STRANGER" >c2.txt
    run_commands "$page" 'Switch it on' '/^sieve load .*country/!d'
    verdicts <<END
pass udp $FRIEND $IN4 1 2
drop udp $MEMBER $IN4 1 2
END
    commands_of "$page" 'Switch it on' | grep '^sieve events ' >"$WORK/events"
    [ "$(wc -l <"$WORK/events")" = 1 ] || fail "$(cat "$WORK/events")"
    shows "$(cat "$WORK/events")" ask_peer
    grep -q "$OUT4" "$WORK/out" || fail "$(cat "$WORK/out")"
    sieve unload "$IN_IF"
    run_commands "$page" 'Switch it on' '/^sieve load .*bad=[^ ]* --replies/!d'
    sieve --json status "$IN_IF" |
        jq -e '.interfaces[0] | .replies == "pass" and [.sets[].name] == ["bad"]' >/dev/null ||
        fail "$(sieve --json status "$IN_IF")"
    run_commands "$page" 'Switch it on' '/^sieve load .*c2=/!d'
    sieve --json status "$IN_IF" | jq -e '[.interfaces[0].sets[].name] == ["bad", "c2"]' >/dev/null ||
        fail "$(sieve --json status "$IN_IF")"
    verdicts <<END
drop udp $MEMBER $IN4 1 2
drop udp $STRANGER $IN4 1 2
END
    run_commands "$page" 'Switch it on' '/^sieve replies /!d'
    sieve --json status "$IN_IF" | jq -e '.interfaces[0].replies == "drop"' >/dev/null ||
        fail "$(sieve --json status "$IN_IF")"
}

# Each command in a table of one set, of which some leave nothing.
questions_page() {
    local command
    prepare
    echo 192.0.2.1 >>blocklist.txt # which the page asks about
    printf '[service]\nstate-directory = "%s"\n' "$WORK/page/state" >xdp-sieve.toml
    printf '[[interface]]\nname = "%s"\nsets = ["bad"]\n' "$IN_IF" >>xdp-sieve.toml
    printf '[set.bad]\nsources = ["blocklist.txt"]\n' >>xdp-sieve.toml
    commands_in_text "$ROOT/docs/questions.md" | sed -E "$with_config" >"$WORK/inline"
    [ -s "$WORK/inline" ] || fail "no commands"
    while IFS= read -r command <&3; do
        case "$command" in
        *' resume '*) ;; # of the pause before it
        *) sieve -q load "$IN_IF" bad=blocklist.txt ;;
        esac
        case "$command" in
        *' events '*) shows "$command" send_member ;;
        *) eval "$command" >"$WORK/out" 2>&1 || fail "$command: $(cat "$WORK/out")" ;;
        esac
        case "$command" in
        *' pause '* | *' unload '* | *' xdp off')
            verdicts <<<"pass udp $MEMBER $IN4 1 2" || fail "$command: it still drops"
            ;;
        *' explain '*) grep -q 'set bad' "$WORK/out" || fail "$command: $(cat "$WORK/out")" ;;
        *' --pcap '*) [ "$(wc -c <out.pcap)" -gt 24 ] || fail "no packet in the capture" ;;
        *' replies '*)
            sieve --json status "$IN_IF" | jq -e '.interfaces[0].replies == "pass"' >/dev/null || fail "$command"
            ;;
        esac
    done 3<"$WORK/inline"
}

countries_page() {
    local page=$ROOT/docs/countries.md
    prepare
    run_commands "$page" 'On the command line'
    verdicts <<END
pass udp $FRIEND $IN4 1 2
pass udp $STRANGER $IN4 1 2
drop udp $MEMBER $IN4 1 2
END
    sieve query provider.sieve "$MEMBER"
    sieve unload "$IN_IF"
    # shellcheck disable=SC2016 # these are no expansions
    sed -n '/^```toml$/,/^```$/p' "$page" | sed "/^\`\`\`/d; s/eth0/$IN_IF/" >xdp-sieve.toml
    sed -i "s|^\[service\]|&\nstate-directory = \"$WORK/page/state\"|" xdp-sieve.toml
    run_commands "$page" 'In the configuration' 's/^sieve apply/& --config xdp-sieve.toml/'
    verdicts <<END
pass udp $FRIEND $IN4 1 2
drop udp $STRANGER $IN4 1 2
pass udp $MEMBER $IN4 1 2
END
}

# recipe HEADING [ARGUMENTS OF verdicts...]: runs this recipe where nothing is in force, and judges packets as the table
# on standard input says.
recipe() {
    sieve unload "$IN_IF" >/dev/null 2>&1 || true
    run_commands "$ROOT/docs/recipes.md" "$1"
    verdicts "${@:2}" || fail "$1"
}

recipes() {
    prepare
    cp friends.txt country.txt
    cp newer.txt c2.txt
    cp newer.txt suspects.txt
    recipe 'Only my country, and this host may call anybody' <<END
pass udp $FRIEND $IN4 1 2
drop udp $MEMBER $IN4 1 2
END
    recipe 'Only my country may reach SSH, everybody the web' <<END
pass tcp $FRIEND $IN4 1 22
drop tcp $MEMBER $IN4 1 22
pass tcp $MEMBER $IN4 1 443
pass udp $MEMBER $IN4 1 443
drop udp $MEMBER $IN4 1 80
drop udp $FRIEND $IN4 1 22
drop tcp $FRIEND $IN4 1 3306
drop icmp $FRIEND $IN4
END
    recipe 'Only my country may reach SSH, and nothing else changes' <<END
pass tcp $FRIEND $IN4 1 22
drop tcp $MEMBER $IN4 1 22
drop tcp $MEMBER $IN4 1 3389
pass tcp $MEMBER $IN4 1 443
pass tcp $MEMBER $IN4 22 40000
END
    recipe "A blocklist that does not cut this host's own connections" <<END
drop udp $MEMBER $IN4 1 2
drop udp $STRANGER $IN4 1 2
pass udp 203.0.113.130 $IN4 1 2
END
    sieve --json status "$IN_IF" | jq -e '.interfaces[0].replies == "pass"' >/dev/null ||
        fail "$(sieve --json status "$IN_IF")"
    recipe "A blocklist for one port, such as a mail server's" <<END
drop tcp $MEMBER $IN4 1 25
drop tcp 203.0.113.64 $IN4 1 587
pass tcp $MEMBER $IN4 1 443
pass udp $MEMBER $IN4 1 25
pass tcp $STRANGER $IN4 1 25
END
    recipe 'Suspects may send, but not much' <<END
pass udp $STRANGER $IN4 1 2
END
    sieve status "$IN_IF" | grep -q 'limit=1000/2000' || fail "$(sieve status "$IN_IF")"
    recipe 'A router' <<END
pass udp $FRIEND $IN4 1 2
drop udp $MEMBER $IN4 1 2
END
    recipe 'Nothing leaves for control servers' --sender-drops --from "$IN/$IN_IF" --to "$OUT/$OUT_IF" <<END
drop udp $IN4 $STRANGER 1 2
pass udp $IN4 $FRIEND 1 2
END
    never_matched
}

# Packets come between the load and the question.
never_matched() {
    local page=$ROOT/docs/recipes.md recipe='Which entries of a list never matched'
    printf '%s\n' "$MEMBER" "$STRANGER" >addresses.txt
    sieve unload "$IN_IF" >/dev/null 2>&1 || true
    run_commands "$page" "$recipe" '1!d'
    verdicts <<<"drop udp $MEMBER $IN4 1 2"
    run_commands "$page" "$recipe" 1d
    [ "$(cat dead.txt)/$(cat alive.txt)" = "$STRANGER/$MEMBER" ] || fail "$(cat dead.txt)/$(cat alive.txt)"
    verdicts <<END
drop udp $MEMBER $IN4 1 2
pass udp $STRANGER $IN4 1 2
END
}

ktap_run \
    "README.md" readme \
    "docs/start.md" start_page \
    "docs/sets.md" sets_page \
    "docs/sizing.md" sizing_page \
    "docs/replies.md" replies_page \
    "docs/questions.md" questions_page \
    "docs/countries.md" countries_page \
    "docs/recipes.md" recipes
