#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Shows which lines of libsieve and the command line the tests run: `sudo make coverage`.
#
#     coverage.sh [SUITE...]     unit bpf selftests; all of them if none is named
#
# Builds with gcc's counters in build/coverage, runs the suites, and prints a table by room of the sources.
# build/coverage/html shows the lines themselves. Code that runs in the kernel has no counters, so the packet path is
# missing. Lines of include/sieve count only as far as user space runs them.
set -euo pipefail
cd "$(dirname "$0")/.."
unset MAKEFLAGS MAKELEVEL

suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(unit bpf selftests)
B=build/coverage
JOBS=${JOBS:-$(nproc)}

# -O1 merges some lines. A run of one of them then counts for the other, too.
targets=()
for suite in "${suites[@]}"; do
    case $suite in
    unit) targets+=("$B/unit-tests") ;;
    bpf) targets+=("$B/bpf-tests") ;;
    selftests) targets+=("$B/xdp-sieve") ;;
    *)
        echo "coverage: no suite $suite" >&2
        exit 2
        ;;
    esac
done
make --no-print-directory -j"$JOBS" B="$B" COVERAGE="-O1 --coverage -fprofile-update=atomic" "${targets[@]}"
find "$B" -name '*.gcda' -delete

status=0
for suite in "${suites[@]}"; do
    case $suite in
    unit) "$B/unit-tests" --gtest_brief=1 || status=1 ;;
    bpf) "$B/bpf-tests" --gtest_brief=1 || status=1 ;;
    selftests) SIEVE=$PWD/$B/xdp-sieve make --no-print-directory -s -C tests/selftests run_tests || status=1 ;;
    esac
done

lcov --quiet --capture --directory "$B" --base-directory . --output-file "$B/all.info" \
    --rc geninfo_adjust_src_path="$PWD" 2>"$B/lcov.log"
lcov --quiet --extract "$B/all.info" "$PWD/userspace/*" "$PWD/include/sieve/*" --output-file "$B/own.info"
genhtml --quiet --legend --prefix "$PWD" --title xdp-sieve --output-directory "$B/html" "$B/own.info"
scripts/coverage_table.py "$B/own.info"
echo "lines: $B/html/index.html"
exit "$status"
