#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Runs the unit tests and the tests of the kernel side on arm64 in QEMU. `make vmtest ARCH=arm64` cross-builds first;
# docs/arm64.md says what that needs. `make check` leaves this out: without an arm64 host, every instruction is
# emulated.
#
#     vmtest_arm64.sh [KERNEL...]     by default 6.1-cloud (4 KiB pages) and 6.12-16k (16 KiB pages)
#
# Prints the failed and skipped tests and `N passed, N failed, N skipped`; exits with 1 if a test failed. A guest's
# output stays in build/vm-arm64/KERNEL.log. Kernels are kept beside it. A guest holds busybox, the tests, and the
# shared libraries of this machine's arm64 packages.
set -euo pipefail
cd "$(dirname "$0")/.."

VM=build/vm-arm64
BUILD=build/arm64
LIBRARIES=(/lib/aarch64-linux-gnu /usr/lib/aarch64-linux-gnu)
limit=${VMTEST_TIMEOUT:-3000} # seconds for each guest
read -ra suites <<<"${VMTEST_SUITES:-unit bpf}"
# A sample: no tests that build sets for minutes when emulated, and none that depend on the speed of the machine.
sample="Hash.*:Pattern*:WideLine*:Image*:*Golden*:*Ddlcbf*:*Bucket*:LineTasks*:Capture*:AddressText*:KeyText*"
unit_filter=${VMTEST_UNIT_FILTER:-$sample:PrefixExpansion*:CountMin*}
bpf_filter=${VMTEST_GTEST_FILTER:-*-VerifierCost*}
counts=(SIEVE_TEST_COUNT=2000 SIEVE_CHURN_SWAPS=9)
modules=(veth tun dummy sch_ingress cls_bpf cls_u32)
# Programs that the tests run besides busybox, and libraries that no development package brings.
packages=(dash iproute2 libmnl0 libbsd0 libmd0 libxtables12)

die() {
    echo "vmtest_arm64: $*" >&2
    exit 1
}

kernel_package() {
    local pattern
    case $1 in
    6.1-cloud) pattern='^linux-image-6\.1\.[0-9-]+-cloud-arm64$' ;;
    6.12-16k) pattern='^linux-image-6\.12\.[0-9]+[^ ]*-arm64-16k$' ;;
    *) die "$1: expected 6.1-cloud or 6.12-16k" ;;
    esac
    { apt-cache pkgnames linux-image-6 || true; } | grep -E "$pattern" | sort -V | tail -n 1 | grep .
}

# fetched PACKAGE: prints the path of an arm64 package, which it downloads unless it is there.
fetched() {
    mkdir -p "$VM/packages"
    compgen -G "$VM/packages/$1_*.deb" >/dev/null ||
        (cd "$VM/packages" && timeout 300 apt-get -q -o APT::Sandbox::User=root download "$1:arm64" >&2)
    compgen -G "$VM/packages/$1_*.deb" | head -n 1
}

get_kernel() {
    local package version from new=$WORK/kernel-$1
    [ ! -e "$VM/$1/Image" ] || return 0
    package=$(kernel_package "$1") && dpkg-deb -x "$(fetched "$package")" "$new" ||
        die "no kernel $1 for arm64; try: dpkg --add-architecture arm64 && apt-get update"
    version=${package#linux-image-}
    from=$(find "$new" -type d -path "*/modules/$version")
    find "$from" -name '*.ko.xz' -print0 | xargs -0r xz -d
    busybox depmod -b "${from%/lib/modules/*}" "$version"
    rm -rf "${VM:?}/$1" && mkdir -p "$VM/$1"
    grep -vE '^#' "$from/modules.dep" >"$VM/$1/modules.dep"
    echo "$version" >"$VM/$1/version"
    local name file
    for name in "${modules[@]}"; do
        for file in $(grep -E "(^|/)$name\.ko:" "$from/modules.dep" | tr -d ':' || true); do # no such file: built in
            install -D -m 644 "$from/$file" "$VM/$1/modules/$file"
        done
    done
    cp "$from"/modules.{builtin,order} "$VM/$1/"
    # QEMU needs the uncompressed image.
    case $(file -b "$new/boot/vmlinuz-$version") in
    gzip*) zcat "$new/boot/vmlinuz-$version" ;;
    *) cat "$new/boot/vmlinuz-$version" ;;
    esac >"$VM/$1/Image"
}

# take_libraries FILE...: copies the libraries that the files are linked with, and the loader.
take_libraries() {
    local name folder
    for name in $(aarch64-linux-gnu-readelf -d -l "$@" |
        sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p; s/.*interpreter: \/lib\/(.*)\]/\1/p' | sort -u); do
        [ ! -e "$ROOT/lib/$name" ] || continue
        for folder in "${LIBRARIES[@]}" "$WORK"/packages{,/usr}/lib/aarch64-linux-gnu; do
            [ ! -e "$folder/$name" ] || cp -L "$folder/$name" "$ROOT/lib/"
        done
        [ -e "$ROOT/lib/$name" ] || die "there is no $name for arm64 on this machine"
        take_libraries "$ROOT/lib/$name"
    done
}

