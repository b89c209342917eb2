#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Every kind of filter: loaded, then swapped for another kind while packets flow.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
mapfile -t KINDS < <("$SIEVE" --json kinds | jq -r '.[].kind')
mapfile -t EXACT < <("$SIEVE" --json kinds | jq -r '.[] | select(.exact) | .kind')
[ "${#KINDS[@]}" -ge 5 ] || {
    echo "kinds: \`xdp-sieve kinds\` lists ${#KINDS[@]} kinds" >&2
    exit 1
}
ROUNDS=${ROUNDS:-2}

# Makes a list for each kind. The lists differ in length, and all share 150 addresses.
lists=() length=300
for kind in "${KINDS[@]}"; do
    lists+=("$kind" "$length")
    length=$((length * 2))
done
address_lists 20261121 common 150 non-members 150 "${lists[@]}"
for kind in "${KINDS[@]}"; do
    size=(--bits-per-key 30)
    [[ " ${EXACT[*]} " == *" $kind "* ]] && size=()
    "$SIEVE" -q build --kind "$kind" "${size[@]}" -o "$WORK/$kind.sieve" "$WORK/common" "$WORK/$kind"
done

# said_by KIND LIST: prints what the kind's image says of the list's first addresses. The image is asked only once.
said_by() {
    local said=$WORK/said-$1-$2
    if [ ! -e "$said" ]; then
        head -n 100 "$WORK/$2" >"$WORK/some"
        said_of "$WORK/$1.sieve" "$WORK/some" >"$said"
    fi
    cat "$said"
}

# flows_of OLD NEW: prints flows with the verdict under either kind's set.
flows_of() {
    local group
    for group in common non-members "$1" "$2"; do
        said_by "$1" "$group" >"$WORK/old"
        said_by "$2" "$group" >"$WORK/new"
        paste -d ' ' "$WORK/old" "$WORK/new" |
            awk -v group="$group" -v to="$IN4" \
                '{ print group, $2, $4, (NR % 2 ? "udp" : "tcp"), $1, to, 1000 + NR, 53 }'
    done | shuf --random-source="$OBJECT"
}

each_kind() {
    local kind
    attach
    for kind in "${KINDS[@]}"; do
        sieve -q load "$IN_IF" "set=$WORK/$kind.sieve"
        [ "$(sieve --json status "$IN_IF" | jq -r '.interfaces[0].sets[0].kind')" = "$kind" ] || fail "not $kind"
        flows_of "$kind" "$kind" | awk '{ $1 = $3 = "" } { print }' | verdicts
    done
}

# swap_to OLD NEW
swap_to() {
    local old=$1 new=$2
    flows_of "$old" "$new" >"$WORK/flows"
    sieve -q load "$IN_IF" "set=$WORK/$old.sieve"
    start_stream "$WORK/flows" "$WORK/report"
    stream_round
    tell_stream begin
    sieve -q swap "$IN_IF" "set=$WORK/$new.sieve"
    tell_stream end
    stream_round
    stop_stream || true
    jq -r '.examples[]' "$WORK/report"
    [ "$(jq .wrong "$WORK/report")" = 0 ] || fail "wrong verdicts from $old to $new"
    jq -e ".groups.common.old.sent >= 100 and .groups.common.new.sent >= 100" "$WORK/report" >/dev/null ||
        fail "too few packets before or after the swap from $old to $new"
}

# From each kind to the next, and in a second round back.
swaps() {
    local i other
    attach
    for i in "${!KINDS[@]}"; do
        other=${KINDS[(i + 1) % ${#KINDS[@]}]}
        swap_to "${KINDS[i]}" "$other"
        [ "$ROUNDS" -eq 1 ] || swap_to "$other" "${KINDS[i]}"
    done
}

# A table with a set of each kind: each set's counter counts its own members.
all_at_once() {
    local kind arguments=()
    for kind in "${KINDS[@]}"; do arguments+=("$kind=$WORK/$kind.sieve,action=count"); done
    attach
    sieve -q load "$IN_IF" "${arguments[@]}"
    head -n 50 "$WORK/common" | awk -v to="$IN4" '{ print "pass udp", $1, to, 1, 2 }' | verdicts --repeat 1
    for kind in "${KINDS[@]}"; do
        [ "$(sieve --json stats "$IN_IF" |
            jq ".interfaces[0].sets[] | select(.name == \"$kind\").packets")" = 50 ] ||
            fail "$kind counted otherwise: $(sieve --json stats "$IN_IF")"
    done
}

ktap_run \
    "each kind judges packets as query says" each_kind \
    "swaps from each kind to another under traffic, every verdict exact" swaps \
    "all kinds in one table" all_at_once
