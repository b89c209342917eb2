#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# The Debian packages, made of the programs that are built already: what is in them, and what lintian says.
# chroot.sh installs packages.
# shellcheck source=../selftests/lib.sh
. "$(dirname "$0")/../selftests/lib.sh"

ROOT=$(cd "$(dirname "$0")/../.." && pwd)
WORK=$(mktemp -d)
pins >"$WORK/pins"
trap cleanup EXIT
DEBS=$WORK/debs
PACKAGES=(xdp-sieve xdp-sieve-fleet libsieve1 libsieve-dev sieve-lab)
ARCHITECTURE=$(dpkg --print-architecture)
VERSION=$(dpkg-parsechangelog -l "$ROOT/debian/changelog" -S Version)

# unpacked PACKAGE: a folder with the package's files.
unpacked() {
    [ -d "$WORK/$1" ] || dpkg-deb -x "$DEBS/$1_${VERSION}_$ARCHITECTURE.deb" "$WORK/$1"
    echo "$WORK/$1"
}

builds() {
    local package
    DEBFULLNAME="A Packager" DEBEMAIL=packager@debian.org "$ROOT/scripts/deb.sh" --objects "$BUILD" --output "$DEBS"
    [ "$(dpkg-deb -f "$(echo "$DEBS"/xdp-sieve_*.deb)" Maintainer)" = "A Packager <packager@debian.org>" ] ||
        fail "somebody else answers for them"
    for package in "${PACKAGES[@]}"; do
        [ -e "$DEBS/${package}_${VERSION}_$ARCHITECTURE.deb" ] || fail "there is no $package"
    done
}

lintian_is_content() {
    lintian --allow-root --no-cfg --fail-on error,warning "$DEBS"/*.changes
    # The comment before an override says why it is right.
    awk '/^#/ { reason = !/SPDX/; next } /./ && !reason { print; wrong = 1 } END { exit wrong }' \
        "$ROOT"/debian/*.lintian-overrides || fail "an override without a reason"
}

# One version everywhere.
versions() {
    local said
    said=$("$SIEVE" --version)
    [ "$said" = "xdp-sieve $VERSION" ] || fail "debian/changelog says $VERSION, the program $said"
    grep -qx "Version: $VERSION" "$(unpacked libsieve-dev)"/usr/lib/*/pkgconfig/libsieve.pc || fail "not in libsieve.pc"
}

# FILES lists what each package holds, without the folders.
contents() {
    local package
    for package in "${PACKAGES[@]}"; do
        (cd "$(unpacked "$package")" && find . ! -type d -printf "$package %P\n") |
            sed 's|usr/lib/[^/]*-linux-gnu[^/]*/|usr/lib/ARCH/|'
    done | sort >"$WORK/files"
    grep -v '^#' "$ROOT/tests/packages/FILES" | sed "s/VERSION/$VERSION/" | sort |
        diff - "$WORK/files" || fail "left: tests/packages/FILES; right: the packages"
}

# Debian's paths, not those of the default prefix.
paths() {
    local found
    found=$(for package in xdp-sieve xdp-sieve-fleet libsieve-dev sieve-lab; do
        find "$(unpacked "$package")" -type f ! -name '*.a' ! -path '*/doc/*' -print0 |
            xargs -0 zgrep -lE '/usr/local/(lib|share)' || true
    done)
    [ -z "$found" ] || fail "/usr/local in: $found"
}

# What the build needs is what a machine that builds and tests has, but for what only tests need.
dependencies() {
    local wanted known
    known=$(sed -n '/^Build-Depends:/,/^$/p' "$ROOT/debian/control" | grep -oE '\b[a-z][a-z0-9.+-]+-dev\b' | sort)
    wanted=$(sed -n '/^packages=(/,/^)/p' "$ROOT/scripts/install-deps.sh" | grep -v '#' |
        grep -oE '\b[a-z][a-z0-9.+-]+-dev\b' |
        grep -vx -e libbenchmark-dev -e libgtest-dev -e libclang-rt-19-dev -e linux-libc-dev -e dpkg-dev | sort)
    diff <(echo "$known") <(echo "$wanted") || fail "left: debian/control; right: scripts/install-deps.sh"
}

# A host without a fleet has neither its libraries nor a client of etcd.
fleet() {
    local program package
    for program in bin/xdp-sieve sbin/xdp-sieved; do
        program=$(unpacked xdp-sieve)/usr/$program
        if grep -aoE 'lib(crypto|zstd)\.so|/v3/kv/range' "$program"; then fail "in $program"; fi
        program=$(unpacked xdp-sieve-fleet)/usr/lib/xdp-sieve/fleet/$(basename "$program")
        [ "$(grep -aoE 'libcrypto\.so|/v3/kv/range' "$program" | sort -u | wc -l)" = 2 ] || fail "not in $program"
    done
    for package in xdp-sieve xdp-sieve-fleet; do
        dpkg-deb -f "$DEBS/${package}_${VERSION}_$ARCHITECTURE.deb" Depends |
            grep -oE 'lib(ssl3|zstd1)' | sort >"$WORK/$package.needs" || true
    done
    [ ! -s "$WORK/xdp-sieve.needs" ] || fail "xdp-sieve needs $(cat "$WORK/xdp-sieve.needs")"
    printf '%s\n' libssl3 libzstd1 | diff - "$WORK/xdp-sieve-fleet.needs"
}

# The BPF programs keep the type information that the kernel needs.
objects() {
    local object
    for object in "$(unpacked xdp-sieve)"/usr/lib/xdp-sieve/*.bpf.o; do
        grep -q '\.BTF ' <<<"$(readelf -S "$object")" || fail "$object has no BTF"
    done
}

# The test that autopkgtest runs, with the programs that are built.
smoke() { PATH=$BUILD:$PATH "$ROOT/debian/tests/smoke"; }

# The role for Ansible, where its checker is installed. systemd.sh runs the role.
role() {
    command -v ansible-lint >/dev/null || skip "ansible-lint is not installed"
    cd "$ROOT/examples/ansible"
    ansible-lint --offline --nocolor --strict
}

ktap_run \
    "the packages are made" builds \
    "lintian has no error and no warning" lintian_is_content \
    "one version" versions \
    "what is in the packages" contents \
    "no path of another prefix" paths \
    "what the build needs" dependencies \
    "only one package has a fleet" fleet \
    "the BPF objects are whole" objects \
    "the test for autopkgtest" smoke \
    "ansible-lint has no complaint about the role" role
