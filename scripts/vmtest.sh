#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Tests the kernel side on Debian's kernels in QEMU. The guests run those of the host's tests whose result may differ
# by kernel (tests/vm/host-only lists the others), and tests that not every host can run (tests/vm/*.sh). The script
# needs neither KVM nor root. `make vmtest` builds first.
#
#     vmtest.sh [--all] [--results FILE] [SERIES...]     series of kernels, by default 6.1 and 6.12
#
# With --all every guest runs every test.
#
# Prints the failed and skipped tests and `N passed, N failed, N skipped`; exits with 1 if a test failed. With
# --results the script appends the tests to FILE instead, in the form that scripts/check_report.py reads, and another
# script prints the summary. A guest's output stays in build/vm/SERIES.log. build/vm also keeps the kernels: delete it
# to get newer ones.
#
# A guest lives in its initramfs: it has no disk and no network card. The initramfs holds busybox, programs of this
# machine (from the packages below, with all shared libraries that they need), and the build. The guest's first serial
# line carries the kernel's log, the second one the results (tests/vm/init).
set -euo pipefail
cd "$(dirname "$0")/.."
unset MAKEFLAGS MAKELEVEL

VM=build/vm
# A guest that is silent for this many seconds counts as hung. The total time says nothing, because it depends on what
# else the machine does.
limit=${VMTEST_TIMEOUT:-2400}
accel=${VMTEST_ACCEL:-tcg}   # kvm is much faster, but /dev/kvm may exist and still not work
# One processor. With two, each emulated by a thread, QEMU may run the old form of an instruction that the kernel has
# just patched. The kernel then dies of the breakpoint that it had put there during the patch (seen in
# bpf_dispatcher_xdp_func on 6.12). Only running an XDP program patches that, so tests of other programs may have two.
processors=${VMTEST_PROCESSORS:-1}
memory=2G
# Smaller counts, for the tests that take them as parameters: emulated, a million keys take long. PATIENCE is the
# selftests' guard against hanging.
counts=(PATIENCE=300 FRAMES=200 SWAPS=5 ROUNDS=1 CHANGES=3 RATE=1500 SIEVE_TEST_COUNT=3000 SIEVE_CHURN_SWAPS=9
    "LOOKUPS=${LOOKUPS:-100000}" ${SIEVE_EXACT_LOOKUPS:+"SIEVE_EXACT_LOOKUPS=$SIEVE_EXACT_LOOKUPS"})
modules=(veth dummy tun 8021q sch_ingress cls_bpf cls_u32 wireguard ipip sit ip_gre ppp_generic ppp_async)
packages=(bash dash coreutils diffutils findutils grep sed mawk procps util-linux mount iproute2 iputils-ping ethtool
    gojq bpftool libxdp1 xdp-tools python3-minimal wireguard-tools ppp)

# The log of a healthy kernel contains none of these.
splats='BUG:|WARNING: |Oops|Kernel panic|general protection|Call Trace|cut here|rcu.*stall|soft lockup'
splats+='|hard LOCKUP|blocked for more than|KASAN|KCSAN|UBSAN|DEADLOCK|circular locking|inconsistent lock'
splats+='|refcount_t|scheduling while atomic|sleeping function|unregister_netdevice: waiting|Out of memory'
splats+='|page allocation failure|bad page|list_(add|del) corruption'
harmless='WARNING: Unprivileged eBPF is enabled|Speculative|Spectre'

die() {
    echo "vmtest: $*" >&2
    exit 1
}

# left_out SERIES SUITE: prints the tests that this guest leaves to the host or to other guests.
left_out() { sed -nE "s/ *#.*//; s/^(${1//./\\.}:)?$2 +//p" tests/vm/host-only; }

results=
all=false
wanted=()
while [ $# -gt 0 ]; do
    case $1 in
    --results)
        [ $# -gt 1 ] || die "--results takes a file"
        results=$(realpath -m "$2")
        shift
        ;;
    --all) all=true ;;
    [0-9]*.[0-9]*) wanted+=("$1") ;;
    *) die "usage: vmtest.sh [--all] [--results FILE] [SERIES...]" ;;
    esac
    shift
