#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Kills a command, or fails it, at its system calls in turn while packets flow (tests/faults/faults.py). This test
# takes a sample, always the same; `make faults` takes all calls. FAULTS holds faults.py's options for selecting
# calls. FAULT_CASES and FAULT_HOOKS select the cases and the hooks.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

[ -z "${SANITIZED:-}" ] || skip_all "a sanitizer ends the program where a call of its own fails"
setup
[ -x "$BUILD/selftests/inject" ] || skip_all "inject is not built: make -C tests/selftests"
exec {progress}>&2
read -ra choice <<<"${FAULTS---sample ${FAULT_PLACES:-2}}"

faults() {
    local work
    work=$(mktemp -d -p "$WORK")
    BUILD=$BUILD SIEVE=$SIEVE "$here/../faults/faults.py" "$1" --hook "$2" --work "$work" --inside "$IN/$IN_IF" \
        --outside "$OUT/$OUT_IF" --progress "$progress" "${choice[@]}"
}

tests=()
for hook in ${FAULT_HOOKS:-xdp egress}; do
    # A case that does not depend on the hook runs at one hook only.
    common="load swap remove unload"
    [ "$hook" != xdp ] || common+=" table set add default"
    [ "$hook" != xdp ] || common+=" insert insert_for expire delete insert_verified delete_verified"
    for name in ${FAULT_CASES:-$common}; do
        eval "${name}_at_$hook() { faults $name $hook; }"
        tests+=("$name at $hook" "${name}_at_$hook")
    done
done
ktap_run "${tests[@]}"
