# shellcheck shell=bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# What the tests of the packages share, beside lib.sh: a Debian that debootstrap makes, and commands in it. The caller
# sets SYSTEM (the Debian's folder), TOOLS (what is installed there) and $WORK/repository (packages that apt sees).
# Those who call makes_repository also set DEBS, NEW and OLD. RELEASE names the release of Debian: bookworm, which is
# Debian 12, if it is not given.
# shellcheck disable=SC2154

CACHE=$BUILD/deb-test
RELEASE=${RELEASE:-bookworm}

# within COMMAND...: runs a command in the Debian, with the machine's network.
# within_network COMMAND...: likewise, with a network of its own, which has nothing but what the command makes.
within() { isolated "" "$@"; }
within_network() { isolated --net "$@"; }
isolated() {
    local network=$1
    shift
    # shellcheck disable=SC2016,SC2086 # the inner shell expands the script; no network is no word
    unshare --mount --propagation private --pid --fork --kill-child $network sh -c '
        root=$1
        shift
        mount -t proc proc "$root/proc" && mount -t sysfs sysfs "$root/sys" && mount -t bpf bpf "$root/sys/fs/bpf" &&
            mount --bind /dev "$root/dev" && mount -t tmpfs tmpfs "$root/run" &&
            mount --bind "$root/../repository" "$root/mnt" &&
            mount --bind '"$CACHE/archives"' "$root/var/cache/apt/archives" || exit 99
        exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LC_ALL=C.UTF-8 \
            DEBIAN_FRONTEND=noninteractive http_proxy="$http_proxy" https_proxy="$https_proxy" "$@"
    ' sh "$SYSTEM" "$@"
}
# apt ARGUMENT...: what apt and dpkg say is in $WORK/apt.
apt() { within apt-get -q -y --no-install-recommends -o Dpkg::Use-Pty=0 "$@" >"$WORK/apt" 2>&1; }
# does ARGUMENT...: apt must succeed. refuses REASON ARGUMENT...: it must fail, and name the reason.
does() { apt "$@" || fail "apt $*: $(tail -n 20 "$WORK/apt")"; }
refuses() {
    local reason=$1
    shift
    if apt "$@"; then fail "apt $* was not refused"; fi
    grep -qF -- "$reason" "$WORK/apt" || fail "refused for another reason: $(cat "$WORK/apt")"
}

# The mirror that this machine uses.
mirror() {
    { cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true; } |
        sed -nE 's/^(deb( \[.*\])?|URIs:) (https?:[^ ]*debian\/?)( .*)?$/\3/p' | head -n 1
}

# A Debian with the tools, from the cache if it is there.
makes_debian() {
    local base from
    base=$CACHE/$RELEASE-$(echo "$TOOLS" | cksum | cut -d' ' -f1).tar.zst
    mkdir -p "$CACHE/archives/partial"
    if [ ! -e "$base" ]; then
        from=$(mirror)
        unshare --mount --propagation private debootstrap --variant=minbase --include="$TOOLS" "$RELEASE" "$SYSTEM" \
            "${from:-http://deb.debian.org/debian}" >"$WORK/debootstrap.log" 2>&1 ||
            fail "debootstrap: $(tail -n 5 "$WORK/debootstrap.log")"
        tar -C "$SYSTEM" -I zstd -cf "$base.part" .
        mv "$base.part" "$base"
        rm -rf "$SYSTEM"
    fi
    mkdir "$SYSTEM"
    tar -C "$SYSTEM" -I zstd -xf "$base"
    # The machine's way to the mirror.
    cp /etc/resolv.conf "$SYSTEM/etc/resolv.conf"
    apt-config dump | grep -iE '^Acquire::(https?::Proxy|Retries)' >"$SYSTEM/etc/apt/apt.conf.d/90machine" || true
    # No service is started, and nothing waits for the disk.
    printf '#!/bin/sh\nexit 101\n' >"$SYSTEM/usr/sbin/policy-rc.d"
    chmod 755 "$SYSTEM/usr/sbin/policy-rc.d"
    echo force-unsafe-io >"$SYSTEM/etc/dpkg/dpkg.cfg.d/unsafe-io"
    echo 'deb [trusted=yes] file:/mnt ./' >"$SYSTEM/etc/apt/sources.list.d/packages.list"
}

# makes_repository PACKAGE...: what apt sees: the packages of $DEBS, which are version $NEW, and the same packages under
# the lower version $OLD.
makes_repository() {
    local package folder=$WORK/repository
    mkdir "$folder"
    for package; do
        cp "$DEBS/${package}_${NEW}"_*.deb "$folder"
        dpkg-deb -R "$folder/${package}_${NEW}"_*.deb "$WORK/older"
        sed -i "s/^Version: .*/Version: $OLD/; s/(= $NEW)/(= $OLD)/g" "$WORK/older/DEBIAN/control"
        dpkg-deb -Znone -b "$WORK/older" "$folder/${package}_${OLD}_older.deb" >"$WORK/said"
        rm -rf "$WORK/older"
    done
    (cd "$folder" && dpkg-scanpackages --multiversion . >Packages 2>"$WORK/said") || fail "$(cat "$WORK/said")"
    chmod -R a+rX "$folder" "$WORK"
    within apt-get -qq update
}
