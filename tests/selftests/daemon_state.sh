#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# xdp-sieved filters whatever is wrong with its state directory, and does so alone in its network namespace.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# shellcheck source=service.sh
. "$here/service.sh"
needs_daemon

# The folder in memory where the daemon keeps what the state directory cannot take.
spare() { cat "$WORK/spare"; }
says_spare() {
    says "warning: state directory $STATE: $1.* is kept in memory, in /run/xdp-sieve/spare-"
    sed -n 's/.* is kept in memory, in \([^,]*\),.*/\1/p' "$WORK/said" | tail -n 1 >"$WORK/spare"
}
forget_spare() { [ ! -s "$WORK/spare" ] || rm -rf "$(spare)"; }

fresh() {
    forget_spare
    fresh_lists "$@"
    service_manager
}

# Starts anew, where no program runs, with what the state directory has. The sources are there unless `without`.
start_anew() {
    reset_interfaces
    start
    says "^xdp-sieved: $IN_IF: attached"
    judged
    stop
}

# What a start finds that was cut off, or that another version has left, is set aside. The last good lists are not
# needed, since the sources are there.
unusable() {
    local damage number
    fresh
    start
    says 'set bad: a new list with 2 entries'
    stop
    for damage in 'rm version' 'echo xdp-sieve state 99 >version' ': >version' 'rm version && mkdir version' \
        'rm version hooks.json' 'rm -r version sets'; do
        (cd "$STATE" && eval "$damage")
        start_anew
        [ "$(cat "$STATE/version")" = "xdp-sieve state 2" ] || fail "$damage: no version"
        [ -f "$STATE/sets/bad/record.json" ] || fail "$damage: nothing is kept"
        if [ "$damage" != 'rm -r version sets' ]; then
            says "state directory $STATE .*; what it had is in $STATE/set-aside.[0-9]* now"
        fi
    done
    # Not more than a few, the newest ones.
    number=$(find "$STATE" -maxdepth 1 -name 'set-aside.*' | wc -l)
    [ "$number" = 3 ] || fail "$number are set aside"
    [ ! -e "$STATE/set-aside.1" ] || fail "the oldest is still there"
    # A kill at the first moment leaves a folder, a lock, or a folder for the sets.
    for damage in 'mkdir state' 'mkdir state && : >state/lock' 'mkdir -p state/sets'; do
        rm -rf "$STATE"
        (cd "$WORK" && umask 077 && eval "$damage")
        start_anew
        if grep -q 'set-aside' "$WORK/said"; then fail "$damage: nothing was there"; fi
    done
    # With it, a start needs no source.
    rm -r "$LISTS"
    start_anew
}

# What is not ours is left as it is.
foreign() {
    fresh
    mkdir -m 700 "$STATE"
    echo dear >"$STATE/mail"
    start_anew
    says_spare 'has mail, but no version of ours;'
    [ "$(ls -I counters.json "$STATE")" = mail ] || fail "$(ls "$STATE")"
    rm -rf "$STATE"
    mkdir -m 777 "$STATE"
    chmod 777 "$STATE"
    start_anew
    says_spare 'others may write to it'
    [ ! -e "$STATE/sets" ] || fail "$(ls "$STATE")"
    # With what is in memory, a start needs no source.
    rm -r "$LISTS"
    start_anew
    rm -rf "$STATE"
    forget_spare
}

# on_disk SIZE: from now on, the daemon has a disk of that size at the state directory, in its own mounts.
on_disk() {
    [ -d "$STATE" ] || mkdir -m 700 "$STATE"
    cat >"$WORK/sieved" <<END
#!/bin/sh
exec unshare --mount --propagation private sh -c \\
    'mount -t tmpfs -o mode=700,$1 tmpfs "$STATE" && exec "\$@"' sh $SIEVED "\$@"
END
    chmod +x "$WORK/sieved"
    SIEVED=$WORK/sieved
}
disk_is_now() { nsenter --mount="/proc/$daemon/ns/mnt" mount -o "remount,$1" "$STATE"; }
on_its_disk() { test -f "/proc/$daemon/root$STATE/$1"; }

