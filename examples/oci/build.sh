#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Makes a container image of the packages that scripts/deb.sh made. Needs root, buildah and Debian's mirror.
#
#     build.sh FOLDER [NAME]     with the folder of the packages; the image is NAME:VERSION, and NAME xdp-sieve if not
#                                given
#
# RELEASE is the release of Debian for which the packages were made: bookworm if not given. BASE names the image to
# build on, such as docker.io/library/debian:bookworm-slim; if it is not given, debootstrap makes a small one from
# MIRROR.
set -euo pipefail
usage="usage: build.sh FOLDER [NAME]"
DEBS=$(realpath "${1:?$usage}") NAME=${2:-xdp-sieve}
here=$(cd "$(dirname "$0")" && pwd)
RELEASE=${RELEASE:-bookworm} MIRROR=${MIRROR:-http://deb.debian.org/debian}
fail() {
    echo "build.sh: $*" >&2
    exit 1
}
package=$(echo "$DEBS"/xdp-sieve_*.deb)
[ -f "$package" ] || fail "$DEBS has no package xdp-sieve, or several: $package"
version=$(dpkg-deb -f "$package" Version)
[ "$(id -u)" -eq 0 ] || fail "root is needed"

WORK=$(mktemp -d)
container=
cleanup() {
    [ -z "$container" ] || buildah rm "$container" >/dev/null || true
    rm -rf "$WORK"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Debian as debootstrap makes it, without manual pages and translations, with the mirror's fixes.
makes_base() {
    local root
    container=$(buildah from scratch)
    root=$(buildah mount "$container")
    unshare --mount --propagation private debootstrap --variant=minbase "$RELEASE" "$root" "$MIRROR" \
        >"$WORK/debootstrap.log" 2>&1 || fail "debootstrap: $(tail -n 5 "$WORK/debootstrap.log")"
    printf 'deb %s %s main\n' "$MIRROR" "$RELEASE" "$MIRROR" "$RELEASE-updates" \
        "${MIRROR%/}-security" "$RELEASE-security" >"$root/etc/apt/sources.list"
    find "$root"/usr/share/{doc,info,locale,man} -mindepth 1 ! -type d ! -name copyright -delete
    find "$root"/usr/share/{doc,info,locale,man} -mindepth 1 -type d -empty -delete
    rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/*
    buildah umount "$container" >/dev/null
    buildah commit --quiet --rm "$container" "$BASE" >/dev/null
    container=
}
if [ -z "${BASE-}" ]; then
    BASE=localhost/xdp-sieve-base:$RELEASE
    makes_base
fi

# The context holds the package alone.
mkdir "$WORK/context"
cp "$package" "$WORK/context"
buildah bud --isolation chroot --layers=false --format oci --build-arg "BASE=$BASE" --file "$here/Containerfile" \
    --label org.opencontainers.image.title=xdp-sieve --label "org.opencontainers.image.version=$version" \
    --label org.opencontainers.image.licenses=GPL-2.0-only --tag "$NAME:$version" \
    "$WORK/context" >"$WORK/bud.log" 2>&1 ||
    fail "$(tail -n 20 "$WORK/bud.log")"
echo "$NAME:$version"
