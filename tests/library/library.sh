#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# The installed library as another project sees it: headers and libraries in a separate folder, found by pkg-config.
# The examples are built there without this tree, and run.
# shellcheck source=../selftests/lib.sh
. "$(dirname "$0")/../selftests/lib.sh"

ROOT=$(cd "$(dirname "$0")/../.." && pwd)
WORK=$(mktemp -d)
pins >"$WORK/pins"
trap cleanup EXIT
STAGE=$WORK/stage

export PKG_CONFIG_PATH=$STAGE/lib/pkgconfig LD_LIBRARY_PATH=$STAGE/lib

# installed EXAMPLE: copies the example out of this tree's reach.
installed() {
    rm -rf "${WORK:?}/$1"
    cp -r "$ROOT/examples/$1" "$WORK/$1"
    echo "$WORK/$1"
}

feed() { printf '192.0.2.%d\n' $(seq 1 100); }

# The installed files depend on the prefix alone, not on any build folder.
installs() {
    local unreadable
    (umask 077 && mkdir "$STAGE" && chmod 755 "$STAGE" &&
        make --no-print-directory -C "$ROOT" -s install PREFIX="$STAGE" >/dev/null)
    unreadable=$(find "$STAGE" ! -type l ! -perm -o=r -o -type d ! -perm -o=x)
    [ -z "$unreadable" ] || fail "others cannot read $unreadable"
    [ -d "$STAGE/etc/xdp-sieve" ] || fail "there is no folder for a configuration"
    "$STAGE/bin/xdp-sieve" apply --check "$STAGE/share/doc/xdp-sieve/examples/xdp-sieve.toml" >"$WORK/said" ||
        fail "the installed example is not correct"
    [ -e "$STAGE/share/doc/xdp-sieve/examples/monitoring/xdp-sieve.rules.yml" ] || fail "the alerts are not installed"
    for file in bin/xdp-sieve lib/libsieve.a lib/libsieve.so include/libsieve/libsieve.h include/sieve/image.h \
        lib/pkgconfig/libsieve.pc lib/pkgconfig/libsieve-bpf.pc lib/xdp-sieve/xdp_sieve.bpf.o; do
        [ -e "$STAGE/$file" ] || fail "$file is not installed"
    done
    [ "$(pkg-config --modversion libsieve)" = "$("$STAGE/bin/xdp-sieve" --version | cut -d' ' -f2)" ] ||
        fail "pkg-config and the program name different versions"
}

# The header declares the interface. The library must define exactly these functions.
symbols() {
    local declared defined
    declared=$(grep -oE '\blibsieve_[a-z_]+\(' "$STAGE/include/libsieve/libsieve.h" | tr -d '(' | sort -u)
    defined=$(nm -D --defined-only "$STAGE/lib/libsieve.so" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | sort -u)
    diff <(echo "$declared") <(echo "$defined") || fail "left: declared in libsieve.h; right: defined in the library"
    readelf -d "$STAGE/lib/libsieve.so" | grep -q 'SONAME.*\[libsieve\.so\.1\]' ||
        fail "the soname is not libsieve.so.1"
}

# The C header is valid C and C++. The BPF headers need only linux/types.h.
headers() {
    local language
    for language in c c++; do
        echo '#include <libsieve/libsieve.h>' |
            cc -x "$language" -Wall -Wextra -Werror -pedantic -fsyntax-only -I"$STAGE/include" -
    done
}

cxx_example() {
    local folder
    folder=$(installed build-and-ask)
    make -s -C "$folder"
    feed >"$WORK/feed.txt"
    "$folder/build-and-ask" "$WORK/feed.txt" "$WORK/set.sieve" 192.0.2.7 | tee "$WORK/said"
    grep -qx '192.0.2.7 present' "$WORK/said" || fail "a member is not present"
    "$SIEVE" query "$WORK/set.sieve" 192.0.2.100 || fail "xdp-sieve does not know the image's member"
    if "$folder/build-and-ask" "$WORK/missing.txt" "$WORK/none.sieve" 2>"$WORK/error"; then
        fail "a feed that is missing was built"
    fi
    grep -q "missing.txt" "$WORK/error" || fail "the error does not name the feed: $(cat "$WORK/error")"
}

