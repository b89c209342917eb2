#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# The installed unit under a real systemd, the first process of a Debian with namespaces of its own: Type=notify,
# reload, watchdog, restart, an upgrade while packets come, the journal, each capability of the unit, and the role for
# Ansible. Needs root, Debian's mirror and a cgroup2.
#
#     [RELEASE=trixie] systemd.sh FOLDER     with the packages that scripts/deb.sh made for that release
#
# build/deb-test keeps the Debian and what apt fetched, for the next time.
# shellcheck source=../selftests/lib.sh
. "$(dirname "$0")/../selftests/lib.sh"

DEBS=$(realpath "${1:?the folder with the packages}")
[ "$(id -u)" -eq 0 ] || skip_all "root is needed"
for tool in debootstrap dpkg-scanpackages unshare nsenter zstd findmnt; do
    command -v "$tool" >/dev/null || skip_all "$tool is not installed"
done
CGROUPS=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)
[ -n "$CGROUPS" ] || skip_all "no cgroup2 is mounted"
# Whatever happens from here on, nothing stays.
ends_all() {
    local status=$?
    trap '' HUP INT TERM
    if [ -e "$WORK/machine" ]; then power_off; fi
    find "$GROUP" -depth -type d -exec rmdir {} \; 2>/dev/null || true
    rm -rf "$WORK"
    exit "$status"
}
# The Debian's first process gets the same signal, and takes all others with it.
power_off() {
    kill -KILL "$(cat "$WORK/machine")" 2>/dev/null || true
    rm "$WORK/machine"
    await ends_with_no_process
}
ends_with_no_process() { [ ! -s "$GROUP/cgroup.procs" ]; }
WORK=$(mktemp -d)
pins >"$WORK/pins"
GROUP=$CGROUPS/sieve-$$
trap ends_all EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
SYSTEM=$WORK/debian
NEW=$(dpkg-deb -f "$(echo "$DEBS"/xdp-sieve_*.deb)" Version)
OLD=$NEW~older
TOOLS=adduser,dbus,iproute2,procps,systemd
# shellcheck source=debian.sh
. "$here/../packages/debian.sh"

UNIT=/lib/systemd/system/xdp-sieved.service
OVERRIDE=$SYSTEM/etc/systemd/system/xdp-sieved.service.d
LISTS=$SYSTEM/etc/xdp-sieve

# --- the machine --------------------------------------------------------------------------------------------

# Starts systemd in the Debian. $WORK/machine names the process whose end ends all that runs there, $WORK/init the
# Debian's first process.
boot() {
    mkdir -p "$GROUP"
    # shellcheck disable=SC2016 # the inner shells expand these
    setsid sh -c 'echo $$ >"$1/cgroup.procs" && exec unshare --pid --mount --uts --ipc --net --cgroup \
        --propagation private --fork --kill-child sh -c "$3" sh "$2"' sh "$GROUP" "$SYSTEM" '
        root=$1
        hostname sieve
        ip link set lo up
        mount --bind "$root" "$root" && mount -t proc proc "$root/proc" && mount -t sysfs sysfs "$root/sys" &&
            mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup" && mount -t bpf bpf "$root/sys/fs/bpf" &&
            mount -t tmpfs tmpfs "$root/run" && mount -t tmpfs -o mode=755 tmpfs "$root/dev" || exit 99
        for device in null zero full random urandom tty; do
            touch "$root/dev/$device" && mount --bind "/dev/$device" "$root/dev/$device"
        done
        mkdir "$root/dev/pts" "$root/dev/shm"
        mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts" && ln -s pts/ptmx "$root/dev/ptmx"
        exec chroot "$root" env -i container=sieve PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            /lib/systemd/systemd --system --log-target=journal --show-status=0
    ' >"$WORK/boot" 2>&1 &
    echo $! >"$WORK/machine"
    await has_booted
}
has_booted() {
    pgrep -P "$(cat "$WORK/machine")" -x systemd >"$WORK/init" || return
    here_runs systemctl is-system-running >"$WORK/awaited" 2>&1 || grep -qxE degraded "$WORK/awaited"
}
# here_runs COMMAND...: runs a command in the Debian that has booted.
here_runs() {
    local init
    init=$(cat "$WORK/init")
    nsenter --target "$init" --mount --uts --ipc --net --pid --cgroup --root --wd="/proc/$init/root" \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 SYSTEMD_PAGER=cat "$@"
}

