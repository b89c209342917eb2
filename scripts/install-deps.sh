#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Installs the packages that building, testing and the demo need and that are missing; only packages of Debian 12.
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
    # fetching lists from servers and unpacking archives, in children without privileges
    libcurl4-openssl-dev libarchive-dev libseccomp-dev
    # digests and signatures of a fleet's manifests
    libssl-dev libzstd-dev
    # the daemon's event loop, notifications and journal
    libsystemd-dev
    # metrics and the status page
    prometheus-cpp-dev libmicrohttpd-dev
    libgtest-dev libbenchmark-dev
    # the demo and the selftests run these
    iproute2 util-linux procps python3 iputils-ping curl gojq strace ethtool busybox-static
    # the other ends of what replies let in: sessions and leases
    openssh-server openssh-client dnsmasq-base dhcpcd-base
    # servers, certificates and archives for the service's tests
    nginx-light openssl zip zstd xz-utils
    # what libmaxminddb says of the MMDB files that tests write
    mmdb-bin
    # the fleet's tests
    etcd-server etcd-client
    # what `make bench` compares with
    nftables iptables ipset
    # other XDP programs, for tests that run beside them and for `make bench`
    xdp-tools
    # for the fuzz targets, `make sanitize` and `make coverage`
    libclang-rt-19-dev lcov
    # draws the figures
    gnuplot-nox
    # check the style of scripts and man pages
    shellcheck mandoc
    # shells, whose completions are tested
    zsh fish bash-completion
    # Debian packages and their tests
    dpkg-dev debhelper lintian debootstrap
)
# For tests on other kernels, and of the status page in a browser. Without these packages those tests are skipped.
wishes=(qemu-system-x86 cpio wireguard-tools chromium)

case ${1-} in
--arm64)
    [ "$(id -u)" -ne 0 ] || dpkg --add-architecture arm64
    packages+=(g++-aarch64-linux-gnu qemu-system-arm busybox-static cpio xz-utils file)
    packages+=({libbpf,libxdp,libelf,zlib1g,libpcap,libfmt,libxxhash,libtbb,libmnl,libgtest}-dev:arm64
        {libarchive,libseccomp}-dev:arm64
        libsystemd-dev:arm64 libcurl4-openssl-dev:arm64 libssl-dev:arm64 libzstd-dev:arm64 libmicrohttpd-dev:arm64
        libprometheus-cpp-core1.0:arm64)
    ;;
?*)
    echo "usage: install-deps.sh [--arm64]" >&2
    exit 2
    ;;
esac

native=$(dpkg --print-architecture)

# absent PACKAGE...: prints the packages that are not installed. A package without an architecture means this
# machine's.
absent() {
    local package
    local -A there=()
    while read -r package; do there[$package]=1; done < <(
        dpkg-query -W -f='${Package}:${Architecture} ${db:Status-Status}\n' "${@%:*}" 2>/dev/null |
            sed -n 's/ installed$//p'
    )
    for package; do
        [[ $package == *:* ]] || package=$package:$native
        [ -n "${there[$package]-}${there[${package%:*}:all]-}" ] || echo "${package%":$native"}"
    done
}

# CrowdSec, fail2ban, GoBGP and Prometheus, whose promtool judges metrics and alert rules, for the service's tests. They
# are unpacked only: CrowdSec's installation script needs its makers' servers, and the others would run. Without them
# those tests are skipped.
unpacked=/var/cache/xdp-sieve
# unpack PACKAGE PROGRAM
unpack() {
    [ "$(id -u)" -eq 0 ] && [ ! -x "$unpacked/$1/usr/bin/$2" ] || return 0
    local folder
    folder=$(mktemp -d)
    if (cd "$folder" && timeout 300 apt-get -q -o APT::Sandbox::User=root download "$1") >/dev/null 2>&1; then
        mkdir -p "$unpacked"
        dpkg-deb -x "$folder/$1"_*.deb "$unpacked/$1.new" && rm -rf "${unpacked:?}/$1" &&
            mv "$unpacked/$1.new" "$unpacked/$1"
    fi
    rm -rf "$folder"
}
unpack_all() {
    unpack crowdsec crowdsec
    unpack fail2ban fail2ban-server
    unpack gobgpd gobgp
    unpack prometheus promtool
}

mapfile -t missing < <(absent "${packages[@]}")
mapfile -t wanted < <(absent "${wishes[@]}")
if [ $((${#missing[@]} + ${#wanted[@]})) -eq 0 ]; then
    unpack_all
    exit 0
fi

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
# Packages start their servers unless a policy forbids it. Tests start their own servers.
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
unpack_all
