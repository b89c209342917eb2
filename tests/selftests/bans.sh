#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Bans: from `xdp-sieve ban` to the verdict of a packet, with the daemon and without it, over reloads, restarts and
# kills. docs/bans.md has the recipes that are tried here.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# shellcheck source=service.sh
. "$here/service.sh"
needs_daemon
A=203.0.113.1 B=203.0.113.2 C=198.51.100.9 RANGE=192.0.2.0/24 OF_RANGE=192.0.2.77

# with_bans [SETS [SERVICE]]: a fresh state, and a configuration with these sets of bans.
with_bans() {
    local set
    rm -rf "$STATE"
    {
        printf '[service]\nstate-directory = "%s"\n%s\n' "$STATE" "${2-}"
        printf '[[interface]]\nname = "%s"\nsets = [%s]\n' "$IN_IF" \
            "$(for set in ${1-banned}; do printf '"%s", ' "$set"; done)"
        for set in ${1-banned}; do printf '[set.%s]\nsources = ["bans"]\n' "$set"; done
    } >"$CONFIG"
    service_manager
}
ban() { sieve ban --config "$CONFIG" "$@"; }
unban() { sieve unban --config "$CONFIG" "$@"; }
banned() { sieve banned --config "$CONFIG" "$@"; }
addresses() { banned --json | jq -r '.[].address'; }

# judged VERDICT ADDRESS...: at this moment.
judged() {
    local verdict=$1 address
    shift
    verdicts < <(for address in "$@"; do echo "$verdict udp $address $IN4 1 2"; done) ||
        fail "expected $verdict: $*"
}
# Whoever expects a packet waits for it, so they are expected to be dropped.
judges() {
    local found=pass
    if verdicts <<<"drop udp $2 $IN4 1 2" >/dev/null; then found=drop; fi
    [ "$found" = "$1" ] || { echo "$2: $found" >"$WORK/awaited" && return 1; }
}

# What the command says is in force is in force when it answers.
a_ban_is_in_force() {
    with_bans
    start
    judged pass "$A" "$B" "$C" "$OF_RANGE"
    ban "$A" | grep -q "^set banned: $A is banned, in force$" || fail "says something else"
    judged drop "$A"
    judged pass "$B" "$C" "$OF_RANGE"
    ban --for 4h --reason "why not" "$B" "$RANGE" | grep -q "^set banned: 2 addresses and prefixes banned, in force$" ||
        fail "says something else"
    judged drop "$A" "$B" "$OF_RANGE"
    judged pass "$C"
    banned --json | jq -e --arg now "$(date +%s)" '[.[].address] == ["192.0.2.0/24", "203.0.113.1", "203.0.113.2"]
        and .[0].set == "banned" and .[0].reason == "why not" and .[1].until == null and .[1].reason == ""
        and (.[2].until - .[2].since == 14400) and (.[2].since - ($now | tonumber) | fabs) < 60' >/dev/null ||
        fail "$(banned --json)"
    banned | grep -Eq "^203\.0\.113\.2 +[34]h +20..-..-.. ..:..:..  why not$" || fail "$(banned)"
    unban "$A" | grep -q "^set banned: 1 address or prefix unbanned, in force$" || fail "says something else"
    judged pass "$A" "$C"
    judged drop "$B" "$OF_RANGE"
    unban "$RANGE" >/dev/null
    judged pass "$OF_RANGE"
    judged drop "$B"
    refused 1 unban "$A"
    refused 1 unban "$RANGE"
    unban --all | grep -q "1 address or prefix unbanned" || fail "not all"
    judged pass "$A" "$B" "$C" "$OF_RANGE"
    [ -z "$(banned)" ] || fail "$(banned)"
    ban --json "$C" >"$WORK/out"
    jq -e '.in_force and .banned == 1 and .set == "banned" and .why_not == null' "$WORK/out" >/dev/null ||
        fail "$(cat "$WORK/out")"
    judged drop "$C"
    stop
}

# Ends are kept without anybody asking, and a later ban of the same address moves its end.
a_ban_ends() {
    local began
    with_bans
    start
    began=$(date +%s%N)
    ban -q --for 2s "$A" "$RANGE"
    ban -q --for 2s "$B"
    ban -q --for 1h "$B"
    ban -q "$C"
    ban -q --for 2s "$C"
    [ $(($(date +%s%N) - began)) -gt 1500000000 ] || judged drop "$A" "$B" "$C" "$OF_RANGE"
    await judges pass "$A"
    [ $(($(date +%s%N) - began)) -ge 2000000000 ] || fail "ended too soon"
    await judges pass "$C"
    await judges pass "$OF_RANGE"
    judged drop "$B"
    [ "$(addresses)" = "$B" ] || fail "banned: $(banned)"
    stop
}