# --- the service --------------------------------------------------------------------------------------------

property() { here_runs systemctl show -P "$1" xdp-sieved; }
has() { [ "$(property "$1" | tee "$WORK/awaited")" = "$2" ]; }
# said PATTERN: whether the journal has a message of the service like that, since `mark`.
mark() { marked=$(here_runs date '+%F %T.%6N'); }
journal() { here_runs journalctl -q -o cat -u xdp-sieved --since "$marked"; }
said() { journal | tee "$WORK/awaited" | grep -E -- "$1" >/dev/null; }
# in_force ADDRESS: whether the filter that runs matches it.
in_force() { here_runs xdp-sieve query veth-in "$1" >"$WORK/awaited" 2>&1; }
# override LINE...: the unit with these further lines.
override() {
    mkdir -p "$OVERRIDE"
    printf '%s\n' '[Service]' "$@" >"$OVERRIDE/test.conf"
    here_runs systemctl daemon-reload
}
as_installed() {
    rm -rf "$OVERRIDE"
    here_runs systemctl daemon-reload
}
# Nothing runs, and nothing is remembered.
afresh() {
    here_runs systemctl stop xdp-sieved
    here_runs systemctl reset-failed xdp-sieved 2>/dev/null || true
    here_runs ip link set dev veth-in xdp off
    rm -rf "$SYSTEM/var/lib/xdp-sieve/"*
}

configure() {
    cat >"$LISTS/xdp-sieve.toml" <<END
[[interface]]
name = "veth-in"
sets = ["bad"]
${1-}
[set.bad]
sources = ["/etc/xdp-sieve/bad.txt"]
END
}

installs() {
    makes_repository xdp-sieve
    does install "xdp-sieve=$OLD" ansible-core python3-apt
    # From here on, the package starts its service, and apt finds the packages when the Debian has booted.
    rm "$SYSTEM/usr/sbin/policy-rc.d"
    cp -r "$WORK/repository/." "$SYSTEM/mnt"
    boot
    here_runs ip link add veth-in type veth peer name veth-out
    here_runs ip link set veth-in up
    here_runs ip link set veth-out up
    echo 192.0.2.1 >"$LISTS/bad.txt"
    configure
}

# `systemctl start` returns when the service is ready: last good lists are in force then.
is_notified() {
    mark
    here_runs systemctl start xdp-sieved
    has ActiveState active || fail "not active"
    await in_force 192.0.2.1
    await has StatusText "1 set in force on veth-in"
    here_runs systemctl stop xdp-sieved
    in_force 192.0.2.1 || fail "a stop has changed what is in force"
    here_runs ip link set dev veth-in xdp off
    here_runs systemctl start xdp-sieved
    in_force 192.0.2.1 || fail "ready before the last good list is in force"
    said 'ready [0-9]+ ms after the start of this process'
    journal | grep -E 'ready [0-9]+ ms' | tail -n 1
}

# A reload puts a configuration in force. A wrong one fails, with its place, and changes nothing.
passes_unreadable() { here_runs xdp-sieve status veth-in | tee "$WORK/awaited" | grep -qE 'unreadable.*pass'; }
reloads() {
    mark
    configure 'unreadable = "pass"'
    here_runs systemctl reload xdp-sieved
    await passes_unreadable
    await has ActiveState active # RELOADING=1 and then READY=1 have come
    configure 'default = "maybe"'
    if here_runs systemctl reload xdp-sieved 2>"$WORK/said"; then fail "a wrong configuration was taken"; fi
    said 'xdp-sieve.toml:4:.*"pass" or "drop"' || fail "$(journal)"
    has ActiveState active && has StatusText "1 set in force on veth-in" || fail "the service has changed"
    in_force 192.0.2.1 || fail "what is in force has changed"
    configure
    here_runs systemctl reload xdp-sieved
    await said 'the configuration was read anew'
}