# A disk that is full at the first start, and has room later.
full_disk() {
    fresh '' '' 'listen = "127.0.0.1:9273"'
    address_lists 20261125 long 4000
    cat "$WORK/long" >>"$LISTS/bad.txt"
    on_disk size=16k
    start
    says "^xdp-sieved: $IN_IF: attached"
    judged
    says_spare '.*No space left on device'
    await_line "$WORK/notified" "STATUS=.*the state is kept in memory only"
    [ "$(metric xdp_sieve_state_kept)" = 0 ] || fail "$(metric xdp_sieve_state_kept)"
    # A list that changes comes into force.
    echo "$STRANGER" >>"$LISTS/bad.txt"
    says 'set bad: a new list with 4003 entries'
    verdicts <<<"drop udp $STRANGER $IN4 1 2"
    # A new interface gets its program.
    ip -n "$IN" link del "$IN_IF"
    says_anew "^xdp-sieved: $IN_IF: attached" make_link
    verdicts <<<"drop udp $STRANGER $IN4 1 2"
    disk_is_now size=4m
    echo "$MEMBER" >"$LISTS/friends/b.txt"
    says "state directory $STATE: all state is kept on the disk again"
    on_its_disk sets/bad/record.json || fail "bad is not on the disk"
    on_its_disk sets/friends/record.json || fail "friends is not on the disk"
    [ "$(metric xdp_sieve_state_kept)" = 1 ] || fail "$(metric xdp_sieve_state_kept)"
    stop
    [ -z "$(ls "$(spare)/sets")" ] || fail "something is left in memory"
    forget_spare
}

# A disk that is full while a live set changes. Its journal is in use, so it moves with a new image, and the last record
# that is on the disk before is an old one.
full_disk_of_a_live_set() {
    local number disk entries
    fresh '' 'kind = "exact"'
    sed -i 's/^fpr.*//' "$CONFIG"
    printf '%s\n' "$MEMBER" 203.0.113.65 >"$LISTS/bad.txt"
    on_disk size=600k
    start
    await has_bad
    disk=/proc/$daemon/root$STATE
    await is_older_than_now "$disk" # of two records of one second, the one on the disk counts
    fill_disk
    address_lists 20261125 long 900
    { cat "$WORK/long" && echo "$STRANGER"; } >>"$LISTS/bad.txt"
    says_spare '.*'
    says 'set bad: 901 came and 0 went'
    judges_stranger
    rm "$disk/fill"
    kill -HUP "$daemon"
    says "state directory $STATE: all state is kept on the disk again"
    [ -z "$(ls "$(spare)/sets")" ] || fail "something is left in memory"
    on_its_disk sets/bad/record.json || fail "bad is not on the disk"
    [ "$(jq .keys "$disk/sets/bad/record.json")" = 903 ] || fail "an old record"
    await is_older_than_now "$disk"
    # One that has room and takes no image all the same, for want of inodes, is not tried at each cycle.
    fill_disk
    address_lists 20261126 more 900
    cat "$WORK/more" >>"$LISTS/bad.txt"
    head -n 5 "$WORK/more" >"$WORK/few"
    says 'set bad: 900 came and 0 went'
    disk_is_now "nr_inodes=$(($(stat --file-system --format=%c-%d "$disk")))"
    rm "$disk/fill"
    says_anew 'set bad: a new filter with 1803 entries' cp "$WORK/few" "$LISTS/friends/a.txt"
    number=$(grep -c 'set bad: a new filter' "$WORK/said")
    for entries in 4 3 2; do
        head -n "$entries" "$WORK/more" >"$LISTS/friends/a.txt"
        says "set friends: a new list with $entries entr.*before"
    done
    [ "$(grep -c 'set bad: a new filter' "$WORK/said")" = "$number" ] || fail "it is built again and again"
    [ -e "$(spare)/sets/bad/record.json" ] || fail "it is not in memory"
    stop
    forget_spare
}
is_older_than_now() { [ "$(jq .built_at "$1/sets/bad/record.json")" -lt "$(date +%s)" ]; }
fill_disk() {
    if dd if=/dev/zero of="/proc/$daemon/root$STATE/fill" bs=512 2>/dev/null; then fail "the disk has room"; fi
}
judges_stranger() { verdicts <<<"drop udp $STRANGER $IN4 1 2"; }

# A disk that fails: nothing can be written, and nothing be removed.
read_only() {
    fresh
    on_disk size=1m
    start
    says 'set bad: a new list with 2 entries'
    disk_is_now ro
    echo "$STRANGER" >>"$LISTS/bad.txt"
    says 'set bad: a new list with 3 entries'
    says_spare '.*Read-only file system'
    verdicts <<<"drop udp $STRANGER $IN4 1 2"
    disk_is_now rw
    kill -HUP "$daemon"
    says "state directory $STATE: all state is kept on the disk again"
    stop
    forget_spare
}

# Somebody removes the state directory under the daemon.
removed() {
    fresh
    start
    says 'set bad: a new list with 2 entries'
    rm -r "$STATE"
    ip -n "$IN" link del "$IN_IF"
    says_anew "^xdp-sieved: $IN_IF: attached" make_link
    says "state directory $STATE was removed while it was in use"
    judged
    await test -f "$STATE/sets/bad/record.json"
    await test -f "$STATE/sets/friends/record.json"
    rm "$STATE/version"
    echo "$MEMBER" >"$LISTS/friends/b.txt"
    says 'set friends: a new list with 2 entries'
    [ -f "$STATE/version" ] || fail "no version"
    rm "$LISTS/friends/b.txt"
    says 'set friends: a new list with 1 entry \(before: 2\)'
    stop
    rm -r "$LISTS"
    start_anew
}

