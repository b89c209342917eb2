#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# The container image of examples/oci, made of the packages, and run by podman with the options that docs/containers.md
# gives: a command drops a member, and the daemon keeps a list in force. Needs root, buildah, podman, Debian's mirror
# and a cgroup2.
#
#     [RELEASE=trixie] oci.sh FOLDER     with the packages that scripts/deb.sh made for that release
#
# All that containers have, the store of their images too, lies in one folder. They run in namespaces which end with
# each test, however it ends.
# shellcheck source=../selftests/lib.sh
. "$(dirname "$0")/../selftests/lib.sh"

ROOT=$(cd "$here/../.." && pwd)
DEBS=$(realpath "${1:?the folder with the packages}")
[ "$(id -u)" -eq 0 ] || skip_all "root is needed"
for tool in buildah podman debootstrap findmnt unshare nsenter ping; do
    command -v "$tool" >/dev/null || skip_all "$tool is not installed"
done
CGROUPS=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)
[ -n "$CGROUPS" ] || skip_all "no cgroup2 is mounted"
NEW=$(dpkg-deb -f "$(echo "$DEBS"/xdp-sieve_*.deb)" Version)
WORK=$(mktemp -d)
GROUP=$CGROUPS/sieve-$$
pins >"$WORK/pins"
# podman makes groups below ours.
ends_all() {
    local status=$? namespace
    trap '' HUP INT TERM
    end_jobs
    for namespace in "$OUT" "$IN"; do ip netns del "$namespace" 2>/dev/null || true; done
    find "$GROUP" -depth -type d -exec rmdir {} \; 2>/dev/null || true
    rm -rf "$WORK"
    exit "$status"
}
trap ends_all EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
# shellcheck source=debian.sh
. "$here/../packages/debian.sh"

IMAGE=xdp-sieve:$NEW
OTHER4=198.51.100.3
LISTS=$WORK/host/etc/xdp-sieve
# What the page says of a container's options; the folders of the host lie in $WORK.
DOCUMENTED=$(sed -n '/^    options="/,/"$/p' "$ROOT/docs/containers.md" | tr -d '\\"\n' | sed 's/^ *options=//')
# shellcheck disable=SC2001
DOCUMENTED=$(sed "s,--volume /\(etc\|var\)/,--volume $WORK/host/\1/,g" <<<"$DOCUMENTED")