# A daemon that hangs is ended and started anew; one that dies is started anew. What is in force stays.
comes_back() {
    local first
    override 'WatchdogSec=2s'
    # The tests before have started it often enough for the unit's limit.
    here_runs systemctl reset-failed xdp-sieved
    here_runs systemctl restart xdp-sieved
    for signal in STOP KILL; do
        mark
        first=$(property MainPID)
        here_runs kill -s "$signal" "$first"
        await said "Scheduled restart job"
        in_force 192.0.2.1 || fail "$signal has changed what is in force"
        await has ActiveState active
        [ "$(property MainPID)" != "$first" ] || fail "the same process"
        said 'veth-in: taken over as it runs'
        journal | grep -E 'Watchdog timeout|status=9' || true
    done
    as_installed
}

# An upgrade, while the service runs and packets come every millisecond. No packet of a listed address passes, and every
# other one does. The new version's service takes over what is in force, and has the state of the one before.
running_program() { here_runs ip -d link show veth-in | grep -oE 'prog/xdp id [0-9]+|xdp/id:[0-9]+'; }
upgrades() {
    local first program listed other
    here_runs systemctl start xdp-sieved
    await in_force 192.0.2.1
    first=$(property MainPID) program=$(running_program)
    mkfifo "$WORK/end"
    nsenter --target "$(cat "$WORK/init")" --net "$here/../packages/traffic.py" veth-out veth-in 192.0.2.1 192.0.2.2 \
        <"$WORK/end" >"$WORK/counts" 2>&1 &
    local traffic=$!
    exec 3>"$WORK/end"
    mv "$LISTS/bad.txt" "$LISTS/away.txt" # what is known of this list is in the state only
    mark
    # shellcheck disable=SC2016 # dpkg-query's own variables
    [ "$(here_runs dpkg-query -W -f='${Version}' xdp-sieve)" = "$OLD" ] || fail "the version before is not installed"
    here_runs env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "xdp-sieve=$NEW" \
        >"$WORK/apt" 2>&1 || fail "$(tail -n 20 "$WORK/apt")"
    await has ActiveState active
    await said 'veth-in: taken over as it runs'
    exec 3>&-
    wait "$traffic" || fail "$(cat "$WORK/counts")"
    [ "$(property MainPID)" != "$first" ] || fail "the service of the version before still runs"
    [ "$(running_program)" = "$program" ] || fail "another program is in force: $(running_program), not $program"
    cat "$WORK/counts"
    listed=$(awk '$1 == "listed" { print $3 }' "$WORK/counts")
    other=$(awk '$1 == "other" { print $2 - $3 }' "$WORK/counts")
    [ "$listed" = 0 ] || fail "$listed packets of a listed address passed"
    [ "$other" = 0 ] || fail "$other packets of another address did not arrive"
    [ "$(awk '{ print $2 }' "$WORK/counts" | sort -n | head -n 1)" -gt 100 ] || fail "too few packets"
    here_runs ip link set dev veth-in xdp off
    here_runs systemctl restart xdp-sieved
    in_force 192.0.2.1 || fail "the state is not what it was"
    mv "$LISTS/away.txt" "$LISTS/bad.txt"
}

# A message is one entry, with its priority and with fields to search for.
is_in_the_journal() {
    afresh
    mark
    here_runs systemctl start xdp-sieved
    await said 'set bad: a new list with 1 entry'
    here_runs journalctl -q -o cat --since "$marked" SET=bad ENTRIES=1 PRIORITY=5 | grep 'a new list with' ||
        fail "no such entry"
    here_runs journalctl -q -o cat --since "$marked" INTERFACE=veth-in HOOK=xdp | grep 'attached' ||
        fail "no such entry"
}

unit_capabilities() { sed -n 's/^CapabilityBoundingSet=//p' "$SYSTEM$UNIT"; }