# A live set whose image is damaged, or gone, gets a new one: a new interface has the others meanwhile, and then it.
has_bad() { [ -n "$(identity bad)" ]; }
no_image() {
    local damage
    fresh '' 'kind = "ddlcbf"'
    sed -i 's/^fpr.*//' "$CONFIG"
    printf '%s\n' "$MEMBER" 203.0.113.65 >"$LISTS/bad.txt"
    start
    says "^xdp-sieved: $IN_IF: attached" # with the others, if they are earlier
    await has_bad
    for damage in 'rm *.sieve' 'rm *.sieve *.list *.journal record.json' 'truncate -s 1000 *.sieve' \
        'echo x >record.json'; do
        (cd "$STATE/sets/bad" && eval "$damage")
        ip -n "$IN" link del "$IN_IF"
        says_anew "^xdp-sieved: $IN_IF: attached" make_link
        await has_bad
        judged
        [ "$(find "$STATE/sets/bad" -name '*.sieve' | wc -l)" = 1 ] || fail "$damage: no image"
    done
    echo "$STRANGER" >>"$LISTS/bad.txt"
    says 'set bad: 1 came and 0 went'
    verdicts <<<"drop udp $STRANGER $IN4 1 2"
    stop
}

# How long a lost list was is not known.
lost_journal() {
    fresh '' 'kind = "ddlcbf"'
    sed -i 's/^fpr.*//' "$CONFIG"
    printf '%s\n' "$MEMBER" 203.0.113.65 >"$LISTS/bad.txt"
    start
    await has_bad
    stop
    rm "$STATE"/sets/bad/*.journal "$LISTS/bad.txt"
    start
    says 'warning: set bad: .*bad.txt: cannot be read: .*; what is in force stays$'
    judged
    printf '%s\n' "$MEMBER" 203.0.113.65 >"$LISTS/bad.txt"
    says 'set bad: a new filter with 2 entries is in force'
    judged
    stop
}

# The note of who manages this host is removed, or in another /run.
alone() {
    local before
    fresh
    start
    says 'set bad: a new list with 2 entries'
    before=$(program_id)
    sed "s|^state-directory.*|state-directory = \"$WORK/state2\"|" "$CONFIG" >"$WORK/second.toml"
    rm "/run/xdp-sieve/net-$(stat -L -c %i "/run/netns/$IN").manager"
    varies+=(daemon)
    refused 4 inside "$IN" "$SIEVED" --config "$WORK/second.toml"
    refused 4 inside "$IN" unshare --mount --propagation private sh -c 'mount -t tmpfs tmpfs /run && exec "$@"' sh \
        "$SIEVED" --config "$WORK/second.toml"
    # The daemon writes the note again.
    echo "$MEMBER" >"$LISTS/friends/b.txt"
    says 'set friends: a new list with 2 entries'
    sieve status | grep -q "^managed by xdp-sieved [0-9.]*, process $daemon" || fail "$(sieve status)"
    [ "$(program_id)" = "$before" ] || fail "another program"
    stop KILL 137
    sed -i "s|^state-directory.*|state-directory = \"$WORK/state2\"|" "$CONFIG"
    start
    stop
}

# The configuration wants another mode than the one that runs, which cannot change while packets flow.
mode() {
    local before
    fresh 'mode = "skb"'
    start
    says "^xdp-sieved: $IN_IF: attached"
    before=$(program_id)
    configure 'mode = "native"'
    kill -HUP "$daemon"
    says "warning: $IN_IF: .*in skb mode, and native is configured; it goes on so"
    await_line "$WORK/notified" "STATUS=2 sets in force on $IN_IF; $IN_IF: .*in skb mode"
    echo "$STRANGER" >>"$LISTS/bad.txt"
    says 'set bad: a new list with 3 entries'
    verdicts <<<"drop udp $STRANGER $IN4 1 2"
    [ "$(program_id)" = "$before" ] || fail "another program"
    # What is attached anew is as it is configured.
    ip -n "$IN" link del "$IN_IF"
    says_anew "^xdp-sieved: $IN_IF: attached" make_link
    [ "$(sieve --json status "$IN_IF" | jq -r '.interfaces[0].mode')" = native ] || fail "$(sieve status)"
    stop
}

ktap_run \
    "a state that is incomplete, or of another version" unusable \
    "a folder that is not ours, or not ours alone" foreign \
    "a full disk" full_disk \
    "a full disk, and a live set" full_disk_of_a_live_set \
    "a disk that turns read-only" read_only \
    "a state that is removed while it is in use" removed \
    "a live set without an image" no_image \
    "a live set without its journal" lost_journal \
    "a daemon is alone" alone \
    "another mode" mode
