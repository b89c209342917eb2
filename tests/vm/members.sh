#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Asks this kernel for members of a filter of each kind, LOOKUPS times. None may be missed.
#
#     LOOKUPS=1.5e7 VMTEST_SELFTESTS=../vm/members.sh VMTEST_GTEST_FILTER=-* scripts/vmtest.sh     10^8 on each kernel
# shellcheck source=../selftests/lib.sh
. "$(dirname "$0")/../selftests/lib.sh"

: "${LOOKUPS:=200000}"

none_is_missed() {
    "$BENCH" --json --members "$LOOKUPS" --keys 3e4 >"$WORK/members"
    jq -r '.members[0].rows[] | "\(.kind): \(.asked) lookups, \(.missed) missed, \(.seconds | round) s"' "$WORK/members"
    jq -e '.members[0].rows | length > 0 and all(.asked > 0 and .missed == 0)' "$WORK/members" >/dev/null ||
        fail "members were missed"
}

setup
ktap_run "no member of any kind is missed" none_is_missed
