#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# The Debian packages as users meet them: in a Debian that debootstrap makes, they are installed by apt, used, upgraded,
# removed and purged. Needs root and Debian's mirror.
#
#     [RELEASE=trixie] chroot.sh FOLDER     with the packages that scripts/deb.sh made for that release
#
# build/deb-test keeps the Debian and what apt fetched, for the next time. All that runs inside has its own mounts and
# processes, which end with it, however it ends.
# shellcheck source=../selftests/lib.sh
. "$(dirname "$0")/../selftests/lib.sh"

DEBS=$(realpath "${1:?the folder with the packages}")
[ "$(id -u)" -eq 0 ] || skip_all "root is needed"
for tool in debootstrap dpkg-scanpackages unshare zstd; do
    command -v "$tool" >/dev/null || skip_all "$tool is not installed"
done
WORK=$(mktemp -d)
pins >"$WORK/pins"
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
SYSTEM=$WORK/debian
NEW=$(dpkg-deb -f "$(echo "$DEBS"/xdp-sieve_*.deb)" Version)
OLD=$NEW~older
PACKAGES=(xdp-sieve xdp-sieve-fleet libsieve1 libsieve-dev sieve-lab)
# What the tests use inside. What the packages need comes with them.
TOOLS=adduser,bash-completion,fish,g++,iproute2,iputils-ping,man-db,pkg-config,python3-minimal,zsh

# shellcheck source=debian.sh
. "$here/../packages/debian.sh"

repository() { makes_repository "${PACKAGES[@]}"; }

# What the packages and what they bring may leave behind: nothing. Caches, logs and what dpkg and apt keep do not count.
state() {
    find "$SYSTEM" -xdev \( -path "$SYSTEM/var/cache" -o -path "$SYSTEM/var/log" -o -path "$SYSTEM/var/lib/dpkg" \
        -o -path "$SYSTEM/var/lib/apt" -o -path "$SYSTEM/tmp" -o -path "$SYSTEM/root" \) -prune \
        -o ! -name 'ld.so.cache' ! -name '*-' -printf '/%P %y %m %U:%G\n' | sort
    cat "$SYSTEM"/etc/{passwd,group,shadow,gshadow}
}

# shellcheck disable=SC2016 # dpkg-query's own variables
version_inside() { within dpkg-query -W -f='${Version} ${db:Status-Status}' "$1"; }

installs() {
    local package
    state >"$WORK/before"
    does install "${PACKAGES[@]/%/=$OLD}"
    for package in "${PACKAGES[@]}"; do
        [ "$(version_inside "$package")" = "$OLD installed" ] || fail "$package: $(version_inside "$package")"
    done
    grep -q ':/nonexistent:/usr/sbin/nologin$' <<<"$(within getent passwd xdp-sieve)" ||
        fail "there is no user xdp-sieve"
    [ ! -e "$SYSTEM/etc/xdp-sieve/xdp-sieve.toml" ] || fail "a configuration was made"
    # The service is enabled, and starts when there is a configuration.
    [ -L "$SYSTEM/etc/systemd/system/multi-user.target.wants/xdp-sieved.service" ] || fail "the service is not enabled"
    grep -qx 'AssertPathExists=/etc/xdp-sieve/xdp-sieve.toml' "$SYSTEM/lib/systemd/system/xdp-sieved.service" ||
        fail "the service would start without a configuration"
    grep -q '^ExecStart=/usr/sbin/xdp-sieved ' "$SYSTEM/lib/systemd/system/xdp-sieved.service" ||
        fail "the service starts another program"
}

programs() {
    local said
    within sh -ec 'printf "192.0.2.%d\n" 1 2 3 >/tmp/list.txt
        xdp-sieve -q build -o /tmp/list.sieve /tmp/list.txt
        xdp-sieve query /tmp/list.sieve 192.0.2.2'
    said=$(within xdp-sieve query /tmp/list.sieve 203.0.113.9) && fail "said $said"
    [ -n "$(within sieve-lab list)" ] || fail "sieve-lab lists nothing"
    within sieve-bench --version
    within sh -c 'xdp-sieve fleet keygen --key /tmp/edge.key' | grep -q 'trusted-keys' || fail "no keys of a fleet"
    # The example is a correct configuration, with its lists.
    local example=/usr/share/doc/xdp-sieve/examples/xdp-sieve.toml
    grep -qF 'set blocklist: 2 entries' <<<"$(within xdp-sieve apply --check "$example")" ||
        fail "the example does not pass"
}