# Takes each capability out of the unit. Each must be missed, and what is said without it is what docs/service.md says.
needs_its_capabilities() {
    local capability without
    # A command says what its process may do.
    cat >"$LISTS/xdp-sieve.toml" <<'END'
[[interface]]
name = "veth-in"
sets = ["bad"]
[set.bad]
sources = ["/etc/xdp-sieve/bad.txt"]
[[interface]]
name = "veth-out"
sets = ["child"]
[set.child]
sources = [{ command = ["sh", "-c", "grep -E '^(Uid|Gid|CapBnd)' /proc/self/status | xargs >&2; exit 3"] }]
END
    local -A missed=(
        [CAP_SYS_ADMIN]='opening BPF map [0-9]+: Operation not permitted'
        [CAP_NET_ADMIN]='attaching to veth-in: Operation not permitted'
        [CAP_SETUID]='Uid: 0 0 0 0'
        [CAP_SETGID]='Gid: 0 0 0 0'
        [CAP_SETPCAP]='CapBnd: 0*[1-9a-f][0-9a-f]*\)'
    )
    afresh
    mark
    here_runs systemctl start xdp-sieved
    await said 'set child: .* Gid: ([1-9][0-9]*) \1 \1 \1 CapBnd: 0+\)'
    said 'Uid: ([1-9][0-9]*) \1 \1 \1 ' || fail "$(journal)"
    await said 'veth-in: attached'
    for capability in $(unit_capabilities); do
        [ -n "${missed[$capability]-}" ] || fail "nobody knows what $capability is for"
        afresh
        # CAP_SYS_ADMIN implies CAP_BPF, which is not enough.
        override Restart=no "CapabilityBoundingSet=~$capability" \
            "$([ "$capability" != CAP_SYS_ADMIN ] || echo CapabilityBoundingSet=CAP_BPF)"
        mark
        here_runs systemctl start xdp-sieved || true
        await said "${missed[$capability]}"
        without=$(journal | grep -E -m 1 -- "${missed[$capability]}")
        echo "without $capability: $without"
        unset "missed[$capability]"
    done
    as_installed
    [ "${#missed[@]}" = 0 ] || fail "the unit has no ${!missed[*]}"
}

# The role installs the package, writes configuration and lists, and starts the service; a second run changes nothing. A
# new configuration is reloaded. A wrong one changes nothing.
play() { here_runs ansible-playbook -i localhost, -c local /root/ansible/test.yml -e "$1" >"$WORK/played" 2>&1; }
played() { grep -qE "changed=$1 .*unreachable=0 +failed=0 " "$WORK/played" || fail "$(cat "$WORK/played")"; }
role() {
    local first vars='{"xdp_sieve_interfaces": [{"name": "veth-in", "sets": ["bad"]}], "xdp_sieve_sets": {"bad": {
        "sources": ["/etc/xdp-sieve/lists/bad.txt"], "guards": {"most-growth": 10}}}, "xdp_sieve_lists": {"bad.txt": %s}
        %s}'
    afresh
    here_runs env DEBIAN_FRONTEND=noninteractive apt-get -q -y purge xdp-sieve >"$WORK/apt" 2>&1 ||
        fail "$(tail -n 20 "$WORK/apt")"
    rm -rf "$LISTS" "$SYSTEM/root/ansible"
    cp -r "$here/../../examples/ansible" "$SYSTEM/root/ansible"
    printf -- '- {hosts: all, roles: [xdp_sieve]}\n' >"$SYSTEM/root/ansible/test.yml"
    # shellcheck disable=SC2059 # the variables are the format
    given() { printf "$vars" "$@"; }
    play "$(given '["192.0.2.1"]' '')" || fail "$(cat "$WORK/played")"
    await in_force 192.0.2.1
    has UnitFileState enabled && has ActiveState active || fail "the service is not enabled or does not run"
    play "$(given '["192.0.2.1"]' '')" || fail "$(cat "$WORK/played")"
    played 0
    first=$(property MainPID)
    play "$(given '["192.0.2.1"]' ', "xdp_sieve_service": {"on-stop": "keep"}')" || fail "$(cat "$WORK/played")"
    played 2
    [ "$(property MainPID)" = "$first" ] || fail "started anew, not reloaded"
    sha256sum "$LISTS/xdp-sieve.toml" >"$WORK/configuration"
    if play "$(given '["192.0.2.1"]' ', "xdp_sieve_service": {"on-stop": "maybe"}')"; then
        fail "a wrong configuration was taken"
    fi
    grep -q 'on-stop' "$WORK/played" || fail "$(cat "$WORK/played")"
    sha256sum --quiet -c "$WORK/configuration"
    play "$(given '["192.0.2.1", "192.0.2.3"]' ', "xdp_sieve_service": {"on-stop": "keep"}')" ||
        fail "$(cat "$WORK/played")"
    await in_force 192.0.2.3
}

