#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Installs what building, testing and the demo need and is missing; Debian 12's own packages only.
#
#     install-deps.sh [--arm64]     with --arm64 also what cross-building and `make vmtest ARCH=arm64` need
set -euo pipefail

packages=(
    # compilers: g++ for user space, clang for BPF
    g++ make clang-19 llvm-19 clang-format clang-tidy linux-libc-dev pkg-config
    # BPF: library, dispatcher, skeleton generator
    libbpf-dev libxdp-dev bpftool libelf-dev zlib1g-dev
    # libraries
    libcli11-dev nlohmann-json3-dev libfmt-dev libexpected-dev libxxhash-dev libpcap-dev libtbb-dev
    libmnl-dev libtomlplusplus-dev
    # lists from servers and archives, read in children without rights
    libcurl4-openssl-dev libarchive-dev libseccomp-dev
    libgtest-dev libbenchmark-dev
    # what the demo and the selftests drive
    iproute2 util-linux procps python3 iputils-ping jq strace ethtool
    # servers, certificates and archives that the service's tests use
    nginx-light openssl zip zstd xz-utils
    # other XDP programs beside ours
    xdp-tools
    # what the fuzz targets and `make sanitize` run with, and `make coverage`
    libclang-rt-19-dev lcov
    # what draws the figures
    gnuplot-nox
    # what checks the style of scripts and man pages
    shellcheck mandoc
)
# What tests other kernels; without it these tests are skipped.
wishes=(qemu-system-x86 busybox-static cpio wireguard-tools)

case ${1-} in
--arm64)
    [ "$(id -u)" -ne 0 ] || dpkg --add-architecture arm64
    packages+=(g++-aarch64-linux-gnu qemu-system-arm busybox-static cpio xz-utils file)
    packages+=({libbpf,libxdp,libelf,zlib1g,libpcap,libfmt,libxxhash,libtbb,libgtest,libarchive,libseccomp}-dev:arm64
        libcurl4-openssl-dev:arm64)
    ;;
?*)
    echo "usage: install-deps.sh [--arm64]" >&2
    exit 2
    ;;
esac

native=$(dpkg --print-architecture)

# absent PACKAGE...: those that are not installed, for this machine unless they name another architecture.
absent() {
    local package name architecture
    for package; do
        name=${package%:*} architecture=$native
        [ "$name" = "$package" ] || architecture=${package#*:}
        dpkg-query -W -f='${Architecture} ${db:Status-Status}\n' "$name" 2>/dev/null |
            grep -qxE "($architecture|all) installed" || echo "$package"
    done
}

mapfile -t missing < <(absent "${packages[@]}")
mapfile -t wanted < <(absent "${wishes[@]}")
[ $((${#missing[@]} + ${#wanted[@]})) -gt 0 ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
    [ ${#missing[@]} -gt 0 ] || exit 0
    echo "install-deps: missing packages: ${missing[*]}" >&2
    echo "install-deps: run as root, or: sudo apt-get install ${missing[*]}" >&2
    exit 1
fi
echo "installing: ${missing[*]} ${wanted[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() { [ $# -eq 0 ] || apt-get install -y --no-install-recommends "$@"; }
# Packages with servers start them where nothing says no. Tests start their own.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$log" "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
if ! { apt-get update && { install "${missing[@]}" "${wanted[@]}" || install "${missing[@]}"; }; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "install-deps: apt-get failed; this project needs Debian 12 (bookworm) or newer and its package mirror" >&2
    exit 1
fi