# What a change on probation took off comes back with the bans that came and went meanwhile.
on_probation() {
    with_bans
    start
    ban -q "$A"
    echo 203.0.113.99 >"$WORK/other.txt"
    sieve -q load "$IN_IF" "other=$WORK/other.txt" --force --confirm 600
    ban -q "$B"
    unban -q "$A"
    ban -q "$RANGE" & # it waits
    says 'set banned-ranges: .* is on probation'
    judged pass "$B" "$OF_RANGE"
    sieve -q confirm "$IN_IF" --take-back
    judged drop "$B"
    judged pass "$A"
    await judges drop "$OF_RANGE"
    wait "$!"
    stop
}

bans_stay() {
    with_bans
    start
    ban -q "$A" "$RANGE"
    ban -q --for 1h "$B"
    kill -HUP "$daemon"
    says "the configuration was read anew"
    await_line "$WORK/notified" '^READY=1'
    judged drop "$A" "$B" "$OF_RANGE"
    ban -q "$C"
    await judges drop "$C"
    stop
    judged drop "$A" "$B" "$C" "$OF_RANGE"
    start
    judged drop "$A" "$B" "$C" "$OF_RANGE"
    stop KILL 137
    reset_interfaces # as after a reboot
    judged pass "$A"
    start
    await judges drop "$OF_RANGE"
    await judges drop "$C"
    judged drop "$A" "$B"
    stop
    # Whatever becomes of all else that is remembered.
    rm -rf "$STATE/sets"
    reset_interfaces
    start
    await judges drop "$OF_RANGE"
    judged drop "$A" "$B" "$C"
    unban -q --all
    judged pass "$A" "$B" "$C" "$OF_RANGE"
    stop
}

# The commands write the ledger, and the daemon takes it over: at its start, and while it runs.
without_the_daemon() {
    with_bans
    ban "$A" "$RANGE" >"$WORK/out"
    grep -q "^set banned: 2 .* banned; kept, not in force: xdp-sieved does not run here" "$WORK/out" ||
        fail "$(cat "$WORK/out")"
    [ "$(addresses)" = "$(printf '%s\n' "$RANGE" "$A")" ] || fail "$(banned)"
    refused 1 unban "$B"
    start
    judged drop "$A"
    await judges drop "$OF_RANGE"
    # A command that does not find the daemon, such as one of another network namespace.
    inside "$OUT" "$SIEVE" -q ban --config "$CONFIG" "$B"
    await judges drop "$B"
    inside "$OUT" "$SIEVE" -q unban --config "$CONFIG" "$A"
    await judges pass "$A"
    stop
    unban -q --all
    start
    await judges pass "$OF_RANGE"
    judged pass "$A" "$B"
    stop
}

# Its members are dropped all the time.
another_name() {
    with_bans
    start
    ban -q "$B"
    unban -q "$B"
    cp -p "$STATE/bans/banned" "$STATE/bans/blocked" # a set of that name had bans, once
    ban "$A" "$RANGE" >/dev/null
    sed -i 's/banned/blocked/' "$CONFIG"
    kill -HUP "$daemon"
    await judges_by blocked
    judged drop "$A" "$OF_RANGE"
    judged pass "$B"
    unban "$A" | grep -q "^set blocked: " || fail "it has other bans"
    judged pass "$A"
    ban "$B" >/dev/null
    stop
    # What came after the image is in force without the daemon, too.
    sed -i 's/blocked/banned/' "$CONFIG"
    sieve apply "$CONFIG" >/dev/null 2>&1
    judges_by banned
    judged drop "$B" "$OF_RANGE"
    sieve unload "$IN_IF"
    sieve apply "$CONFIG" >/dev/null 2>&1
    judged drop "$B" "$OF_RANGE"
    judged pass "$A"
    sieve unload "$IN_IF"
    # Where nothing is kept, --diff shows what comes, too.
    rm -rf "$STATE"
    sieve -q apply --diff "$CONFIG" | grep -q '+ set banned' || fail "the set does not come"
    sieve -q apply "$CONFIG"
    judges_by banned
    sieve unload "$IN_IF"
}
judges_by() {
    sieve --json status "$IN_IF" | jq -e --arg set "$1" 'any(.interfaces[].sets[]; .name == $set)' >"$WORK/awaited"
}

of_two_sets() {
    with_bans "banned guests"
    start
    refused 2 ban "$A"
    refused 2 ban --set bad "$A"
    refused 2 banned --set bad
    ban -q --set guests "$A" "$B"
    ban -q --set banned "$A"
    judged drop "$A" "$B"
    unban -q --set guests --all
    judged drop "$A"
    judged pass "$B"
    ban -q --set guests "$C"
    banned | grep -Eq "^$C .* guests  $" || fail "$(banned)"
    [ "$(banned --set guests | wc -l)" = 1 ] || fail "$(banned --set guests)"
    stop
}

