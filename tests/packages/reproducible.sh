#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Whoever builds the packages gets the same bytes: builds them once more, in another folder, at another time, in
# another time zone, and compares.
#
#     reproducible.sh FOLDER     with the packages that scripts/deb.sh made
# shellcheck source=../selftests/lib.sh
. "$(dirname "$0")/../selftests/lib.sh"

DEBS=$(realpath "${1:?the folder with the packages}")
WORK=$(mktemp -d)
pins >"$WORK/pins"
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

sums() { (cd "$1" && sha256sum -- *.deb *.tar.xz); }

same_bytes() {
    local package
    TZ=Pacific/Kiritimati LC_ALL=C "$here/../../scripts/deb.sh" --output "$WORK/again"
    diff <(sums "$DEBS") <(sums "$WORK/again") && return
    for package in "$DEBS"/*.deb; do
        cmp -s "$package" "$WORK/again/${package##*/}" && continue
        echo "${package##*/}: the files that differ"
        dpkg-deb -x "$package" "$WORK/first"
        dpkg-deb -x "$WORK/again/${package##*/}" "$WORK/second"
        diff -rq "$WORK/first" "$WORK/second" || true
        rm -rf "$WORK/first" "$WORK/second"
    done
    fail "left: the first build; right: the second"
}

ktap_run "two builds give the same bytes" same_bytes