# In a network of its own: by the command line, and by ip link with the installed object.
in_force() {
    within_network sh -ec 'ip link add one type veth peer name two
        ip link set one up
        ip link set two up
        xdp-sieve -q load one bad=/tmp/list.txt
        xdp-sieve status one
        ip link set dev two xdp obj /usr/lib/xdp-sieve/xdp_sieve.bpf.o sec xdp
        xdp-sieve -q load two bad=/tmp/list.sieve
        xdp-sieve -q unload one
        xdp-sieve -q load one --hook egress out=/tmp/list.txt,key=dst
        xdp-sieve status' | tee "$WORK/said"
    [ "$(grep -c '^  bad ' "$WORK/said")" = 2 ] && grep -q '^one egress' "$WORK/said" || fail "something is missing"
}

# The test that autopkgtest runs.
smoke() {
    cp "$here/../../debian/tests/smoke" "$SYSTEM/tmp"
    within /tmp/smoke
}

# The daemon, with the installed user for its children, follows a list until it is stopped; what it did stays.
service() {
    cat >"$SYSTEM/tmp/service.toml" <<'END'
[service]
state-directory = "/tmp/state"
listen = ""
[[interface]]
name = "one"
sets = ["bad"]
[set.bad]
sources = ["/tmp/list.txt"]
END
    # shellcheck disable=SC2016 # the inner shell expands these
    within_network sh -ec 'ip link add one type veth peer name two
        ip link set one up
        ip link set two up
        xdp-sieved --check --config /tmp/service.toml
        xdp-sieved --config /tmp/service.toml --log stderr &
        left=$(($1 * 10))
        until grep -q "\"name\": *\"bad\"" <<END
$(xdp-sieve --json status one)
END
        do
            left=$((left - 1))
            [ $left -gt 0 ] && kill -0 $! || exit 1
            sleep 0.1
        done
        kill -TERM $!
        wait $!
        xdp-sieve status one' sh "$PATIENCE" >"$WORK/said" 2>&1 || fail "$(cat "$WORK/said")"
    grep -q '^  bad .* 3 ' "$WORK/said" || fail "$(cat "$WORK/said")"
}

man_pages() {
    local page
    for page in "8 xdp-sieve" "8 xdp-sieve-load" "8 xdp-sieved" "5 xdp-sieve.toml" "1 sieve-lab" "8 sieve-bench"; do
        # shellcheck disable=SC2086 # section and name
        within sh -c "MANPAGER=cat man $page" >"$WORK/page" 2>"$WORK/said" || fail "$page: $(cat "$WORK/said")"
        [ "$(wc -l <"$WORK/page")" -gt 30 ] || fail "$page is short"
        [ ! -s "$WORK/said" ] || fail "$page: $(cat "$WORK/said")"
        if grep -nE '/usr/local/(lib|share)' "$WORK/page"; then fail "$page names the wrong folder"; fi
    done
}