done
[ ${#wanted[@]} -gt 0 ] || wanted=(6.1 6.12)

mkdir -p "$VM"
WORK=$(mktemp -d)
guests=() # process ids, in the order of the series; 0: ended, or never started
watcher=0
cleanup() {
    local status=$?
    trap '' INT TERM
    local guest
    for guest in "${guests[@]}" "$watcher"; do
        [ "$guest" -ne 0 ] || continue
        kill "$guest" 2>/dev/null || true
        wait "$guest" 2>/dev/null || true
    done
    rm -rf "$WORK"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# --- kernels ------------------------------------------------------------------------------------------------

# Prints the newest package of that series, or nothing if there is none.
kernel_package() {
    { apt-cache pkgnames "linux-image-$1." || true; } |
        grep -E "^linux-image-${1//./\\.}\.[0-9][^ ]*-cloud-amd64\$" | sort -V | tail -n 1
}

# From now on, apt as this script calls it looks at all suites of Debian 12 that have kernels. A bare system may know
# only its main suite. The lists are separate, because the system's own lists are not ours to change.
widen_apt() {
    local folder mirror suite
    folder=$WORK/apt
    mkdir -p "$folder/state/lists/partial" "$folder/cache/archives/partial"
    # shellcheck disable=SC2016 # apt's own variable
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        grep -m 1 '/debian/\?$' || echo http://deb.debian.org/debian)
    mirror=${mirror%/}
    {
        for suite in bookworm bookworm-updates bookworm-backports; do echo "deb $mirror $suite main"; done
        echo "deb $mirror-security bookworm-security main"
    } >"$folder/sources.list"
    cat >"$folder/apt.conf" <<END
Dir::Etc::sourcelist "$folder/sources.list";
Dir::Etc::sourceparts "-";
Dir::State "$folder/state";
Dir::State::status "/var/lib/dpkg/status";
Dir::Cache "$folder/cache";
END
    export APT_CONFIG=$folder/apt.conf
    timeout 120 apt-get -q -o APT::Sandbox::User=root update >&2 || true # fetches the suites that this mirror has
}

# download_kernel SERIES FOLDER: downloads from this machine's sources as they are, or else from Debian's; prints the
# package's name. Exit 4: no source has one.
download_kernel() {
    local package
    for _ in own all; do
        package=$(kernel_package "$1")
        if [ -n "$package" ] &&
            (cd "$2" && timeout 300 apt-get -q -o APT::Sandbox::User=root download "$package" >&2); then
            echo "$package"
            return 0
        fi
        widen_apt # wasteful if no source has one
    done
    return 4
}

# get_kernel SERIES: unpacks a kernel to $VM/SERIES unless it is there. Exit 4: no source has one.
get_kernel() {
    local series=$1 package new=$WORK/kernel-$1
    [ ! -e "$VM/$series/vmlinuz" ] || return 0
    mkdir -p "$new/unpacked" "$new/$series"
    package=$(download_kernel "$series" "$new") || return 4
    dpkg-deb -x "$new/$package"_*.deb "$new/unpacked" || return 1
    # The tests need only networking modules.
    local version=${package#linux-image-}
    local from=$new/unpacked/lib/modules/$version to=$new/$series/lib/modules/$version folder
    [ -d "$from" ] || from=$new/unpacked/usr/lib/modules/$version
    for folder in net drivers/net lib crypto arch/x86/crypto; do
        [ -d "$from/kernel/$folder" ] || continue
        mkdir -p "$to/kernel/$folder"
        cp -r "$from/kernel/$folder/." "$to/kernel/$folder" || return 1
    done
    cp "$from"/modules.{builtin,order} "$to"
    find "$to" -name '*.ko.xz' -print0 | xargs -0r xz -d
    busybox depmod -b "$new/$series" "$version" 2>"$new/depmod.log" || {
        cat "$new/depmod.log" >&2
        return 1
    }
    mv "$new/unpacked/boot/vmlinuz-$version" "$new/$series/vmlinuz"
    rm -rf "${VM:?}/$series"
    mv "$new/$series" "$VM/$series"
}

# Prints a module and the modules that it needs, as paths below the folder of modules.dep.
module_files() {
    local name=$1 line
    line=$(grep -E "(^|/)$name\.ko:" "$2/modules.dep") || return 0 # built in
    tr -d ':' <<<"$line" | tr ' ' '\n' | grep .
}

# --- the guest's files --------------------------------------------------------------------------------------

# Copies a file or link of this machine to the same place in the guest. The folders of /bin and /lib are merged there.
take() {
    local path folder
    for path; do
        folder=$(realpath "$(dirname "$path")")
        mkdir -p "$ROOT$folder"
        cp -Pp "$path" "$ROOT$folder/"
    done
}

# If a package exists for several architectures, take this machine's.
files_of() { dpkg-query -L "$1:$(dpkg --print-architecture)" 2>/dev/null || dpkg-query -L "$1"; }

take_package() {
    local path
    while read -r path; do
        case $path in
        /usr/share/doc/* | /usr/share/man/* | /usr/share/locale/* | /usr/share/lintian/* | /usr/include/* | *.a) ;;
        *) if [ -f "$path" ] || [ -L "$path" ]; then take "$path"; fi ;;
        esac
    done < <(files_of "$1")
}

# Copies the libraries that the guest's dynamic loader will look for.
take_libraries() {
    local library
    # Programs open these by their names (library_on_demand.hpp). The guest has no server to ask with libcurl.
    while read -r library; do
        ldconfig -p | sed -n "s|.*$library (libc6,x86-64) => ||p" | head -n 1 | xargs -r -I{} cp -L --parents {} "$ROOT"
    done < <(grep -rhoE 'lib(archive|pcap)\.so\.[0-9.]+' userspace/libsieve/{util,packets})
    while read -r library; do
        [ -e "$ROOT$(realpath "$(dirname "$library")")/$(basename "$library")" ] || cp -L --parents "$library" "$ROOT"
    done < <(find "$ROOT" -type f \( -perm -100 -o -name '*.so*' \) -print0 |
        { LC_ALL=C xargs -0 ldd 2>/dev/null || true; } |
        sed -nE 's/^.*[[:space:]](\/[^ ]+) \(0x[0-9a-f]+\)$/\1/p' | sort -u)
}

make_root() {
    local package python folder
    ROOT=$WORK/root
    mkdir -p "$ROOT"/{proc,sys,dev,run,tmp,root,etc,var,sieve/build,usr/{bin,sbin,lib,lib64}}
    for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$ROOT/$folder"; done
    ln -s /run "$ROOT/var/run"
    printf "%s\n" "root:x:0:0:root:/root:/bin/sh" "nobody:x:65534:65534:nobody:/nonexistent:/bin/false" \
        >"$ROOT/etc/passwd"
    : >"$ROOT/etc/resolv.conf" # a test mounts its own there
    cp "$(command -v busybox)" "$ROOT/usr/bin/busybox"
    for package in "${packages[@]}"; do take_package "$package"; done
    # A link that no package owns.
    ln -sf mawk "$ROOT/usr/bin/awk"
    ln -sf dash "$ROOT/usr/bin/sh"
    python=$(basename "$(realpath /usr/bin/python3)")
    take_package "$python-minimal"
    # Compiled Python modules, which no package lists.
    cp -r --parents "/usr/lib/$python" /usr/lib/locale/C.utf8 "$ROOT"
    rm -rf "$ROOT/usr/lib/$python"/{test,idlelib,lib2to3,dist-packages}
    cp -r tests "$ROOT/sieve/"
    cp -r build/selftests build/xdp_sieve.bpf.o build/xdp_sieve_tc.bpf.o "$ROOT/sieve/build/"
    for folder in xdp-sieve sieve-bench bpf-tests; do
        strip --strip-debug -o "$ROOT/sieve/build/$folder" "build/$folder"
    done
    mv "$ROOT/sieve/tests/vm/init" "$ROOT/init"
    printf '%s\n' "${counts[@]}" >"$ROOT/sieve/counts"
    take_libraries
    archive "$ROOT" "$WORK/root.cpio"
}

# Several concatenated archives make one initramfs.
archive() { (cd "$1" && find . -mindepth 1 | cpio --quiet -o -H newc -R 0:0) >"$2"; }

make_initramfs() {
    local series=$1 folder name file
    local root=$WORK/modules-$series
    folder=$(echo "$VM/$series/lib/modules/"*)
    for name in "${modules[@]}"; do
        while read -r file; do
            mkdir -p "$root/usr/lib/modules/$(basename "$folder")/$(dirname "$file")"
            cp "$folder/$file" "$root/usr/lib/modules/$(basename "$folder")/$file"
        done < <(module_files "$name" "$folder")
    done
    cp "$folder"/modules.* "$root/usr/lib/modules/$(basename "$folder")/"
    printf '%s\n' "${modules[@]}" >"$root/modules"
    mkdir -p "$root/sieve"
    choose_tests "$series" "$root/sieve"
    archive "$root" "$WORK/modules.cpio"
    cat "$WORK/root.cpio" "$WORK/modules.cpio" >"$WORK/$series.cpio"
}

# --- running ------------------------------------------------------------------------------------------------

# Replaces itself with the guest (QEMU). When emulated, an ordinary grace period of RCU takes up to a second on 6.1,
# and every change of a set waits for two. Expedited grace periods promise the same. Where QEMU gets little time, the
# kernel's check of its timer would fail. It would also measure the frequency of the processor's clock (TSC) wrong, and
# then report grace periods of a minute, so it uses another clock. With programs at the same addresses every time, QEMU
# finds their code translated: the selftests, which start thousands, take a third less time. A processor that
# recommends `rep movsb` (ERMS) makes the kernel clear and copy memory that way, and QEMU emulates it byte by byte: a
# fifth of a guest's time. The kernel's watchdogs go by the clock: where QEMU gets a tenth of a processor, two seconds
# of work are a lockup to them. They wait for longer here, and still find a lockup that lasts. What guards a kernel
# against processes takes 3% of a guest's time, and none of our tests is about it. The verifier walks the same for root
# without it (VerifierCost).
boot() {
    local series=$1 processor=max kernel_options="console=ttyS0 loglevel=5 panic=-1 oops=panic norandmaps"
    kernel_options+=" mitigations=off init_on_alloc=0 hardened_usercopy=off randomize_kstack_offset=off nokaslr"
    kernel_options+=" no_timer_check tsc=unstable rcupdate.rcu_expedited=1"
    kernel_options+=" watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=120"
    [ "$accel" != tcg ] || processor+=,-erms,-smap,-smep
    exec qemu-system-x86_64 \
        -machine pc -accel "$accel" -cpu "$processor" -smp "$processors" -m "$memory" \
        -nodefaults -display none -no-reboot -monitor none \
        -kernel "$VM/$series/vmlinuz" -initrd "$WORK/$series.cpio" \
        -append "$kernel_options" \
        -serial "file:$WORK/$series.kernel" -serial "file:$WORK/$series.results" \
        >"$WORK/$series.qemu" 2>&1
}

# Ends each guest that has been silent for too long.
watch_guests() {
    local at size
    local -a said=() since=()
    while sleep 5; do
        for at in "${!wanted[@]}"; do
            [ "$(cat "/proc/${guests[at]}/comm" 2>/dev/null)" = qemu-system-x86 ] || continue
            size=$(cat "$WORK/${wanted[at]}".{kernel,results} | wc -c)
            if [ "$size" != "${said[at]-}" ]; then
                said[at]=$size since[at]=$SECONDS
            elif [ $((SECONDS - since[at])) -gt "$limit" ]; then
                kill -KILL "${guests[at]}"
            fi
        done
    done
}

# Prints the lines of one channel of the results (tests/vm/init).
channel() { sed -n "s/\r\$//; s/^$2| \?//p" "$WORK/$1.results"; }

# Reports one of this script's own tests, in the form of check_report.py.
own_test() {
    python3 -c 'import json, sys
print(json.dumps(dict(zip(("suite", "test", "verdict", "detail"), sys.argv[1:]))))' "$@"
}

report() {
    local series=$1 status=$2 suite reader ended found
    local log=$VM/$series.log
    {
        cat "$WORK/$series.results" "$WORK/$series.qemu" 2>/dev/null || true
        echo "--- kernel log:"
        tr -d '\r' <"$WORK/$series.kernel" 2>/dev/null || true
    } >"$log"
    for suite in bpf:gtest selftests:ktap; do
        reader=${suite#*:} suite=${suite%:*}
        channel "$series" "$suite" >"$WORK/log"
        channel "$series" "$suite.json" >"$WORK/json"
        ended=$(channel "$series" "$suite.status" | grep . || echo 124)
        scripts/check_report.py "$reader" "vm-$series-$suite" "$ended" "$WORK/log" "$WORK/json"
    done
    if [ "$status" -ne 0 ] || ! channel "$series" vm | grep -x 'the end' >/dev/null; then
        own_test "vm-$series" "runs to its end" fail "QEMU's exit status $status (137: hung for $limit s); see $log
$(tail -n 20 "$log")"
    else
        own_test "vm-$series" "runs to its end" pass ""
    fi
    found=$(grep -nE "$splats" "$WORK/$series.kernel" | grep -vE "$harmless" || true)
    own_test "vm-$series" "kernel log" "$([ -z "$found" ] && echo pass || echo fail)" "${found:+see $log
$(grep -E -A 30 "$splats" "$WORK/$series.kernel" | tr -d '\r')}"
}

# Ends the script with this reason if no guest can run on this machine.
skip_all() {
    for one in "${wanted[@]}"; do own_test "vm-$one" "kernel" skip "$*"; done >"$WORK/all"
    printf '%-10s %s\n' vm "$(scripts/check_report.py count "$WORK/all") ($*)"
    finish
}

finish() {
    if [ -n "$results" ]; then
        cat "$WORK/all" >>"$results"
        if grep -q '"verdict": "fail"' "$WORK/all"; then exit 1; fi
        exit 0
    fi
    status=0
    scripts/check_report.py summary "$WORK/all" tests/allowed-skips || status=$?
    exit "$status"
}

for file in build/{xdp-sieve,sieve-bench,bpf-tests,xdp_sieve.bpf.o,xdp_sieve_tc.bpf.o}; do
    [ -e "$file" ] || die "there is no $file: run make first"
done
for file in selftests vm; do make --no-print-directory -s -C "tests/$file" all; done
# All of the selftests, and those that only guests run.
selftests="$(make --no-print-directory -s -C tests/selftests --eval 'names: ; @echo $''(TEST_PROGS)' names) $(
    cd tests/selftests && echo ../vm/*.sh)"

# choose_tests SERIES FOLDER: writes what that guest runs: a filter for GoogleTest, scripts for the selftests, and
# which of their tests it leaves out.
choose_tests() {
    local name script gtest_filter='*' chosen=$selftests
    : >"$2/left_out"
    if ! $all; then
        while read -r name; do
            script=${name%%: *}
            [[ " $selftests " == *" $script "* ]] ||
                die "tests/vm/host-only names $script, which is no selftest"
            if [ "$name" = "$script" ]; then
                chosen=$(tr ' ' '\n' <<<"$chosen" | grep -vxF "$name" | tr '\n' ' ')
            else
                grep -qF "\"${name#*: }\"" "tests/selftests/$script" ||
                    die "tests/vm/host-only names a test of $script that it does not have: ${name#*: }"
                echo "${script##*/}: ${name#*: }" >>"$2/left_out"
            fi
        done < <(left_out "$1" selftests)
        while read -r name; do
            build/bpf-tests --gtest_list_tests --gtest_filter="$name" | grep '^  ' >/dev/null ||
                die "tests/vm/host-only names $name, which is no test of build/bpf-tests"
        done < <(left_out "$1" bpf)
        gtest_filter="*-$(left_out "$1" bpf | paste -sd:)"
    fi
    echo "${VMTEST_GTEST_FILTER:-$gtest_filter}" >"$2/gtest_filter"
    echo "${VMTEST_SELFTESTS:-$chosen}" >"$2/selftests"
}

for tool in qemu-system-x86_64 busybox cpio xz; do
    command -v "$tool" >/dev/null || skip_all "$tool is not installed"
done
[ "$(uname -m)" = x86_64 ] || skip_all "the guests are made of this machine's programs, which are not for x86-64"
make_root
: >"$WORK/all"
started=$SECONDS
# Runs all guests at once: most tests keep one processor busy.
for one in "${wanted[@]}"; do
    status=0
    get_kernel "$one" || status=$?
    case $status in
    0)
        make_initramfs "$one"
        boot "$one" &
        guests+=($!)
        ;;
    4) own_test "vm-$one" "kernel" skip "Debian's mirror has no linux-image-$one.*-cloud-amd64, or is out of reach" ;;
    *) own_test "vm-$one" "kernel" fail "getting a linux-image-$one.*-cloud-amd64 failed" ;;
    esac >>"$WORK/all"
    [ "$status" -eq 0 ] || guests+=(0)
done
watch_guests &
watcher=$!
for at in "${!wanted[@]}"; do
    [ "${guests[at]}" -ne 0 ] || continue
    one=${wanted[at]} status=0
    wait "${guests[at]}" || status=$?
    guests[at]=0
    report "$one" "$status" >"$WORK/one"
    cat "$WORK/one" >>"$WORK/all"
    printf '%-10s %s (%s, %d s)\n' "vm-$one" "$(scripts/check_report.py count "$WORK/one")" \
        "$(channel "$one" vm | head -n 1)" $((SECONDS - started))
done
finish