# What docs/start.md tells a newcomer to type, on an interface eth0 of the Debian, from friends to off. The page's own
# configuration is where commands and service look for it, with the lists beside it.
start_page() {
    local page=$here/../../docs/start.md command
    afresh
    here_runs systemctl disable xdp-sieved 2>/dev/null
    rm -rf "${LISTS:?}"/*
    here_runs ip link add eth0 type veth peer name peer0
    here_runs ip link set eth0 up
    here_runs ip link set peer0 up
    printf '%s\n' 192.0.2.10 198.51.100.0/24 >"$SYSTEM/root/friends.txt"
    printf '%s\n' 203.0.113.9 203.0.113.64/28 >"$SYSTEM/root/blocklist.txt"
    cp "$SYSTEM/root/friends.txt" "$SYSTEM/root/blocklist.txt" "$LISTS"
    # shellcheck disable=SC2016 # these are no expansions
    sed -n '/^```toml$/,/^```$/p' "$page" | sed '/^```/d' >"$LISTS/xdp-sieve.toml"
    awk '/^## /{ off = $0 == "## Off" } !off && /^    sudo /{ sub(/^    sudo /, ""); print }' "$page" >"$WORK/commands"
    [ "$(wc -l <"$WORK/commands")" -gt 15 ] || fail "few commands: $(cat "$WORK/commands")"
    while IFS= read -r command <&3; do
        here_runs sh -c "cd /root && $command" </dev/null >"$WORK/out" 2>&1 || fail "$command: $(cat "$WORK/out")"
    done 3<"$WORK/commands"
    has UnitFileState enabled && has ActiveState active || fail "the service is not enabled or does not run"
    await has StatusText "2 sets in force on eth0"
    says_verdict pass 192.0.2.10
    says_verdict drop 203.0.113.9
    says_verdict drop 192.0.2.77
    here_runs xdp-sieve pause eth0
    await is_off
    here_runs xdp-sieve resume eth0
    await has StatusText "2 sets in force on eth0"
    here_runs systemctl stop xdp-sieved
    here_runs xdp-sieve unload eth0
    is_off || fail "something is attached after unload"
    here_runs ip link del eth0
}
is_off() { ! here_runs ip link show eth0 | grep -q xdp; }
says_verdict() {
    here_runs xdp-sieve --json explain eth0 "$2" >"$WORK/explained" || [ $? -eq 1 ]
    jq -e --arg is "$1" '.action == $is' "$WORK/explained" >/dev/null || fail "$2: $(cat "$WORK/explained")"
}

# What systemd sees of its hardening, on the unit as it is installed.
is_hardened() {
    here_runs systemd-analyze verify --man=no xdp-sieved.service
    here_runs systemd-analyze security --threshold=25 xdp-sieved.service >"$WORK/said" || fail "$(cat "$WORK/said")"
    grep Overall "$WORK/said"
}

ends() {
    power_off
    if grep -F "$WORK" /proc/mounts; then fail "still mounted"; fi
}

ktap_run \
    "a Debian" makes_debian \
    "systemd boots, with the package" installs \
    "systemctl start returns when last good lists are in force" is_notified \
    "an upgrade while packets come" upgrades \
    "systemctl reload" reloads \
    "watchdog and restart" comes_back \
    "the journal has fields" is_in_the_journal \
    "each capability is needed" needs_its_capabilities \
    "systemd-analyze on the installed unit" is_hardened \
    "the role for Ansible" role \
    "the commands of docs/start.md" start_page \
    "all ends with the machine" ends
