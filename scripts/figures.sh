#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Writes docs/reproduction.md, docs/attacks.md, docs/benchmark.md and docs/figures/*.svg from docs/results. An
# experiment runs only if it has no stored result. `sieve-lab run all --full --output docs/results` makes the results.
# `make bench-pages` measures, keeps the benchmark's results in docs/results/bench and runs this script.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v gnuplot >/dev/null; then
    echo "figures: gnuplot is missing; try: sudo apt-get install gnuplot-nox" >&2
    exit 1
fi
rm -rf build/figures
build/sieve-lab report --quiet
scripts/bench_figures.py docs/results/bench docs/benchmark.md build/figures
mkdir -p docs/figures
rm -f docs/figures/*.svg
for program in build/figures/*.gp; do
    gnuplot "$program"
done
# gnuplot writes its release into every picture. Remove it, so that the pictures do not change with the release.
sed -i -e 's/^<desc>Produced by GNUPLOT .*<\/desc>$/<desc>Produced by gnuplot<\/desc>/' docs/figures/*.svg
echo "docs/reproduction.md, docs/attacks.md, $(find docs/figures -name '*.svg' | wc -l) figures"
