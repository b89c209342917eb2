#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Compiles the headers that most sources include, once for each set of options, and prints the options with which the
# compiler then reads what it made of them. g++ 12 also takes what was made for another -O, and crashes, so each set of
# options has a folder. What is in it is made again after one of the headers or the compiler has changed.
#
#     precompile.sh FOLDER SOURCE COMPILER OPTION...    the headers for this source
set -euo pipefail
folder=$1 source=$2
shift 2
headers=(algorithm array charconv chrono cstdint cstring filesystem functional map memory mutex optional set span
    sstream string string_view thread utility variant vector fmt/chrono.h fmt/format.h fmt/ranges.h tl/expected.hpp)
if grep -qxF "#include <gtest/gtest.h>" "$source"; then headers+=(gtest/gtest.h); fi
version=$("$@" --version)
read -r -n 16 made < <(printf '%s\n' "$version" "${headers[@]}" "${@/#-I*/}" | sha256sum)
made=$folder/$made

# state: what must stay as it is.
state() {
    # shellcheck disable=SC2046 # names of system headers hold no blanks
    stat -Lc '%n %s %Y' $(sed 's/^[^ ]*: //; s/\\$//' "$made/headers.d")
}

is_fresh() { state 2>/dev/null | cmp -s - "$made/state"; }

make_headers() {
    printf '#include <%s>\n' "${headers[@]}" >"$made/headers.hpp"
    local result=headers.hpp.gch options=()
    [[ $version != *clang* ]] || result=headers.hpp.pch options=(-fpch-instantiate-templates)
    "$@" "${options[@]}" -MD -MF "$made/headers.d" -x c++-header "$made/headers.hpp" -o "$made/$result"
    state >"$made/state"
}

if ! is_fresh; then
    mkdir -p "$made"
    exec 9>"$made/lock"
    flock 9
    is_fresh || make_headers "$@" # another compilation may have made them meanwhile
fi
echo "-include $made/headers.hpp"
