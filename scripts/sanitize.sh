#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Builds with clang's sanitizers and runs the tests on that build: `sudo make sanitize`.
#
#     sanitize.sh [PART...]      clang    clang++ builds each source alone and links everything, without sanitizers
#                                address  unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
#                                commands the selftests with the command line under the same
#                                thread   the tests of code that runs on several threads, under ThreadSanitizer
#
# The builds are in build/clang, build/address and build/thread. Exits with 1 if a test failed or a sanitizer reported
# anything. The environment may set SANITIZE_CXX, JOBS, and SELFTESTS (for `commands`, such as "swap.sh lock.sh").
set -euo pipefail
cd "$(dirname "$0")/.."
unset MAKEFLAGS MAKELEVEL

parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(address commands thread)
CXX=${SANITIZE_CXX:-clang++-19}
JOBS=${JOBS:-$(nproc)}
COMMON="-O1 -g1 -fno-omit-frame-pointer"
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
# Leaks are errors. A failed allocation returns a null pointer, as it does without the sanitizer.
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:detect_stack_use_after_return=1
export TSAN_OPTIONS=halt_on_error=1

# build FOLDER FLAGS TARGET... [NAME=VALUE...]
build() {
    local folder=$1 flags=$2 one targets=()
    shift 2
    for one; do
        case $one in
        *=*) targets+=("$one") ;;
        *) targets+=("build/$folder/$one") ;;
        esac
    done
    CXXFLAGS="$COMMON $flags" make --no-print-directory -j"$JOBS" CXX="$CXX" B="build/$folder" "${targets[@]}"
}

sources() { find "$@" -name '*.cpp' -printf '%p '; }

# Without `vptr`: before that check trusts an object's type, it asks the kernel whether the memory can be read, by
# system calls that the daemon's confined children may not make. It then reports sound objects.
address_flags="-fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=undefined"
# The tests of code that runs on several threads.
threaded_tests=(util build feeds filters)

status=0
for part in "${parts[@]}"; do
    echo "== $part"
    case $part in
    clang)
        make --no-print-directory -j"$JOBS" CXX="$CXX" B=build/clang GROUPED= programs tests
        ;;
    address)
        build address "$address_flags" unit-tests
        build/address/unit-tests --gtest_brief=1 || status=1
        ;;
    commands)
        build address "$address_flags" xdp-sieve xdp-sieved sieve-bench fleet/xdp-sieve fleet/xdp-sieved
        make --no-print-directory build/xdp_sieve.bpf.o build/xdp_sieve_tc.bpf.o
        SANITIZED=1 SIEVE=$PWD/build/address/xdp-sieve make --no-print-directory -s -C tests/selftests run_tests \
            ${SELFTESTS:+"TEST_PROGS=$SELFTESTS"} || status=1
        ;;
    thread)
        build thread -fsanitize=thread unit-tests \
            "UNIT_ROOMS=\$(filter-out libsieve/bench%,\$(filter libsieve/% sieve-lab/analysis,\$(ROOMS)))" \
            "SRC=tests/unit/main.cpp tests/unit/messages.cpp $(
                sources userspace tests/model "${threaded_tests[@]/#/tests/unit/}"
            )"
        # Each of these rounds builds and asks several filters, all by the same code.
        export SIEVE_TEST_FEEDS=${SIEVE_TEST_FEEDS:-5}
        echo "SIEVE_TEST_FEEDS=$SIEVE_TEST_FEEDS; without Predictions.* and Promise.*"
        # ThreadSanitizer delivers signals late, which DeferredSignals.* would notice.
        build/thread/unit-tests --gtest_brief=1 --gtest_filter='-Predictions.*:Promise.*:DeferredSignals.*' || status=1
        ;;
    *)
        echo "sanitize: no part $part" >&2
        exit 2
        ;;
    esac
done
exit "$status"
