#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# A daemon's life at random under traffic (tests/life/life.py): lists, configuration, interfaces, servers, resources
# and state change, and a model says which packets may pass. OPERATIONS is how many; `make faults` takes 2,000. SEED
# draws them, and the same seed draws the same ones.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
SIEVED=${SIEVED:-$BUILD/xdp-sieved}
[ -x "$SIEVED" ] || skip_all "xdp-sieved is not built"
OPERATIONS=${OPERATIONS:-30} SEED=${SEED:-20261125}

life() {
    mkdir "$WORK/life"
    chmod 755 "$WORK"
    # In mounts of its own: what it mounts goes with it, and so do its network namespaces.
    BUILD=$BUILD SIEVE=$SIEVE SIEVED=$SIEVED unshare --mount --propagation private "$here/../life/life.py" \
        --work "$WORK/life" --operations "$OPERATIONS" --seed "$SEED"
}

ktap_run "$OPERATIONS operations of a daemon's life" life
