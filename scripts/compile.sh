#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Compiles a source, or a group of sources (group_sources.py) at once. Two sources may use one name for different
# things; then each half of the group is compiled at once, and so on, and the objects are linked to one. That only takes
# longer. An error of a single source is an error. If PRECOMPILED names a folder, it holds precompiled headers
# (precompile.sh).
#
#     compile.sh SOURCE|GROUP OBJECT COMPILER ARGUMENT...
set -euo pipefail
group=$1 object=$2
shift 2
base=${object%.o}
# GCC 12 warns for nothing where it inlines much, and takes a source of the group for a header.
compiler=("$@" -Wno-unknown-warning-option -Wno-restrict -Wno-array-bounds -Wno-subobject-linkage)
if [ -n "${PRECOMPILED-}" ]; then
    read -ra precompiled < <(scripts/precompile.sh "$PRECOMPILED" "$group" "${compiler[@]}")
    compiler+=("${precompiled[@]}")
    # Without this, ccache keeps nothing that was compiled with them. No source tells the time of its compilation.
    export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}
fi
mapfile -t sources < <(sed -n 's/^#include "\(.*\.cpp\)"$/\1/p' "$group")
[ ${#sources[@]} -gt 0 ] || sources=("$group")
parts=()

# compile_at_once FIRST LAST: adds the objects of these sources to $parts.
compile_at_once() {
    local part=$base.part-${#parts[@]} first=$1 last=$2 middle=$((($1 + $2) / 2)) file=$group
    [ "$first" -ne "$last" ] || file=${sources[first - 1]}
    if "${compiler[@]}" -DFIRST_SOURCE="$first" -DLAST_SOURCE="$last" -MMD -MP -MF "$part.d" -MT "$object" \
        -c "$file" -o "$part.o" 2>"$part.log"; then
        [ ! -s "$part.log" ] || cat "$part.log" >&2
        parts+=("$part.o")
    elif [ "$first" -ne "$last" ]; then
        echo "$group: not at once: $(grep -m 1 'error:' "$part.log")"
        compile_at_once "$first" "$middle"
        compile_at_once $((middle + 1)) "$last"
    else
        cat "$part.log" >&2
        exit 1
    fi
}

compile_at_once 1 ${#sources[@]}
# The old dependencies hold until the object is new.
if [ ${#parts[@]} -eq 1 ]; then
    mv "${parts[0]}" "$object"
    mv "${parts[0]%.o}.d" "$base.d"
else
    ld -r "${parts[@]}" -o "$object"
    cat "${parts[@]/%.o/.d}" >"$base.d.new"
    mv "$base.d.new" "$base.d"
fi
rm -f "$base".part-*