python_example() {
    local said
    said=$(python3 "$ROOT/examples/ask.py" "$WORK/set.sieve" 192.0.2.1 192.0.2.100)
    [ "$said" = "192.0.2.1 present
192.0.2.100 present" ] || fail "ask.py said: $said"
    said=$(seq -f '198.51.%.0f.77' 0 99 | xargs python3 "$ROOT/examples/ask.py" "$WORK/set.sieve" | grep -c absent)
    [ "$said" -ge 95 ] || fail "only $said of 100 non-members are absent"
    if python3 "$ROOT/examples/ask.py" "$WORK/set.sieve" nonsense 2>"$WORK/error"; then fail "nonsense was a key"; fi
    grep -q 'ask.py: key "nonsense"' "$WORK/error" || fail "ask.py complained: $(cat "$WORK/error")"
}

# Needs the kernel: loads the guard's program and runs it on made-up packets.
bpf_example() {
    local folder said
    folder=$(installed own-xdp-program)
    make -s -C "$folder"
    feed >"$WORK/feed.txt"
    "$SIEVE" -q build --kind blocked -o "$WORK/guard.sieve" "$WORK/feed.txt"
    said=$("$folder/loader" "$folder/guard.bpf.o" "$WORK/guard.sieve" 192.0.2.1 192.0.2.100)
    [ "$said" = "192.0.2.1 drop
192.0.2.100 drop" ] || fail "the guard said: $said"
    said=$(seq -f '198.51.%.0f.77' 0 99 | xargs "$folder/loader" "$folder/guard.bpf.o" "$WORK/guard.sieve" |
        grep -c pass)
    [ "$said" -ge 95 ] || fail "the guard passed only $said of 100 non-members"
}

# Loads sets, changes them and removes them again, through the shared library alone, on an interface in a separate
# network namespace. The command line shows the result.
in_force() {
    local interface=libsieve0
    feed >"$WORK/feed.txt"
    printf '203.0.113.%d\n' 1 2 3 >"$WORK/other.txt"
    cat >"$WORK/table.cpp" <<'END'
#include <cstdio>
#include <libsieve/libsieve.hpp>
int main(int, char** argv) {
    libsieve_error* error = nullptr;
    auto arriving = libsieve::Table::on(argv[1]);
    auto leaving = libsieve::Table::on(argv[1], "egress");
    const auto fine = [](const libsieve::Status& status) {
        if (!status) std::fprintf(stderr, "%s\n", status.error().message.c_str());
        return status.has_value();
    };
    if (!fine(arriving->add("bad", argv[2])) || !fine(arriving->add("seen", argv[3], "count"))) return 1;
    if (!fine(leaving->add("c2", argv[3])) || !fine(leaving->apply())) return 2;
    // The one hook with the program is found, and its lists are of destinations.
    if (!fine(libsieve::add_set(argv[1], "more", argv[2]))) return 12;
    if (!fine(libsieve::swap_set(argv[1], "more", argv[3])) || !fine(arriving->apply())) return 13;
    // argv[4] lists the interface's own address: no change may drop it, unless it is meant.
    const auto lockout = [](const libsieve::Status& status) {
        return !status && status.error().kind == LIBSIEVE_ERROR_LOCKOUT;
    };
    auto wrong = libsieve::Table::on(argv[1]);
    if (!fine(wrong->add("bad", argv[4])) || !lockout(wrong->apply())) return 6;
    if (libsieve_swap(argv[1], nullptr, "bad", argv[4], &error)) return 7;
    if (libsieve_error_kind(error) != LIBSIEVE_ERROR_LOCKOUT) return 8;
    libsieve_error_free(error);
    if (!lockout(libsieve::swap_set(argv[1], "bad", argv[4], {}, "xdp"))) return 9;
    if (!fine(wrong->allow_lockout()) || !fine(wrong->apply()) || !fine(arriving->apply())) return 10;
    if (!fine(libsieve::swap_set(argv[1], "bad", argv[4], {.allow_lockout = true}, "xdp"))) return 11;
    if (!libsieve_swap(argv[1], nullptr, "bad", argv[3], &error)) return 3;
    if (!libsieve_remove(argv[1], nullptr, "seen", &error)) return 4;
    if (libsieve_remove(argv[1], "xdp", "seen", &error)) return 5;
    std::puts(libsieve_error_message(error));
    libsieve_error_free(error);
    return 0;
}
END
    cat >"$WORK/change.cpp" <<'END'
#include <cstdio>
#include <libsieve/libsieve.hpp>
// One thing after the other changes on the interface, and single keys of the set `live`.
int main(int, char** argv) {
    const std::string interface = argv[1];
    const auto fine = [](const auto& result) {
        if (!result) std::fprintf(stderr, "%s\n", result.error().message.c_str());
        return result.has_value();
    };
    if (!fine(libsieve::add_set(interface, "live", argv[2], {.action = "pass", .before = "bad"}, "xdp"))) return 1;
    if (!fine(libsieve::edit_set(interface, "bad", {.action = "count", .first = true}))) return 2;
    if (libsieve::edit_set(interface, "bad", {.after = "live", .last = true})) return 3; // two places
    // argv[3] lists the interface's own address, argv[4]: each way to drop it is refused, unless it is meant.
    const auto lockout = [](const auto& result) {
        return !result && result.error().kind == LIBSIEVE_ERROR_LOCKOUT;
    };
    auto own = libsieve::Keys::of(SIEVE_FIELD_SRC);
    if (!fine(own->add(argv[4])) || !fine(libsieve::edit_set(interface, "live", {.action = "drop"}))) return 20;
    if (!lockout(libsieve::insert(interface, "live", *own))) return 21;
    if (!fine(libsieve::insert(interface, "live", *own, {.allow_lockout = true}))) return 22;
    if (!fine(libsieve::edit_set(interface, "live", {.action = "pass"}))) return 23;
    if (!lockout(libsieve::edit_set(interface, "live", {.action = "drop"}))) return 24;
    if (!lockout(libsieve::add_set(interface, "all", argv[3], {.first = true}, "xdp"))) return 25;
    if (!fine(libsieve::add_set(interface, "all", argv[3], {.after = "live"}, "xdp"))) return 26;
    if (!lockout(libsieve::erase(interface, "live", *own))) return 27;
    if (libsieve_remove(argv[1], nullptr, "live", nullptr)) return 28;
    if (!lockout(libsieve::remove_set(interface, "live"))) return 29;
    if (!fine(libsieve::erase(interface, "live", *own, {.allow_lockout = true}))) return 30;
    if (!fine(libsieve::remove_set(interface, "all"))) return 31;
    if (!fine(libsieve::edit_default(interface, "drop", {}, "xdp"))) return 4;
    const auto refused = libsieve::remove_set(interface, "live");
    if (refused || refused.error().kind != LIBSIEVE_ERROR_INVALID) return 5; // the last way in
    auto keys = libsieve::Keys::of(SIEVE_FIELD_SRC), others = libsieve::Keys::of(SIEVE_FIELD_DST);
    if (!fine(keys->add("198.51.100.7")) || !fine(keys->add("192.0.2.1")) || !fine(others->add("192.0.2.1"))) return 6;
    if (libsieve::insert(interface, "live", *others)) return 7; // other fields
    if (libsieve::list_keys(interface, "live")) return 8; // none is known
    auto changed = libsieve::insert(interface, "live", *keys, {.seconds = 3600});
    if (!fine(changed) || changed->done != 1 || changed->unchanged != 1 || changed->keys != 101) return 9;
    changed = libsieve::insert(interface, "live", *keys, {.seconds = 7200});
    if (!fine(changed) || changed->done != 1 || changed->other_end != 1) return 10;
    const auto list = libsieve::list_keys(interface, "live");
    if (!fine(list) || list->keys.size() != 1 || list->unlisted != 100) return 11;
    if (list->keys[0].text != "198.51.100.7" || *list->keys[0].ends_in < std::chrono::hours(1)) return 12;
    const auto expired = libsieve::expire();
    if (!fine(expired) || *expired != 0) return 13;
    changed = libsieve::erase(interface, "live", *keys);
    if (!fine(changed) || changed->done != 2 || changed->keys != 99) return 14;
    if (!fine(libsieve::remove_set(interface, "live", {.force = true}))) return 15;
    return 0;
}
END
    # shellcheck disable=SC2046 # flags are words
    g++ -std=c++20 -O1 "$WORK/table.cpp" $(pkg-config --cflags --libs libsieve) -o "$WORK/table"
    ip netns add "$IN"
    ip -n "$IN" link add "$interface" type veth peer name libsieve1
    ip -n "$IN" link set "$interface" up
    ip -n "$IN" address add 198.51.100.200/24 dev "$interface"
    printf '%s\n' 203.0.113.9 198.51.100.200 >"$WORK/own.txt"
    inside "$IN" "$WORK/table" "$interface" "$WORK/feed.txt" "$WORK/other.txt" "$WORK/own.txt" >"$WORK/said" ||
        fail "table ended with $?"
    grep -q 'set seen' "$WORK/said" || fail "the second removal said: $(cat "$WORK/said")"
    inside "$IN" "$SIEVE" --json status "$interface" >"$WORK/status"
    jq -e '[.interfaces[] | {hook, sets: [.sets[] | {name, action, keys, key}]}] ==
        [{hook: "xdp", sets: [{name: "bad", action: "drop", keys: 3, key: "src"}]},
         {hook: "egress", sets: [{name: ("c2", "more"), action: "drop", keys: 3, key: "dst"}]}]' \
        "$WORK/status" >/dev/null || fail "in force is: $(cat "$WORK/status")"
    # shellcheck disable=SC2046 # flags are words
    g++ -std=c++20 -O1 "$WORK/change.cpp" $(pkg-config --cflags --libs libsieve) -o "$WORK/change"
    "$SIEVE" -q build --kind ddlcbf --seed 1 --bits-per-key 80 -o "$WORK/live.sieve" "$WORK/feed.txt"
    inside "$IN" "$WORK/change" "$interface" "$WORK/live.sieve" "$WORK/own.txt" 198.51.100.200 ||
        fail "change ended with $?"
    inside "$IN" "$SIEVE" --json status "$interface" >"$WORK/status"
    jq -e '.interfaces[0] | .default == "drop" and ([.sets[] | .name, .action] == ["bad", "count"])' \
        "$WORK/status" >/dev/null || fail "in force is: $(cat "$WORK/status")"
    ip netns del "$IN"
}

# The example in C: the verdicts on what no set decides, and on what cannot be read.
c_example() {
    local folder interface=libsieve0
    folder=$(installed allow-only)
    make -s -C "$folder"
    feed >"$WORK/feed.txt"
    ip netns add "$IN"
    ip -n "$IN" link add "$interface" type veth peer name libsieve1
    ip -n "$IN" link set "$interface" up
    for unreadable in drop pass; do
        inside "$IN" "$folder/allow-only" "$interface" "$WORK/feed.txt" "$unreadable"
        inside "$IN" "$SIEVE" --json status "$interface" >"$WORK/status"
        jq -e --arg unreadable "$unreadable" '.interfaces[0] | .default == "drop" and
            .unreadable.action == $unreadable and [.sets[] | .name, .action, .keys] == ["friends", "pass", 100]' \
            "$WORK/status" >/dev/null || fail "in force is: $(cat "$WORK/status")"
    done
    if inside "$IN" "$folder/allow-only" "$interface" "$WORK/feed.txt" maybe 2>"$WORK/error"; then
        fail "an unknown verdict was accepted"
    fi
    grep -q maybe "$WORK/error" || fail "the error does not name the verdict: $(cat "$WORK/error")"
    ip netns del "$IN"
}

# A program linked with the static library needs no libsieve.so.
static_library() {
    local folder
    folder=$(installed build-and-ask)
    # shellcheck disable=SC2046 # flags are words
    g++ -std=c++20 -O1 "$folder/build_and_ask.cpp" $(pkg-config --cflags libsieve) "$STAGE/lib/libsieve.a" \
        $(pkg-config --static --libs-only-l libsieve | sed 's/-lsieve//') -o "$folder/static"
    if readelf -d "$folder/static" | grep -q 'NEEDED.*libsieve'; then fail "libsieve.so is needed"; fi
    "$folder/static" "$WORK/feed.txt" "$WORK/static.sieve" 192.0.2.3 | grep -qx '192.0.2.3 present' ||
        fail "a member is not present"
}

uninstalls() {
    local left
    make --no-print-directory -C "$ROOT" -s uninstall PREFIX="$STAGE" >/dev/null
    left=$(find "$STAGE" ! -type d)
    [ -z "$left" ] || fail "left behind: $left"
}

ktap_run \
    "make install puts everything in its place" installs \
    "the shared library shows the public interface alone" symbols \
    "the C header compiles as C and as C++" headers \
    "a C++ program builds and asks" cxx_example \
    "a Python script asks through the C interface" python_example \
    "another project's XDP program asks an image" bpf_example \
    "a C++ program puts sets in force" in_force \
    "a C program puts an allowlist in force" c_example \
    "a C++ program links the static library" static_library \
    "make uninstall takes everything away" uninstalls
