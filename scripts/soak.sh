#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Runs a command again and again while something else keeps every processor busy. A command that always passes does
# not depend on the machine's speed.
#
#     soak.sh TIMES COMMAND...
#
# Prints one line for each run. The output of run N stays in build/soak/NAME/N.log. The last line is `N runs, N
# failed`.
# Exits with 1 if a run failed.
set -euo pipefail
cd "$(dirname "$0")/.."
unset MAKEFLAGS MAKELEVEL

[ $# -ge 2 ] && [[ $1 =~ ^[1-9][0-9]*$ ]] || {
    echo "usage: soak.sh TIMES COMMAND..." >&2
    exit 2
}
times=$1
shift
logs=build/soak/$(tr -cs '[:alnum:]\n' '-' <<<"$*" | sed 's/^-*//; s/-*$//')
mkdir -p "$logs"
rm -f "$logs"/*.log

load=()
cleanup() {
    local status=$?
    trap '' HUP INT TERM
    kill "${load[@]}" 2>/dev/null || true
    exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Each busy loop ends with this script, even if the script is killed.
for ((i = 0; i < $(nproc); i++)); do
    setpriv --pdeathsig KILL sha256sum /dev/zero >/dev/null 2>&1 &
    load+=($!)
done

failed=0
for ((i = 1; i <= times; i++)); do
    status=0 started=$SECONDS
    "$@" >"$logs/$i.log" 2>&1 || status=$?
    [ "$status" -eq 0 ] || failed=$((failed + 1))
    printf '%3d  exit %d, %d s  %s\n' "$i" "$status" $((SECONDS - started)) "$(tail -n 1 "$logs/$i.log")"
done
echo "$times runs, $failed failed: $*"
[ "$failed" -eq 0 ]
