#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Builds the Debian packages of this tree in a minimal Debian of a release, with nothing in it but what debian/control
# asks for. The packages appear in build/deb-RELEASE. Needs root and Debian's mirror.
#
#     deb-release.sh RELEASE     bookworm or trixie
#
# build/deb-test keeps the Debian and what apt fetched, for the next time.
set -euo pipefail
cd "$(dirname "$0")/.."
RELEASE=${1:?usage: deb-release.sh RELEASE}
fail() {
    echo "deb-release.sh: $*" >&2
    exit 1
}
[ "$(id -u)" -eq 0 ] || fail "root is needed"
BUILD=$PWD/build output=$PWD/build/deb-$RELEASE
[ ! -e "$output" ] || [ -e "$output/.made-by-deb.sh" ] || fail "$output exists and was not made by deb.sh"
WORK=$(mktemp -d)
SYSTEM=$WORK/debian
TOOLS=build-essential
trap 'rm -rf "$WORK"' EXIT
# shellcheck source=../tests/packages/debian.sh
. tests/packages/debian.sh

# The folder that a Debian sees as a repository holds the sources here, and takes the packages.
shared=$WORK/repository
mkdir "$shared" "$shared/src"
touch "$shared/Packages"
makes_debian
scripts/package-sources.sh "$shared/src"
apt update || fail "$(tail -n 20 "$WORK/apt")"
apt build-dep /mnt/src || fail "$(tail -n 20 "$WORK/apt")"
status=0
within env DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS-}" \
    /mnt/src/scripts/deb.sh --output /mnt/packages || status=$?
rm -rf "$output"
cp -r "$shared/packages" "$output"
exit "$status"
