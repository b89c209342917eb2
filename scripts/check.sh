#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Builds everything and runs every test. The last line is `N passed, N failed, N skipped` over all suites.
# Exits with 0 if nothing failed. With CI=true, a skipped test counts as a failure unless tests/allowed-skips names
# it.
#
#     check.sh [SUITE...]        only these: style unit fuzz bpf service fleet selftests library packages demo vm
set -euo pipefail
cd "$(dirname "$0")/.."
unset MAKEFLAGS MAKELEVEL

[ "$(id -u)" -eq 0 ] || {
    echo "check: XDP and network namespaces need root: sudo make check" >&2
    exit 1
}
# What takes longest begins first. What stands together runs one after the other: it runs make, or has servers.
order=(vm selftests unit bpf style "packages library demo" fuzz "service fleet")
read -ra all <<<"${order[*]}"
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=("${all[@]}")
for name in "${suites[@]}"; do
    [[ " ${all[*]} " == *" $name "* ]] || {
        echo "check: no suite $name" >&2
        exit 2
    }
done

WORK=$(mktemp -d)
job=     # what this shell waits for
lanes=() # process ids
end() {
    local one
    # Running suites clean up after themselves when they receive the signal.
    for one in $job "${lanes[@]}"; do
        kill "$one" 2>/dev/null || true
        wait "$one" 2>/dev/null || true
    done
}
cleanup() {
    local status=$?
    trap '' HUP INT PIPE TERM
    end
    rm -rf "$WORK"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

# The suites start python3 many hundred times. Debian's has the packages that they import. What else the PATH may
# have first, such as a version manager's script, starts dozens of processes each time.
if [ -x /usr/bin/python3 ]; then
    mkdir "$WORK/bin"
    ln -s /usr/bin/python3 "$WORK/bin/python3"
    PATH=$WORK/bin:$PATH
fi

# note_processor_time: sets processor_time to the seconds that all commands of this shell have taken.
note_processor_time() {
    local file=$WORK/times.$BASHPID
    times >"$file" # in a subshell, `times` would tell of that one
    processor_time=$(awk 'NR == 2 { gsub("[ms]", " "); print int($1 * 60 + $2 + $3 * 60 + $4) }' "$file")
}

# suite NAME READER COMMAND...: runs the command, keeps its output, and has the reader count the tests.
suite() {
    local name=$1 reader=$2 status=0 started=$SECONDS before
    shift 2
    note_processor_time
    before=$processor_time
    "$@" >"$WORK/$name.log" 2>&1 &
    job=$!
    wait "$job" || status=$?
    job=
    scripts/check_report.py "$reader" "$name" "$status" "$WORK/$name.log" "$WORK/$name.json" >"$WORK/$name.results"
    note_processor_time
    printf '%-10s %s (%d s, processors %d s)\n' "$name" "$(scripts/check_report.py count "$WORK/$name.results")" \
        $((SECONDS - started)) $((processor_time - before))
}

# lane: runs wanted suites that no other lane has taken, until none is left.
lane() {
    local together name
    job='' lanes=()
    trap end EXIT
    trap 'exit 143' TERM
    for together in "${order[@]}"; do
        mkdir "$WORK/${together// /-}.taken" 2>/dev/null || continue
        for name in $together; do
            if [[ " ${suites[*]} " == *" $name "* ]]; then run_suite "$name"; fi
        done
    done
}

# Tests the kernel side on other kernels. This suite counts its own tests unless it fails to start.
vm_suites() {
    local status=0 before
    note_processor_time
    before=$processor_time
    scripts/vmtest.sh --results "$WORK/vm.results" >"$WORK/vm.said" 2>"$WORK/vm.log" &
    job=$!
    wait "$job" || status=$?
    job=
    cat "$WORK/vm.said"
    note_processor_time
    echo "vm         processors $((processor_time - before)) s"
    if [ ! -s "$WORK/vm.results" ]; then
        [ "$status" -ne 0 ] || status=1
        scripts/check_report.py exit vm "$status" "$WORK/vm.log" - >"$WORK/vm.results"
    fi
}

build() {
    local targets=(programs tests)
    [[ " ${suites[*]} " != *" fuzz "* ]] || targets+=(fuzz-build)
    scripts/install-deps.sh
    make --no-print-directory -j"$(nproc)" "${targets[@]}"
    make --no-print-directory -C tests/selftests all
    make --no-print-directory -C tests/vm all
}

run_suite() {
    case $1 in
    style) suite style ktap scripts/style.sh ;;
    unit) suite unit gtest build/unit-tests --gtest_color=no "--gtest_output=json:$WORK/unit.json" ;;
    fuzz) suite fuzz ktap scripts/fuzz.sh --check ;;
    bpf) suite bpf gtest build/bpf-tests --gtest_color=no "--gtest_output=json:$WORK/bpf.json" ;;
    service) suite service gtest build/service-tests --gtest_color=no "--gtest_output=json:$WORK/service.json" ;;
    fleet) suite fleet gtest build/fleet-tests --gtest_color=no "--gtest_output=json:$WORK/fleet.json" ;;
    selftests) suite selftests ktap env PROGRAMS_AT_ONCE=2 make --no-print-directory -s -C tests/selftests run_tests ;;
    library) suite library ktap tests/library/library.sh ;;
    packages) suite packages ktap tests/packages/packages.sh ;;
    demo) suite demo exit scripts/demo.sh ;;
    vm) vm_suites ;;
    esac
}

suite build exit build
if grep -q '"verdict": "fail"' "$WORK/build.results"; then
    echo "nothing else was run: the build failed"
else
    scripts/mount_bpffs.sh
    # Three lanes run beside each other: many tests wait for events much of the time.
    for _ in 1 2 3; do
        lane &
        lanes+=($!)
    done
    for one in "${lanes[@]}"; do wait "$one" || true; done # a suite without results tells
    lanes=()
    for name in "${suites[@]}"; do
        [ -s "$WORK/$name.results" ] ||
            scripts/check_report.py exit "$name" 1 "$WORK/$name.log" - >"$WORK/$name.results"
    done
fi
cat "$WORK"/*.results >"$WORK/all"
scripts/check_report.py summary "$WORK/all" tests/allowed-skips
