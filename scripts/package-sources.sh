#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Copies this tree's sources into a folder: what git tracks or would track; without git, all but what is built. Times
# stay, so that make trusts objects that are as new.
#
# The copy is for packages. DEBEMAIL and DEBFULLNAME name who answers for them, as for Debian's own tools. Where the
# tree is a clone of a repository that others can reach by https, the packages name that repository.
#
#     package-sources.sh FOLDER
set -euo pipefail
folder=$(realpath "${1:?usage: package-sources.sh FOLDER}")
cd "$(dirname "$0")/.."

sources() {
    local path
    git ls-files -z --cached --others --exclude-standard 2>/dev/null | while IFS= read -r -d '' path; do
        if [ -e "$path" ] || [ -L "$path" ]; then printf '%s\0' "$path"; fi
    done || find . -mindepth 1 \( -path ./build -o -path ./.git -o -name __pycache__ \) -prune -o ! -type d -print0
}
sources | tar -c --null --files-from=- | tar -x -C "$folder"

if [ -n "${DEBEMAIL-}" ]; then
    packager=$(printf '%s' "${DEBFULLNAME:-$DEBEMAIL} <$DEBEMAIL>" | sed 's/[&|\\]/\\&/g') # as sed writes it
    sed -i "s|^Maintainer: .*|Maintainer: $packager|" "$folder/debian/control"
    sed -i "s|^ -- .* <.*>  | -- $packager  |" "$folder/debian/changelog"
fi
repository=$([ ! -e .git ] || git remote get-url origin 2>/dev/null || true)
if [[ $repository =~ ^https://[^@[:space:]]+$ ]]; then
    sed -i "/^Maintainer:/a Homepage: ${repository%.git}\nVcs-Browser: ${repository%.git}\nVcs-Git: $repository" \
        "$folder/debian/control"
fi
