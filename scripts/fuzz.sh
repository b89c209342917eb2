#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Runs the fuzz targets that `make fuzz-build` has built, and prints how much each has done.
#
#     fuzz.sh --check [TARGET...]             the corpus and a fixed number of mutations, the same ones every time;
#                                             prints KTAP
#     fuzz.sh --time SECONDS [TARGET...]      runs each target for SECONDS
#     fuzz.sh --runs RUNS [TARGET...]         runs each target RUNS times
#     fuzz.sh --merge [TARGET...]             adds found inputs to the corpus if they cover code that the corpus does
#                                             not cover
#
# A target's new inputs are kept in build/fuzz/found/TARGET, a crash or disagreement in build/fuzz/TARGET-crash-*.
# Exits with 1 after a crash or a disagreement.
set -euo pipefail
cd "$(dirname "$0")/.."

BUILD=build/fuzz
CORPUS=tests/fuzz/corpus
LOGS=$BUILD/logs

usage() {
    sed -n '3,14s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

mode=${1:-}
[ $# -gt 0 ] && shift
amount=
case $mode in
--time | --runs)
    amount=${1:-}
    [[ $amount =~ ^[1-9][0-9]*$ ]] || usage
    shift
    ;;
--check | --merge) ;;
*) usage ;;
esac
targets=("$@")
[ ${#targets[@]} -gt 0 ] ||
    targets=(packet image changes feed list_format capture key set_argument configuration decisions bans)

# A target's longest input, and the number of runs that `check` asks for: a few seconds each.
longest() {
    case $1 in
    packet) echo 1200 ;;
    image) echo 5000 ;;
    capture) echo 800 ;;
    changes) echo 300 ;;
    feed) echo 400 ;;
    list_format) echo 2000 ;; # an MMDB file of both families
    bans | configuration | decisions) echo 1000 ;;
    *) echo 150 ;;
    esac
}
check_runs() {
    case $1 in
    packet) echo 6000 ;;
    image) echo 4000 ;;
    changes) echo 2000 ;;
    feed) echo 1000 ;;
    configuration) echo 3000 ;;
    bans | decisions) echo 20000 ;;
    list_format) echo 800 ;;
    *) echo 50000 ;;
    esac
}

# libFuzzer writes what it finds into the first folder and reads all of them.
#
# `check` asks the same questions of two equal trees. It fixes the seed, the number of runs, the order of the corpus
# (a folder's own order depends on the file system), and the addresses (libFuzzer mutates with operands of
# comparisons, and pointers are among them). It throws away what it finds. Its time limits only stop hangs: no load on
# the machine comes near them.
run() {
    local target=$1 options=() before=() found words
    found=$BUILD/found/$target
    mkdir -p "$found" "$LOGS" "$CORPUS/$target"
    for words in "$BUILD/$target.dict" "tests/fuzz/$target.dict"; do
        [ ! -f "$words" ] || { options+=("-dict=$words") && break; }
    done
    options+=("-max_len=$(longest "$target")" "-artifact_prefix=$BUILD/$target-" -print_final_stats=1)
    options+=(-rss_limit_mb=3000)
    case $mode in
    --check)
        find "$CORPUS/$target" -type f | LC_ALL=C sort | paste -sd , | tr -d '\n' >"$SEEDS"
        before=(timeout 1200 setarch --addr-no-randomize)
        options+=("-runs=$(check_runs "$target")" -seed=1 -timeout=300 -reload=0 "-seed_inputs=@$SEEDS" "$SCRATCH")
        ;;
    --time) options+=(-timeout=20 "-max_total_time=$amount" "$found" "$CORPUS/$target") ;;
    --runs) options+=(-timeout=20 "-runs=$amount" "$found" "$CORPUS/$target") ;;
    --merge) options+=(-set_cover_merge=1 -use_counters=0 "$CORPUS/$target" "$found") ;;
    esac
    "${before[@]}" "$BUILD/$target" "${options[@]}" >"$LOGS/$target.log" 2>&1
}

# "12345 executions, 67890 packets parsed and compared with the model", of a log.
total() {
    sed -n 's/^stat::number_of_executed_units: \(.*\)/\1 executions/p; s/^total: //p' "$1" | paste -sd ',' |
        sed 's/,/, /g'
}

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
SCRATCH=$WORK/scratch SEEDS=$WORK/seeds
number=0 failed=0
[ "$mode" != --check ] || printf 'KTAP version 1\n1..%d\n' ${#targets[@]}
for target in "${targets[@]}"; do
    number=$((number + 1)) verdict=ok
    rm -rf "$SCRATCH"
    mkdir "$SCRATCH"
    run "$target" || verdict="not ok"
    if [ "$verdict" != ok ]; then
        failed=1
        grep -v '^#[0-9]' "$LOGS/$target.log" | tail -n 40 | sed 's/^/# /'
    fi
    case $mode in
    --check) echo "$verdict $number $target: $(total "$LOGS/$target.log")" ;;
    --merge) echo "$target: $(find "$CORPUS/$target" -type f | wc -l) inputs in the corpus" ;;
    *) echo "$target: $(total "$LOGS/$target.log")$([ "$verdict" = ok ] || echo ', FAILED')" ;;
    esac
done
exit "$failed"