# The store, and what podman cannot have on every machine: groups for its containers, and more open files than we may.
export CONTAINERS_STORAGE_CONF=$WORK/storage.conf CONTAINERS_CONF=$WORK/containers.conf
cat >"$CONTAINERS_STORAGE_CONF" <<CONF
[storage]
driver = "vfs"
graphroot = "$WORK/store"
runroot = "$WORK/store-run"
CONF
cat >"$CONTAINERS_CONF" <<CONF
[containers]
cgroups = "disabled"
default_ulimits = ["nofile=$(ulimit -Hn):$(ulimit -Hn)", "nproc=$(ulimit -Hu):$(ulimit -Hu)"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
CONF

builds() {
    local said
    said=$(RELEASE=$RELEASE MIRROR=$(mirror) env -u CONTAINERS_CONF unshare --mount --propagation private \
        "$ROOT/examples/oci/build.sh" "$DEBS" | tail -n 1)
    [ "$said" = "$IMAGE" ] || fail "said $said"
    buildah images
}

# A host for containers: it has the filtering end of the pair, and ends with the test. $WORK/host-is-up names its first
# process.
host_begins() {
    make_namespaces
    make_link
    ip -n "$OUT" address add "$OTHER4/24" dev "$OUT_IF"
    mkdir -p "$GROUP" "$LISTS" "$WORK/host/var/lib"
    install -d -m 700 "$WORK/host/var/lib/xdp-sieve"
    echo "$OUT4" >"$LISTS/bad.txt"
    rm -f "$WORK/host-is-up"
    # shellcheck disable=SC2016 # the inner shells expand these
    sh -c 'echo $$ >"$1/cgroup.procs" && exec nsenter --net="/run/netns/$2" unshare --mount --pid --cgroup \
        --propagation private --fork --kill-child sh -c "$4" sh "$3"' sh "$GROUP" "$IN" "$WORK/host-is-up" '
        mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t bpf bpf /sys/fs/bpf &&
            mount -t cgroup2 cgroup2 /sys/fs/cgroup && mount -t tmpfs tmpfs /run &&
            install -d -m 700 /run/xdp-sieve /run/xdp-sieve-bans || exit 99
        : >"$1"
        while :; do sleep 1; done' &
    holder=$!
    await [ -e "$WORK/host-is-up" ]
    host=$(pgrep -P "$holder" | head -n 1)
}
on_host() { nsenter --target "$host" --mount --pid --cgroup --net "$@"; }
# one_off PROGRAM ARGUMENT...: in a container of its own.
# shellcheck disable=SC2086 # options are words
one_off() { on_host podman run --rm $DOCUMENTED "$IMAGE" "$@"; }
answers() { inside "$OUT" ping -q -c 1 -W 2 -I "$1" "$IN4" >/dev/null; }
is_dropped() { ! answers "$1"; }

commands() {
    local said
    host_begins
    [ "$(one_off xdp-sieve --version)" = "xdp-sieve $NEW" ] || fail "another version"
    # shellcheck disable=SC2016 # the shell inside expands it
    one_off sh -c 'for folder in man locale; do ! find /usr/share/$folder -type f | grep . || exit 1; done'
    answers "$OUT4" || fail "no answer before the list is in force"
    one_off xdp-sieve --quiet load "$IN_IF" bad=/etc/xdp-sieve/bad.txt
    is_dropped "$OUT4" || fail "a packet of a listed address passed"
    answers "$OTHER4" || fail "a packet of another address was dropped"
    # The container has ended; another one finds what is in force, and takes it away.
    one_off xdp-sieve status "$IN_IF" | tee "$WORK/said"
    grep -q '^  bad .* 1 ' "$WORK/said" || fail "the set is not shown"
    one_off xdp-sieve --quiet unload "$IN_IF"
    answers "$OUT4" || fail "no answer after the list was taken out of force"
}

# The capabilities for the filter, each left out. systemd.sh does so with all that the daemon has.
capabilities() {
    local all=$DOCUMENTED capability
    host_begins
    for capability in SYS_ADMIN NET_ADMIN; do
        DOCUMENTED=${all/--cap-add $capability/}
        [ "$DOCUMENTED" != "$all" ] || fail "the page does not give $capability"
        [ "$capability" = NET_ADMIN ] || DOCUMENTED="--cap-add BPF --cap-add PERFMON $DOCUMENTED"
        if one_off xdp-sieve load "$IN_IF" bad=/etc/xdp-sieve/bad.txt >"$WORK/said" 2>&1; then
            fail "works without $capability"
        fi
        grep 'Operation not permitted' "$WORK/said" || fail "$(cat "$WORK/said")"
    done
}

daemon() {
    host_begins
    printf '[[interface]]\nname = "%s"\nsets = ["bad"]\n[set.bad]\nsources = ["/etc/xdp-sieve/bad.txt"]\n' "$IN_IF" \
        >"$LISTS/xdp-sieve.toml"
    # shellcheck disable=SC2086
    on_host podman run --detach --name xdp-sieve $DOCUMENTED "$IMAGE" >"$WORK/awaited"
    await is_dropped "$OUT4"
    answers "$OTHER4" || fail "a packet of another address was dropped"
    on_host podman exec xdp-sieve xdp-sieve status "$IN_IF" | grep -q '^  bad ' || fail "the set is not shown"
    # It follows the list.
    echo "$OTHER4" >"$LISTS/bad.txt"
    await is_dropped "$OTHER4"
    answers "$OUT4" || fail "an address that has left the list is dropped"
    on_host podman stop --time 30 xdp-sieve
    is_dropped "$OTHER4" || fail "a stop has changed what is in force"
    on_host podman start xdp-sieve
    await taken_over
    is_dropped "$OTHER4" || fail "a start has changed what is in force"
    on_host podman rm --force xdp-sieve
}
taken_over() { on_host podman logs xdp-sieve 2>&1 | tee "$WORK/awaited" | grep -q 'taken over as it runs'; }

# Every mount was made in a namespace that has ended.
nothing_mounted() {
    if grep -F "$WORK" /proc/mounts; then fail "still mounted"; fi
}

ktap_run \
    "an image of the packages" builds \
    "a command drops a member" commands \
    "the capabilities are needed" capabilities \
    "the daemon keeps a list in force" daemon \
    "nothing is mounted" nothing_mounted