a_stream() {
    with_bans
    start
    printf '%s\n' "create f2b hash:ip timeout 60" "add f2b $A timeout 0 comment \"sshd\"" "add f2b $B timeout 3600" \
        "# and" "$C" | ban --stdin | grep -q "^set banned: 3 addresses and prefixes banned, in force$" ||
        fail "says something else"
    judged drop "$A" "$B" "$C"
    banned --json | jq -e '[.[] | .reason, .until != null] == ["", false, "sshd", false, "", true]' >/dev/null ||
        fail "$(banned --json)"
    # All of it, or nothing.
    printf '%s\n' flush 192.0.2.1 x 192.0.2.2 >"$WORK/wrong"
    refused 3 ban --stdin <"$WORK/wrong"
    judged drop "$A" "$B" "$C"
    judged pass 192.0.2.1
    printf 'flush\nadd 192.0.2.1\ndel %s\n' "$A" | ban --stdin --for 1h --reason "a list" >/dev/null
    judged pass "$A" "$B" "$C"
    judged drop 192.0.2.1
    [ "$(banned --json | jq -c '[.[] | [.address, .reason, .until - .since]]')" = '[["192.0.2.1","a list",3600]]' ] ||
        fail "$(banned --json)"
    ban --stdin </dev/null || fail "nothing is not nothing"
    stop
}

