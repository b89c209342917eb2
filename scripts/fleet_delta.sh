#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Measures what a node of a fleet would fetch when 1% of a list has changed: the feed, the image, and each as the
# difference to the one before. SIZES (numbers of addresses) chooses.
set -euo pipefail
cd "$(dirname "$0")/.."
SIEVE=$PWD/build/xdp-sieve
read -ra SIZES <<<"${SIZES:-120000 1000000}"
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cd "$WORK"

# packed NAME ARGUMENTS OF zstd...: prints a row with the size of what zstd makes.
packed() {
    local name=$1 begin
    shift
    begin=$(date +%s%N)
    zstd -q -f "$@" -o out 2>/dev/null
    echo "| $name | $(stat -c %s out) | $((($(date +%s%N) - begin) / 1000000)) |"
}

for size in "${SIZES[@]}"; do
    python3 - "$size" <<'END'
import random, sys
count, draw = int(sys.argv[1]), random.Random(7)
def address(): return draw.randrange(11, 100) << 24 | draw.getrandbits(24)
def write(name, values):
    with open(name, "w") as out: out.writelines("%d.%d.%d.%d\n" % tuple(v.to_bytes(4, "big")) for v in values)
first = set()
while len(first) < count: first.add(address())
before = sorted(first)
after = first - set(draw.sample(before, count // 100))
while len(after) < count: after.add(address())
write("before.txt", before)
write("after.txt", sorted(after))
shuffled = list(after)
draw.shuffle(shuffled)
write("shuffled.txt", shuffled)
END
    for name in before after; do "$SIEVE" -q build --bits-per-key 16 -o $name.sieve $name.txt; done
    echo "| $size addresses | bytes | ms |"
    echo "| --- | --- | --- |"
    echo "| feed | $(stat -c %s after.txt) | |"
    packed "feed, zstd -19" -19 after.txt
    echo "| image, 16 bits a key | $(stat -c %s after.sieve) | |"
    packed "image, zstd -19" -19 --long=27 after.sieve
    packed "image from the image before, zstd -19" -19 --long=27 --patch-from before.sieve after.sieve
    packed "feed from the feed before, zstd -9" -9 --long=27 --patch-from before.txt after.txt
    packed "feed from the feed before, zstd -19" -19 --long=27 --patch-from before.txt after.txt
    packed "the same in another order, zstd -19" -19 --long=27 --patch-from before.txt shuffled.txt
done