make_root() {
    ROOT=$WORK/root
    mkdir -p "$ROOT"/{proc,sys,dev,run,tmp,root,bin,lib,sieve/build}
    dpkg-deb -x "$(fetched busybox-static)" "$WORK/busybox"
    cp "$WORK/busybox/bin/busybox" "$ROOT/bin/"
    local package applet tests
    for package in "${packages[@]}"; do
        dpkg-deb -x "$(fetched "$package")" "$WORK/packages"
    done
    # Not busybox's shell, which takes busybox's ip for ip.
    cp "$WORK/packages/bin/dash" "$ROOT/bin/sh"
    cp "$WORK/packages/bin/ip" "$WORK/packages/sbin/tc" "$ROOT/bin/"
    take_libraries "$ROOT/bin/sh" "$ROOT/bin/ip" "$ROOT/bin/tc"
    for applet in mount mkdir ln stty sed cat echo cut uname modprobe rm sleep dmesg poweroff; do
        ln -s busybox "$ROOT/bin/$applet"
    done
    echo 'root:x:0:0:root:/root:/bin/sh' | install -D /dev/stdin "$ROOT/etc/passwd"
    echo 'int printf(const char*, ...); long sysconf(int); int main(void) { printf("%ld", sysconf(30)); }' |
        aarch64-linux-gnu-gcc -static -x c - -o "$ROOT/page-size"
    cp tests/vm/init-arm64 "$ROOT/init"
    cp -r --parents tests/data tests/unit/messages "$ROOT/sieve/"
    for tests in "${suites[@]}"; do
        aarch64-linux-gnu-strip --strip-debug -o "$ROOT/sieve/build/$tests-tests" "$BUILD/$tests-tests"
        take_libraries "$ROOT/sieve/build/$tests-tests"
    done
    cp "$BUILD"/xdp_sieve{,_tc}.bpf.o "$ROOT/sieve/build/"
    echo "${modules[@]}" >"$ROOT/modules"
    echo "${suites[@]}" >"$ROOT/sieve/suites"
    echo "$unit_filter" >"$ROOT/sieve/unit.filter"
    echo "$bpf_filter" >"$ROOT/sieve/bpf.filter"
    printf '%s\n' "${counts[@]}" >"$ROOT/sieve/counts"
    archive "$ROOT" "$WORK/root.cpio"
}

archive() { (cd "$1" && find . -mindepth 1 | cpio --quiet -o -H newc -R 0:0) >"$2"; }

boot() {
    local root=$WORK/modules-$1 version
    version=$(cat "$VM/$1/version")
    mkdir -p "$root/lib/modules/$version"
    [ ! -d "$VM/$1/modules" ] || cp -r "$VM/$1/modules/." "$root/lib/modules/$version/"
    cp "$VM/$1"/modules.{dep,builtin,order} "$root/lib/modules/$version/"
    archive "$root" "$WORK/modules.cpio"
    cat "$WORK/root.cpio" "$WORK/modules.cpio" >"$WORK/$1.cpio"
    # One processor, as on x86-64: with two, QEMU may run the old form of an instruction that the kernel has just
    # patched.
    nice timeout --foreground --kill-after=10 "$limit" qemu-system-aarch64 -machine virt -cpu max,pauth-impdef=on \
        -accel tcg -smp 1 -m 2G -nodefaults -display none -no-reboot -monitor none -serial "file:$WORK/$1.console" \
        -kernel "$VM/$1/Image" -initrd "$WORK/$1.cpio" \
        -append "console=ttyAMA0 loglevel=2 panic=-1 oops=panic rcupdate.rcu_expedited=1 norandmaps" \
        </dev/null >"$WORK/$1.qemu" 2>&1 || true
    cat "$WORK/$1.qemu" "$WORK/$1.console" | tr -d '\r' >"$VM/$1.log"
}

channel() { sed -n "s/^$2| \?//p" "$VM/$1.log"; }

own_test() {
    python3 -c 'import json, sys
print(json.dumps(dict(zip(("suite", "test", "verdict", "detail"), sys.argv[1:]))))' "$@"
}

report() {
    local suite found
    for suite in "${suites[@]}"; do
        channel "$1" "$suite" >"$WORK/log"
        channel "$1" "$suite.json" >"$WORK/json"
        scripts/check_report.py gtest "vm-arm64-$1-$suite" "$(channel "$1" "$suite.status" | grep . || echo 124)" \
            "$WORK/log" "$WORK/json"
    done
    if channel "$1" vm | grep -qx 'the end'; then
        own_test "vm-arm64-$1" "runs to its end" pass ""
    else
        own_test "vm-arm64-$1" "runs to its end" fail "see $VM/$1.log
$(tail -n 20 "$VM/$1.log")"
    fi
    splats='BUG:|WARNING: |Oops|Kernel panic|Call [Tt]race|cut here|rcu.*stall|soft lockup|UBSAN'
    found=$(grep -E "$splats" "$VM/$1.log" |
        grep -v 'Unprivileged eBPF' || true)
    own_test "vm-arm64-$1" "kernel log" "$([ -z "$found" ] && echo pass || echo fail)" "$found"
}

[ $# -gt 0 ] || set -- 6.1-cloud 6.12-16k
for file in "${suites[@]/%/-tests}" xdp_sieve.bpf.o xdp_sieve_tc.bpf.o; do
    [ -e "$BUILD/$file" ] || die "there is no $BUILD/$file: run make ARCH=arm64 first"
done
for tool in qemu-system-aarch64 aarch64-linux-gnu-gcc busybox cpio xz file; do
    command -v "$tool" >/dev/null || die "$tool is missing; docs/arm64.md names the packages"
done
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
mkdir -p "$VM"
make_root
: >"$WORK/all"
for one; do
    started=$SECONDS
    get_kernel "$one"
    boot "$one"
    report "$one" >"$WORK/one"
    cat "$WORK/one" >>"$WORK/all"
    printf '%-20s %s (%s, %d s)\n' "vm-arm64-$one" "$(scripts/check_report.py count "$WORK/one")" \
        "$(channel "$one" vm | head -n 1)" $((SECONDS - started))
done
scripts/check_report.py summary "$WORK/all" tests/allowed-skips