# What was answered is kept, whenever the daemon is killed.
killed_in_the_middle() {
    local address answered
    with_bans
    start
    python3 -c 'for i in range(10000): print(f"10.77.{i >> 8}.{i & 255}")' >"$WORK/all"
    : >"$WORK/answered"
    (
        # In single bans and in streams. A command that the killed daemon does not answer has no success.
        split -l 100 -d -a 3 "$WORK/all" "$WORK/part."
        for part in "$WORK"/part.*; do
            if ban -q --stdin <"$part" 2>/dev/null; then cat "$part" >>"$WORK/answered"; fi
            address=10.78.0.$((10#${part##*.}))
            if ban -q "$address" 2>/dev/null; then echo "$address" >>"$WORK/answered"; fi
        done
    ) &
    local giver=$!
    await more_than 1500
    stop KILL 137
    reset_interfaces
    await more_than 3000
    start
    await more_than 6000
    stop KILL 137
    start
    wait "$giver"
    answered=$(wc -l <"$WORK/answered")
    [ "$answered" -gt 9000 ] || fail "only $answered answered"
    LC_ALL=C sort -u "$WORK/answered" >"$WORK/sorted"
    addresses | LC_ALL=C sort >"$WORK/kept"
    [ -z "$(comm -23 "$WORK/sorted" "$WORK/kept")" ] || fail "lost: $(comm -23 "$WORK/sorted" "$WORK/kept" | head -n 3)"
    await all_dropped
    echo "$answered bans were answered, $(wc -l <"$WORK/kept") are kept"
    stop
}
more_than() { [ "$(wc -l <"$WORK/answered")" -gt "$1" ]; }
all_dropped() { verdicts < <(sed "s/.*/drop udp & $IN4 1 2/" "$WORK/sorted") >"$WORK/awaited"; }

# Own addresses, gateways, and what the operator protects.
what_the_host_lives_by() {
    with_bans
    sed -i 's/^\[set.banned\]/&\nguards.protect = ["198.51.100.0\/24"]/' "$CONFIG"
    start
    for address in "$IN4" "${IN4%.*}.0/24"; do
        refused 3 ban "$A" "$address"
    done
    refused 3 ban "$C"
    refused 3 ban 2000::/3
    [ -z "$(banned)" ] || fail "$(banned)"
    judged pass "$A"
    stop
    refused 3 ban "$C"
}

wrong_values() {
    local before
    with_bans
    before=$(find "$STATE" -path '*bans*' 2>/dev/null || true)
    for running in no yes; do
        [ "$running" = no ] || start
        refused 3 ban 203.0.113.256
        refused 3 ban name.example
        refused 3 ban 203.0.113.0/33
        refused 3 ban ::/0
        refused 3 ban ""
        refused 2 ban
        refused 2 ban --stdin "$A"
        refused 2 ban --for 5x "$A"
        refused 2 ban --for 0s "$A"
        refused 2 ban --for=-1h "$A"
        refused 2 ban --reason "$(printf '%0300d' 0)" "$A"
        refused 2 ban --reason $'a\nb' "$A"
        refused 2 unban
        refused 2 unban --all "$A"
        refused 3 unban x
        refused 2 ban --set x "$A"
        [ -z "$(banned)" ] || fail "$(banned)"
    done
    judged pass "$A"
    stop
    refused 3 sieve ban --config "$WORK/nowhere.toml" "$A"
    configure
    refused 2 ban "$A"
    printf '[[interface]]\nname = "x"\nsets = ["b"]\n[set.b]\nsources = ["bans", "bans"]\n' >"$CONFIG"
    refused 3 sieve apply --check "$CONFIG"
    # The lists beside a stream are checked, too.
    echo "$A" >"$WORK/list"
    printf '[[interface]]\nname = "x"\nsets = ["b"]\n[set.b]\nsources = ["bans", "%s"]\n' "$WORK/list" >"$CONFIG"
    sieve apply --check "$CONFIG" | grep -qFx "  set b: 1 entry" || fail "the list was not read"
    echo nonsense >"$WORK/list"
    refused 3 sieve -q apply --check "$CONFIG"
    echo 'verify = true' >>"$CONFIG"
    refused 3 sieve apply --check "$CONFIG"
}

# A set with three sources. An address is in force as long as one of them has it, and none waits for another.
beside_lists() {
    with_bans
    mkdir -p "$LISTS"
    echo "$A" >"$LISTS/file"
    printf '%s\n%s\n' "$C" "$RANGE" >"$LISTS/web"
    : >"$LISTS/web.hangs"
    inside "$IN" "$here/list_server.py" 127.0.0.1 8080 "$LISTS" >"$WORK/served" &
    await_line "$WORK/served" '^listens'
    sed -i "s|\"bans\"|\"bans\", \"$LISTS/file\", { url = \"http://127.0.0.1:8080/web\", timeout = \"60s\" }|" "$CONFIG"
    start
    await_line "$WORK/served" '^web$'
    ban "$B" | grep -q "is banned, in force$" || fail "waits for the server"
    judged drop "$B"
    judged pass "$A" "$C" "$OF_RANGE"
    rm "$LISTS/web.hangs"
    await judges drop "$OF_RANGE"
    judged drop "$A" "$B" "$C"
    ban -q "$A" "$RANGE"
    unban -q "$RANGE" "$B"
    judged drop "$A" "$C" "$OF_RANGE"
    judged pass "$B"
    [ "$(addresses)" = "$A" ] || fail "banned: $(banned)"
    refused 1 unban "$C" # a list has it, and no ban
    printf '203.0.113.77\n' >"$LISTS/new"
    mv "$LISTS/new" "$LISTS/file"
    await judges drop 203.0.113.77
    judged drop "$A" # it is banned
    unban -q "$A"
    judged pass "$A"
    judged drop "$C" "$OF_RANGE"
    # A list that cannot be had stays, also when the daemon dies, and the file and bans go on.
    rm "$LISTS/web"
    echo 203.0.113.78 >>"$LISTS/file"
    says 'set banned: http://127.0.0.1:8080/web: .*404.*; a list with 3 entries is in force: what its other'
    judged drop "$C" "$OF_RANGE" 203.0.113.78
    stop KILL 137
    start
    ban -q "$B"
    judged drop "$B" "$C" "$OF_RANGE" 203.0.113.77 203.0.113.78
    echo 203.0.113.77 >"$LISTS/file"
    await judges pass 203.0.113.78
    judged drop "$B" "$C" "$OF_RANGE" 203.0.113.77
    unban -q "$B"
    judged pass "$A" "$B"
    stop
}

# The configuration takes the bans from a set whose list cannot be had now: what is in force stays, also its prefixes.
without_bans() {
    with_bans
    mkdir -p "$LISTS"
    printf '%s\n%s\n' "$A" "$RANGE" >"$LISTS/web"
    inside "$IN" "$here/list_server.py" 127.0.0.1 8080 "$LISTS" >"$WORK/served" &
    await_line "$WORK/served" '^listens'
    sed -i 's|"bans"|"bans", { url = "http://127.0.0.1:8080/web", timeout = "60s" }|' "$CONFIG"
    start
    await judges drop "$OF_RANGE"
    ban -q "$B"
    : >"$LISTS/web.hangs"
    sed -i 's/"bans", //' "$CONFIG"
    read_anew
    judged drop "$A" "$B" "$OF_RANGE"
    judged pass "$C"
    kill -KILL "$daemon"
    wait "$daemon" || true
    start
    judged drop "$A" "$B" "$OF_RANGE"
    rm "$LISTS/web.hangs"
    await judges pass "$B" # nobody bans any more
    judged drop "$A" "$OF_RANGE"
    [ "$(sieve --json status "$IN_IF" | jq -c '[.interfaces[].sets[].name]')" = '["banned"]' ] || fail "$(sieve status)"
    stop
}
# read_anew: returns when what is remembered is in force as the configuration says.
read_anew() {
    : >"$WORK/notified"
    kill -HUP "$daemon"
    await_line "$WORK/notified" '^READY=1'
    if grep 'nothing is in force' "$WORK/notified"; then fail "which is not so"; fi
}

# A list that cannot be read keeps no ban out: beside bans that get another name at once, and of a new set.
beside_missing_lists() {
    with_bans
    start
    ban -q "$A" "$RANGE"
    sed -i "s|banned|blocked|; s|\"bans\"|\"bans\", \"$WORK/nowhere\"|" "$CONFIG"
    read_anew
    judged drop "$A" "$OF_RANGE"
    [ "$(addresses)" = "$(printf '%s\n' "$RANGE" "$A")" ] || fail "$(banned)"
    sed -i 's/sets = \[/&"guests", /' "$CONFIG"
    printf '[set.guests]\nsources = ["bans", "%s"]\n' "$WORK/nowhere" >>"$CONFIG"
    read_anew
    ban --set guests "$B" | grep -q "is banned, in force$" || fail "waits for the list"
    judged drop "$A" "$B" "$OF_RANGE"
    stop
}

# The kernel makes a file system read-only that has errors. What it has is in force all the same.
a_read_only_disk() {
    with_bans
    mkdir -p "$STATE"
    mount -t tmpfs -o size=8m,mode=700 none "$STATE"
    start
    ban -q "$A" "$RANGE"
    stop
    ban -q "$B"
    mount -o remount,ro "$STATE"
    reset_interfaces # as after a reboot
    start
    await judges drop "$OF_RANGE"
    await judges drop "$B" # of no journal
    judged drop "$A"
    judged pass "$C"
    [ "$(addresses)" = "$(printf '%s\n' "$RANGE" "$A" "$B")" ] || fail "$(banned)"
    refused 4 ban "$C"
    judged pass "$C"
    judged drop "$A" "$B" "$OF_RANGE"
    mount -o remount,rw "$STATE"
    ban "$C" | grep -q "is banned, in force$" || fail "it is writable again"
    judged drop "$C"
    stop
    rm -r "$(sed -n 's/.* is kept in memory, in \([^,]*\),.*/\1/p' "$WORK/said" | tail -n 1)"
    umount "$STATE"
}

# A damaged ledger loses nothing that is in force, and is never written over.
a_damaged_ledger() {
    local ledger=$STATE/bans/banned
    with_bans
    start
    ban -q "$A"
    ban -q "$B"
    ban -q "$C"
    printf '\377' | dd of="$ledger" bs=1 seek=60 conv=notrunc status=none
    cp "$ledger" "$WORK/ledger"
    kill -HUP "$daemon"
    says "warning: set banned: .*record 0 is damaged, and valid ones follow it; the list with 3 entries stays in force"
    judged drop "$A" "$B" "$C"
    refused 4 ban 192.0.2.1
    refused 4 banned
    stop
    refused 4 ban 192.0.2.1
    start
    judged drop "$A" "$B" "$C"
    cmp "$ledger" "$WORK/ledger" || fail "it was written"
    rm "$ledger"
    await judges pass "$A"
    ban -q "$A"
    judged drop "$A"
    judged pass "$B"
    # Also where it is the last one.
    ban -q --stdin <<<"$B"$'\n'"$C"
    stop
    cp "$ledger" "$WORK/sound"
    printf '\377' | dd of="$ledger" bs=1 seek="$(($(stat -c %s "$ledger") - 60))" conv=notrunc status=none
    cp "$ledger" "$WORK/ledger"
    start
    says "warning: set banned: .*record 1 is damaged; the list with 3 entries stays in force"
    await_line "$WORK/notified" '^STATUS=.*set banned: .*/bans/banned: record 1 is damaged'
    judged drop "$A" "$B" "$C"
    refused 4 ban 192.0.2.1
    refused 4 banned
    cmp "$ledger" "$WORK/ledger" || fail "it was written"
    stop
    mv "$STATE/bans" "$STATE/away"
    : >"$STATE/bans"
    start
    says "warning: set banned: .*bans/banned: cannot be read: Not a directory; the list with 3 entries stays in force"
    judged drop "$A" "$B" "$C"
    refused 4 banned
    stop
    rm "$STATE/bans"
    mv "$STATE/away" "$STATE/bans"
    cp "$WORK/sound" "$ledger"
    start
    unban -q "$B" "$C"
    judged drop "$A"
    judged pass "$B" "$C"
    # A record that was cut off was never answered.
    stop
    cp "$ledger" "$WORK/ledger"
    ban -q "$B"
    truncate -s -8 "$ledger"
    start
    judged drop "$A"
    judged pass "$B"
    ban -q "$C"
    [ "$(addresses)" = "$(printf '%s\n' "$C" "$A")" ] || fail "$(banned)"
    stop
}

a_full_disk() {
    local filled=0
    with_bans
    mkdir -p "$STATE"
    mount -t tmpfs -o size=24m,mode=700 none "$STATE" || skip "no tmpfs"
    start
    ban -q "$A"
    dd if=/dev/zero of="$STATE/filler" bs=4k status=none 2>/dev/null || filled=1
    [ "$filled" = 1 ] || fail "not full"
    # More than the last block of the ledger takes.
    python3 -c 'for i in range(1000): print(f"10.77.{i >> 8}.{i & 255}")' >"$WORK/many"
    refused 4 ban --stdin <"$WORK/many"
    [ "$(addresses)" = "$A" ] || fail "$(banned | head -n 3)"
    judged drop "$A"
    judged pass 10.77.0.1
    rm "$STATE/filler"
    ban -q --stdin <"$WORK/many"
    judged drop "$A" 10.77.0.1 10.77.3.231
    stop
    umount "$STATE"
}

# The command writes the ledger itself where no daemon runs.
a_full_disk_without_the_daemon() {
    local before
    with_bans
    mkdir -p "$STATE"
    mount -t tmpfs -o size=24m,mode=700 none "$STATE" || skip "no tmpfs"
    start
    ban -q "$A"
    stop
    dd if=/dev/zero of="$STATE/filler" bs=4k status=none 2>/dev/null && fail "not full"
    before=$(sha256sum <"$STATE/bans/banned")
    python3 -c 'for i in range(1000): print(f"10.77.{i >> 8}.{i & 255}")' >"$WORK/many"
    refused 4 ban --stdin <"$WORK/many"
    # One by one, until the last block is full, too.
    while ban -q --reason "$(printf '%0255d' 0)" "$B" 2>"$WORK/err"; do before=$(sha256sum <"$STATE/bans/banned"); done
    grep -q "bans/banned: cannot be written: No space left on device" "$WORK/err" || fail "$(cat "$WORK/err")"
    [ "$(sha256sum <"$STATE/bans/banned")" = "$before" ] || fail "the ledger has changed"
    [ "$(addresses)" = "$(printf '%s\n' "$A" "$B")" ] || fail "$(banned | head -n 3)"
    refused 4 unban --all
    rm "$STATE/filler"
    ban -q --stdin <"$WORK/many"
    unban -q "$B"
    [ "$(addresses | wc -l)" = 1001 ] || fail "$(banned | head -n 3)"
    start
    await judges drop 10.77.3.231
    judged drop "$A" 10.77.0.1
    judged pass "$B"
    stop
    umount "$STATE"
}

# Root, the group, and nobody else.
who_may_ban() {
    local socket
    getent group nogroup >/dev/null && getent passwd daemon >/dev/null || skip "neither nogroup nor daemon"
    with_bans banned
    start
    socket=/run/xdp-sieve-bans/net-$(stat -Lc %i "/run/netns/$IN")
    [ "$(stat -c '%a %U %G' "$socket")" = "600 root root" ] || fail "$(stat "$socket")"
    refused_with 4 'expected root or a member of the group' as daemon daemon ban "$A"
    stop
    with_bans banned 'ban-group = "nogroup"'
    start
    [ "$(stat -c '%a %U %G' "$socket")" = "660 root nogroup" ] || fail "$(stat "$socket")"
    refused_with 4 'expected root or a member of the group' as daemon daemon ban "$A"
    as daemon nogroup ban "$A" | grep -q "in force" || fail "a member may not"
    as daemon nogroup banned | grep -q "^$A " || fail "a member may not"
    judged drop "$A"
    # Whatever the mode of the socket says.
    chmod 666 "$socket"
    refused 4 as daemon daemon ban "$B"
    stop
    with_bans banned 'ban-group = "there-is-none"'
    start
    says 'warning: bans: there is no group there-is-none, so only root may ban'
    ban -q "$A"
    judged drop "$A"
    stop
}

# A member who never ends its questions takes nothing from root, and no time from a reload or the daemon's end.
slow_members() {
    local member
    getent group nogroup >/dev/null && getent passwd daemon >/dev/null || skip "neither nogroup nor daemon"
    with_bans banned 'ban-group = "nogroup"'
    start
    slow_member
    timeout 20 nsenter --net="/run/netns/$IN" "$SIEVE" -q ban "$A" || fail "root has to wait for a member"
    judged drop "$A"
    sed -i '/^ban-group/d' "$CONFIG"
    : >"$WORK/notified"
    kill -HUP "$daemon"
    await_line "$WORK/notified" '^READY=1'
    await_line "$WORK/slow" '^all closed'
    wait "$member" || fail "$(cat "$WORK/slow")"
    stop
    with_bans banned 'ban-group = "nogroup"'
    start
    slow_member
    stop
    wait "$member" || fail "$(cat "$WORK/slow")"
}

# Makes more connections than there are places, and says a byte in each now and then, until the daemon closes them.
slow_member() {
    rm -f "$WORK/slow"
    python3 - "/run/xdp-sieve-bans/net-$(stat -Lc %i "/run/netns/$IN")" >"$WORK/slow" 2>&1 <<'END' &
import grp, os, pwd, socket, sys, time
os.setgroups([])
os.setgid(grp.getgrnam("nogroup").gr_gid)
os.setuid(pwd.getpwnam("daemon").pw_uid)
left = []
for _ in range(18):
    one = socket.socket(socket.AF_UNIX)
    one.connect(sys.argv[1])
    left.append(one)
print("connected", flush=True)
while left:
    for one in list(left):
        try:
            one.send(b"x")
        except OSError:
            left.remove(one)
    time.sleep(0.2)
print("all closed", flush=True)
END
    member=$!
    await_line "$WORK/slow" '^connected'
}

# as USER GROUP COMMAND...: our program, from a place where others may run it.
as() {
    local user=$1 group=$2
    shift 2
    inside "$IN" setpriv --reuid "$user" --regid "$group" --clear-groups "$WORK/open/xdp-sieve" "$@"
}
open_program() {
    chmod 711 "$WORK"
    mkdir -p "$WORK/open"
    cp "$SIEVE" "$WORK/open/xdp-sieve"
    chmod 755 "$WORK/open" "$WORK/open/xdp-sieve"
}
open_program

# recipe NAME: the code of docs/bans.md behind this name. What follows a log reads a file to its end.
recipe() {
    awk -v name="**$1**" 'code && !/^(    |$)/ { exit } index($0, name) == 1 { here = 1 }
        here && /^    / { code = 1; print substr($0, 5) }' "$here/../../docs/bans.md" | sed 's/^tail -F [^ ]*/cat/'
}
# with_recipe NAME: a program of that name that does what the recipe says. Who follows the page has ours in PATH.
with_recipe() {
    mkdir -p "$WORK/bin"
    printf '#!/bin/sh\nexec nsenter --net=/run/netns/%s %s "$@"\n' "$IN" "$SIEVE" >"$WORK/bin/xdp-sieve"
    chmod 755 "$WORK/bin/xdp-sieve"
    recipe "$1" >"$WORK/bin/$1"
    [ -s "$WORK/bin/$1" ] || fail "docs/bans.md has no recipe $1"
}
follow() { PATH=$WORK/bin:$PATH sh "$WORK/bin/$1"; }
# reason ADDRESS REASON SECONDS|null: why it is banned, and for how long.
reason() {
    banned --json | jq -e --arg a "$1" --arg why "$2" --argjson long "$3" '.[] | select(.address == $a) |
        .reason == $why and (if .until then .until - .since else null end) == $long' >/dev/null || fail "$(banned)"
}

recipe_of_sshguard() {
    with_bans
    start
    with_recipe sshguard
    ban -q --reason "by hand" 203.0.113.9
    printf '%s\n' "block $A 4 32" "block ${RANGE%/*} 4 24" | follow sshguard
    judged drop "$A" "$OF_RANGE" 203.0.113.9
    echo "release $A 4 32" | follow sshguard
    judged pass "$A"
    echo flushonexit | follow sshguard
    judged pass "$OF_RANGE"
    judged drop 203.0.113.9
    stop
}

recipes_of_logs() {
    with_bans
    start
    with_recipe Suricata
    with_recipe Zeek
    printf '{"event_type":"%s","src_ip":"%s","alert":{"severity":%s}}\n' alert "$A" 1 alert "$B" 3 flow "$C" 1 |
        follow Suricata
    judged drop "$A"
    judged pass "$B" "$C"
    reason "$A" suricata 86400
    follow Zeek <"$here/../data/zeek_notice.log"
    judged drop "$B"
    judged pass "$C"
    reason "$B" zeek 86400
    stop
}

# What `cscli decisions list --all -o json` of crowdsec 1.4.6 printed: an address, a range, and a captcha.
recipe_of_cscli() {
    with_bans
    start
    with_recipe cscli
    mv "$WORK/bin/cscli" "$WORK/bin/by-hand"
    printf '#!/bin/sh\ncat "%s"\n' "$here/../data/cscli_decisions.json" >"$WORK/bin/cscli"
    chmod 755 "$WORK/bin/cscli"
    follow by-hand
    judged drop "$A" "$OF_RANGE"
    judged pass "$B" "$C"
    reason "$A" crowdsec 14400
    stop
}

# follow_lines FIRST LAST: these lines of the section "Ban".
follow_lines() {
    awk '/^## / { here = $0 == "## Ban"; next } here && /^    xdp-sieve / { print substr($0, 5) }' \
        "$here/../../docs/bans.md" |
        sed -n "s,198.51.100.0/24,$RANGE,; $1,$2p" >"$WORK/bin/lines"
    follow lines
}

page_of_bans() {
    with_bans
    start
    with_recipe "Many at once"
    follow_lines 1 3 >"$WORK/out"
    judged drop 203.0.113.1 203.0.113.2 "$OF_RANGE"
    grep -Eq '^203\.0\.113\.2 +[34]h .* port scan$' "$WORK/out" || fail "$(cat "$WORK/out")"
    follow_lines 4 4
    judged pass 203.0.113.1
    judged drop 203.0.113.2
    follow_lines 5 5
    [ -z "$(banned)" ] || fail "$(banned)"
    # What `ipset save` prints, and a stream that begins anew.
    # shellcheck disable=SC2016 # for that script
    printf '#!/bin/sh\necho "create $2 hash:ip family inet"; echo "add $2 %s"\n' "$C" >"$WORK/bin/ipset"
    # The other machine is this one, without its bans.
    # shellcheck disable=SC2016 # for that script
    printf '#!/bin/sh\nshift; bans=$(cat); xdp-sieve -q unban --all; printf "%%s\\n" "$bans" | "$@"\n' >"$WORK/bin/ssh"
    chmod 755 "$WORK/bin/ipset" "$WORK/bin/ssh"
    sed -n 1p "$WORK/bin/Many at once" >"$WORK/bin/first"
    sed -n 2p "$WORK/bin/Many at once" >"$WORK/bin/second"
    follow first
    judged drop "$C"
    follow second
    judged pass "$C"
    reason 203.0.113.7 why 3600
    [ "$(addresses)" = 203.0.113.7 ] || fail "$(banned)"
    with_recipe "To another machine"
    follow "To another machine"
    judged drop 203.0.113.7
    reason 203.0.113.7 "from $(hostname)" null
    stop
}

# A real GoBGP has routes and loses them.
recipe_of_bgp() {
    local gobgp=${SIEVE_GOBGP:-/var/cache/xdp-sieve/gobgpd}/usr/bin server recipe
    [ -x "$gobgp/gobgpd" ] || skip "gobgpd is not here: scripts/install-deps.sh unpacks it"
    with_bans
    start
    with_recipe BGP
    printf '[global.config]\nas = 64512\nrouter-id = "192.0.2.254"\nport = -1\n' >"$WORK/gobgpd.toml"
    printf '#!/bin/sh\nexec nsenter --net=/run/netns/%s %s/gobgp "$@"\n' "$IN" "$gobgp" >"$WORK/bin/gobgp"
    chmod 755 "$WORK/bin/gobgp"
    nsenter --net="/run/netns/$IN" "$gobgp/gobgpd" -f "$WORK/gobgpd.toml" --api-hosts 127.0.0.1:50051 \
        >"$WORK/gobgpd.log" 2>&1 &
    server=$!
    await "$WORK/bin/gobgp" global >/dev/null
    ban -q --reason rtbh 203.0.113.9 # of a recipe that died
    "$WORK/bin/gobgp" global rib add "$A/32" community 65535:666
    "$WORK/bin/gobgp" global rib add "$B/32" community 64512:1
    follow BGP &
    recipe=$!
    await judges drop "$A"
    judged pass "$B" 203.0.113.9
    "$WORK/bin/gobgp" global rib add "$RANGE" community 64512:1,65535:666
    await judges drop "$OF_RANGE"
    reason "$RANGE" rtbh null
    "$WORK/bin/gobgp" global rib del "$A/32"
    await judges pass "$A"
    "$WORK/bin/gobgp" global rib add "$C/32" community 65535:666
    await judges drop "$C"
    "$WORK/bin/gobgp" global rib add "$C/32" # no longer a black hole
    await judges pass "$C"
    judged pass "$B"
    kill "$server"
    wait "$server" "$recipe" || true
    judged drop "$OF_RANGE"
    stop
}

ktap_run \
    "a ban is in force when the command answers, and so is its end" a_ban_is_in_force \
    "a ban ends by itself" a_ban_ends \
    "bans during a change on probation count when it is taken back" on_probation \
    "bans outlive reloads, restarts, kills and reboots" bans_stay \
    "without the daemon, commands keep bans for it" without_the_daemon \
    "a set that is renamed keeps its bans" another_name \
    "two sets have bans of their own" of_two_sets \
    "a stream is taken as a whole, or not at all" a_stream \
    "what was answered is kept when the daemon is killed in the middle" killed_in_the_middle \
    "what this host lives by is not banned" what_the_host_lives_by \
    "wrong values change nothing" wrong_values \
    "bans and lists in one set" beside_lists \
    "prefixes of a set that has no bans any more stay until its list is there" without_bans \
    "a list that is missing keeps no ban out" beside_missing_lists \
    "a damaged ledger loses nothing that is in force" a_damaged_ledger \
    "bans of a disk that is read-only are in force" a_read_only_disk \
    "a full disk is an error" a_full_disk \
    "a full disk is an error without the daemon" a_full_disk_without_the_daemon \
    "docs/bans.md: ban, many at once, to another machine" page_of_bans \
    "docs/bans.md: sshguard" recipe_of_sshguard \
    "docs/bans.md: Suricata and Zeek" recipes_of_logs \
    "docs/bans.md: cscli" recipe_of_cscli \
    "docs/bans.md: BGP" recipe_of_bgp \
    "root may ban, and the group, and nobody else" who_may_ban \
    "a slow member holds up neither root nor the daemon" slow_members