# Each shell finds the script by itself.
completions() {
    local said
    # shellcheck disable=SC2016 # the inner shells expand these
    said=$(within bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader xdp-sieve
        COMP_WORDS=(xdp-sieve loa) COMP_CWORD=1 COMP_LINE="xdp-sieve loa" COMP_POINT=13
        compopt() { :; }; _xdp_sieve; echo "${COMPREPLY[@]}"')
    [ "$said" = load ] || fail "bash: $said"
    # shellcheck disable=SC2016
    said=$(within zsh -fc 'autoload -U compinit; compinit -D -u; echo $_comps[xdp-sieve]')
    [ "$said" = _xdp-sieve ] || fail "zsh: $said"
    said=$(within fish -c 'complete -C "xdp-sieve loa"; complete -C "xdp-sieved --che"' | cut -f1 | xargs)
    [ "$said" = "load --check" ] || fail "fish: $said"
}

# Another project: a C program by pkg-config, and the installed example.
library() {
    cat >"$SYSTEM/tmp/ask.c" <<'END'
#include <stdio.h>
#include <libsieve/libsieve.h>
int main(int argc, char** argv) {
    libsieve_error* error = NULL;
    libsieve_image* image = NULL;
    struct libsieve_image_info info = {.size = sizeof info};
    if (argc != 2 || !libsieve_image_open(argv[1], &image, &error))
        return fprintf(stderr, "%s\n", error ? libsieve_error_message(error) : "usage: ask IMAGE"), 1;
    libsieve_image_describe(image, &info);
    printf("libsieve %s: %llu keys\n", libsieve_version(), (unsigned long long)info.keys);
    libsieve_image_free(image);
    return 0;
}
END
    # shellcheck disable=SC2016
    within sh -ec 'cd /tmp && cc -Wall -Wextra -Werror ask.c $(pkg-config --cflags --libs libsieve) -o ask
        readelf -d ask | grep -q "NEEDED.*libsieve\.so\.1\]"
        ./ask list.sieve
        cp -r /usr/share/doc/libsieve-dev/examples/build-and-ask .
        cd build-and-ask
        g++ -std=c++20 *.cpp $(pkg-config --cflags --libs libsieve) -o build-and-ask
        ./build-and-ask ../list.txt ../made.sieve 192.0.2.3' >"$WORK/said" || fail "$(cat "$WORK/said")"
    grep -q '^libsieve .*: 3 keys$' "$WORK/said" && grep -qx '192.0.2.3 present' "$WORK/said" ||
        fail "$(cat "$WORK/said")"
}

# What a user wrote stays through upgrades, until the purge.
user_files() {
    mkdir -p "$SYSTEM/var/lib/xdp-sieve/sets"
    chmod 700 "$SYSTEM/var/lib/xdp-sieve"
    printf '[[interface]]\nname = "one"\nsets = ["bad"]\n[set.bad]\nsources = ["/etc/xdp-sieve/bad.txt"]\n' \
        >"$SYSTEM/etc/xdp-sieve/xdp-sieve.toml"
    echo 203.0.113.1 >"$SYSTEM/etc/xdp-sieve/bad.txt"
    within xdp-sieve apply --check
    (cd "$SYSTEM" && find etc/xdp-sieve var/lib/xdp-sieve -type f -exec sha256sum {} + | sort) >"$WORK/mine"
}
untouched() {
    (cd "$SYSTEM" && sha256sum --quiet -c "$WORK/mine") && [ -d "$SYSTEM/var/lib/xdp-sieve/sets" ] || fail "changed"
}

upgrades() {
    local package
    user_files
    does upgrade
    for package in "${PACKAGES[@]}"; do
        [ "$(version_inside "$package")" = "$NEW installed" ] || fail "$package: $(version_inside "$package")"
    done
    untouched
    does install --reinstall "${PACKAGES[@]}"
    untouched
}

downgrades() {
    refuses "downgraded and -y was used without --allow-downgrades" install "${PACKAGES[@]/%/=$OLD}"
    does install --allow-downgrades "${PACKAGES[@]/%/=$OLD}"
    [ "$(version_inside xdp-sieve)" = "$OLD installed" ] || fail "$(version_inside xdp-sieve)"
    untouched
    does upgrade
    untouched
}

# Parts of one version only: the development files of one version with the library of another do not install.
mixed_versions() {
    refuses "libsieve-dev : Depends: libsieve1 (= $NEW)" install --allow-downgrades "libsieve1=$OLD" "libsieve-dev=$NEW"
}

removes() {
    does remove "${PACKAGES[@]}"
    [ ! -e "$SYSTEM/usr/bin/xdp-sieve" ] || fail "the program is still there"
    untouched
    does install "${PACKAGES[@]}"
    untouched
    does remove "${PACKAGES[@]}"
}

purges() {
    does purge "${PACKAGES[@]}"
    does autoremove --purge
    # What an administrator wrote is still his.
    (cd "$SYSTEM" && grep ' etc/' "$WORK/mine" | sha256sum --quiet -c) || fail "lists of the administrator are gone"
    rm -r "$SYSTEM/etc/xdp-sieve"
    rm -rf "$SYSTEM"/tmp/*
    state >"$WORK/after"
    diff "$WORK/before" "$WORK/after" || fail "left: before the packages; right: after them"
}

# Every mount was made in a namespace that has ended.
nothing_mounted() {
    if grep -F "$WORK" /proc/mounts; then fail "still mounted"; fi
}

ktap_run \
    "a Debian" makes_debian \
    "a repository" repository \
    "apt installs" installs \
    "the programs run" programs \
    "sets in force" in_force \
    "the test for autopkgtest" smoke \
    "the service" service \
    "manual pages" man_pages \
    "completions" completions \
    "a program with the library" library \
    "an upgrade" upgrades \
    "a downgrade" downgrades \
    "parts of two versions" mixed_versions \
    "removed" removes \
    "purged, nothing left" purges \
    "nothing is mounted" nothing_mounted
