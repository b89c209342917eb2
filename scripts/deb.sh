#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Builds the Debian packages of this tree. They appear in the output folder, with the .changes file that names them.
# The build runs in a copy of the tree, so the tree itself stays as it is.
#
#     deb.sh [--output FOLDER] [--objects FOLDER]
#
#     --output     build/deb if not given; it is emptied first
#     --objects    packs the programs of this build folder, instead of compiling them as Debian does
#
# DEBEMAIL and DEBFULLNAME name who answers for these packages (scripts/package-sources.sh).
set -euo pipefail
cd "$(dirname "$0")/.."

output=build/deb objects=''
while [ $# -gt 0 ]; do
    case $1 in
    --output) output=${2:?} ;;
    --objects) objects=${2:?} ;;
    *)
        echo "usage: deb.sh [--output FOLDER] [--objects FOLDER]" >&2
        exit 2
        ;;
    esac
    shift 2
done
# It will be emptied, so it must be ours.
if [ -e "$output" ] && [ ! -e "$output/.made-by-deb.sh" ]; then
    echo "deb.sh: $output exists and was not made by deb.sh" >&2
    exit 3
fi
rm -rf "$output"
mkdir -p "$output"
touch "$output/.made-by-deb.sh"
output=$(realpath "$output")

name=xdp-sieve
tree=$output/$name
mkdir "$tree"
scripts/package-sources.sh "$tree"

# Source and binary packages from a clean tree; or binary packages only, from programs that exist.
how=()
if [ -n "$objects" ]; then
    mkdir "$tree/build"
    made=(bpf userspace rooms fleet xdp-sieve xdp-sieved sieve-lab sieve-bench)
    (cd "$objects" && tar -c "${made[@]}" ./*.a ./*.so* ./*.bpf.o) |
        tar -x -C "$tree/build"
    export DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS-} noautodbgsym"
    export DPKG_DEB_COMPRESSOR_LEVEL=0 # nobody downloads these
    how=(--build=binary --no-pre-clean)
else
    # Packages keep the times of sources that are older than they are, and a checkout sets them at will.
    released=$(dpkg-parsechangelog -l "$tree/debian/changelog" -S Timestamp)
    find "$tree" -exec touch --no-dereference --date="@$released" {} +
fi
unset MAKEFLAGS MAKELEVEL MFLAGS
if ! (cd "$tree" && dpkg-buildpackage --no-sign --jobs="$(nproc)" "${how[@]}") >"$output/build.log" 2>&1; then
    grep -nE 'error|Error' "$output/build.log" | tail -n 20 >&2 || true
    tail -n 20 "$output/build.log" >&2
    echo "deb.sh: the packages could not be built: $output/build.log" >&2
    exit 1
fi
rm -rf "$tree"
(cd "$output" && ls -- *.deb)
