#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Copies this tree's sources into a folder: what git tracks or would track; without git, all but what is built. Times
# stay, so that make trusts objects that are as new.
#
#     copy-sources.sh FOLDER
set -euo pipefail
folder=$(realpath "${1:?usage: copy-sources.sh FOLDER}")
cd "$(dirname "$0")/.."

sources() {
    local path
    git ls-files -z --cached --others --exclude-standard 2>/dev/null | while IFS= read -r -d '' path; do
        if [ -e "$path" ] || [ -L "$path" ]; then printf '%s\0' "$path"; fi
    done || find . -mindepth 1 \( -path ./build -o -path ./.git -o -name __pycache__ \) -prune -o ! -type d -print0
}
sources | tar -c --null --files-from=- | tar -x -C "$folder"
