#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Shows which lines of libsieve, the command line and the packet parser the tests run: `sudo make coverage`.
#
#     coverage.sh [SUITE...]     unit bpf selftests parser; all of them if none is named
#
# Builds with gcc's counters in build/coverage, runs the suites, and prints a table by room of the sources.
# build/coverage/html shows the lines themselves. Lines of include/sieve count only as far as user space runs them.
#
# Code that runs in the kernel has no counters. The suite `parser` compiles the packet parser (bpf/parse.h,
# bpf/parse_deep.h) for user space, as the fuzz target `packet` does, with clang's counters, and gives it the corpus
# and the mutations of `check`. build/coverage/parser shows its lines.
set -euo pipefail
cd "$(dirname "$0")/.."
unset MAKEFLAGS MAKELEVEL
export GROUPED= # the counters' notes go by the name of a source

suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(unit bpf selftests parser)
B=build/coverage
JOBS=${JOBS:-$(nproc)}

# -O1 merges some lines. A run of one of them then counts for the other, too.
targets=()
for suite in "${suites[@]}"; do
    case $suite in
    unit) targets+=("$B/unit-tests") ;;
    bpf) targets+=("$B/bpf-tests") ;;
    selftests) targets+=("$B/xdp-sieve") ;;
    parser) ;;
    *)
        echo "coverage: no suite $suite" >&2
        exit 2
        ;;
    esac
done
if [ ${#targets[@]} -gt 0 ]; then
    make --no-print-directory -j"$JOBS" B="$B" COVERAGE="-O1 --coverage -fprofile-update=atomic" "${targets[@]}"
    find "$B" -name '*.gcda' -delete
fi

# All but the command line are the ordinary programs.
run_selftests() {
    env -u GROUPED make --no-print-directory -j"$JOBS" programs &&
        make --no-print-directory -C tests/selftests all &&
        SIEVE=$PWD/$B/xdp-sieve make --no-print-directory -s -C tests/selftests run_tests
}

# Counts the parser's lines into $B/parser.info.
run_parser() {
    local folder=$B/parser target=$B/parser/fuzz/packet
    make --no-print-directory -j"$JOBS" B="$folder" \
        FUZZ_COUNTERS="-fprofile-instr-generate -fcoverage-mapping" "$target"
    rm -rf "$folder"/*.profraw "$folder/found"
    mkdir "$folder/found"
    LLVM_PROFILE_FILE=$folder/packet.profraw "$target" -runs=6000 -seed=1 -max_len=1200 -artifact_prefix="$folder/" \
        "$folder/found" tests/fuzz/corpus/packet 2>"$folder/packet.log" || return 1
    llvm-profdata-19 merge -o "$folder/packet.profdata" "$folder"/*.profraw
    llvm-cov-19 export -format=lcov -instr-profile="$folder/packet.profdata" "$target" bpf >"$B/parser.info"
    llvm-cov-19 show -instr-profile="$folder/packet.profdata" "$target" bpf >"$folder/lines.txt"
}

status=0
for suite in "${suites[@]}"; do
    case $suite in
    unit) "$B/unit-tests" --gtest_brief=1 || status=1 ;;
    bpf) "$B/bpf-tests" --gtest_brief=1 || status=1 ;;
    parser) run_parser || status=1 ;;
    selftests) run_selftests || status=1 ;;
    esac
done

if [ ${#targets[@]} -eq 0 ]; then
    scripts/coverage_table.py "$B/parser.info"
    exit "$status"
fi
lcov --quiet --capture --directory "$B" --base-directory . --output-file "$B/all.info" \
    --rc geninfo_adjust_src_path="$PWD" 2>"$B/lcov.log"
lcov --quiet --extract "$B/all.info" "$PWD/userspace/*" "$PWD/include/sieve/*" --output-file "$B/own.info"
genhtml --quiet --legend --prefix "$PWD" --title xdp-sieve --output-directory "$B/html" "$B/own.info"
[[ " ${suites[*]} " != *" parser "* ]] || cat "$B/parser.info" >>"$B/own.info"
scripts/coverage_table.py "$B/own.info"
echo "lines: $B/html/index.html"
exit "$status"
