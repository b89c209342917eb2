#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# A day of refreshes without the waiting between them: five lists, one from each sort of source, change again and
# again, and xdp-sieved follows. Its memory stays flat, and no descriptor, map, program, process or file is left over.
#
# A round is what one refresh interval brings: new lists (the same lists in every fourth round) and a question to every
# source. ROUNDS is how many; `make soak` takes 288, a day of refreshes every five minutes.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# shellcheck source=service.sh
. "$here/service.sh"
needs_daemon
command -v nginx >/dev/null || skip_all "nginx is not installed"
ROUNDS=${ROUNDS:-7}
ENTRIES=5000
SETS=(file folder http command packed)
THREADS=5 # of the daemon, but for those that refresh sets
# The kernel's map of a set's filter has the set's name, with _ for -. No other process has maps of these names.
PREFIX=d$$
METRICS=127.0.0.1:9100
# How much memory may grow. A parsed list takes 200 KiB: a leak of a quarter of one for each refresh shows in the
# sample, a leak of 4 KiB in a whole day.
MOST_KIB=$((1024 + ROUNDS * 8))

# Writes version $1 of all lists: ENTRIES + $1 addresses each. Whoever reads a list reads it whole.
write_lists() {
    local i
    for i in "${!SETS[@]}"; do
        awk -v first="$((100 + i))" -v version="$1" -v entries="$ENTRIES" 'BEGIN {
            for (i = version; i < entries + 2 * version; i++)
                printf "%d.%d.%d.%d\n", first, i / 65536, i / 256 % 256, i % 256 }' >"$LISTS/new.${SETS[i]}"
    done
    gzip -n "$LISTS/new.packed"
    mv "$LISTS/new.file" "$LISTS/file.txt"
    mv "$LISTS/new.folder" "$LISTS/folder/a.txt"
    mv "$LISTS/new.http" "$LISTS/www/list.txt"
    mv "$LISTS/new.command" "$LISTS/printed.txt"
    mv "$LISTS/new.packed.gz" "$LISTS/packed.gz"
}

start_nginx() {
    "$here/../../scripts/nginx_conf.sh" "$WORK" 127.0.0.1:8080 "$LISTS/www" >"$WORK/nginx.conf"
    inside "$IN" nginx -p "$WORK" -c "$WORK/nginx.conf" >"$WORK/nginx.said" 2>&1 &
    await inside "$IN" curl -s -o "$WORK/out" http://127.0.0.1:8080/
}

configure_day() {
    local set
    cat >"$CONFIG" <<END
[service]
state-directory = "$STATE"
listen = "$METRICS"
[[interface]]
name = "$IN_IF"
sets = [$(printf '"%s", ' "${SETS[@]/#/$PREFIX-}")]
[set.$PREFIX-file]
sources = ["lists/file.txt"]
[set.$PREFIX-folder]
sources = ["lists/folder/"]
[set.$PREFIX-http]
sources = ["http://127.0.0.1:8080/list.txt"]
[set.$PREFIX-command]
sources = [{ command = ["cat", "$LISTS/printed.txt"] }]
[set.$PREFIX-packed]
sources = ["lists/packed.gz"]
END
}

# refreshes [RESULT]: prints the number of refreshes of the set that has had the fewest.
refreshes() {
    inside "$IN" curl -sS --max-time "$PATIENCE" "http://$METRICS/metrics" >"$WORK/metrics"
    awk -v result="${1-}" -v prefix="$PREFIX-" -v sets="${#SETS[@]}" '
        /^xdp_sieve_refreshes_total\{/ && index($0, "set=\"" prefix) && index($0, "result=\"" result) {
            match($0, /set="[^"]*"/)
            count[substr($0, RSTART, RLENGTH)] += $NF
        }
        END {
            for (set in count) { n++; if (n == 1 || count[set] < fewest) fewest = count[set] }
            print n == sets ? fewest : 0
        }' "$WORK/metrics"
}
failed_refreshes() {
    awk '/^xdp_sieve_refreshes_total\{/ && /result="(failed|refused)"/ { n += $NF } END { print n + 0 }' "$WORK/metrics"
}

have_version() {
    local set
    for set in "${SETS[@]}"; do
        grep -q "set $PREFIX-$set: a new list with $((ENTRIES + $1)) entries" "$WORK/said" || return 1
    done
}
refreshed_since() { [ "$(refreshes)" -gt "$1" ]; }

# The kernel's answer for the first and the last address of the version, and for one beyond it.
in_force() {
    local i
    for i in "${!SETS[@]}"; do
        awk -v first="$((100 + i))" -v version="$1" -v entries="$ENTRIES" -v to="$IN4" 'BEGIN {
            printf "drop udp %d.%d.%d.%d %s 1 2\n", first, 0, version / 256, version % 256, to
            last = entries + 2 * version - 1
            printf "drop udp %d.%d.%d.%d %s 1 2\n", first, last / 65536, last / 256 % 256, last % 256, to }'
    done | verdicts
}

# The daemon has done all that it was asked for.
at_rest() {
    refreshes >/dev/null
    grep -q '^xdp_sieve_state{state="ready"} 1' "$WORK/metrics" && [ -z "$(pgrep -P "$daemon" || true)" ]
}

# too_many COUNT MOST: by how much the count is above.
too_many() { echo $(($1 > $2 ? $1 - $2 : 0)); }

# Prints what the daemon and its sets hold, without memory. A thread that refreshes sets begins as soon as one more than
# ever before is needed at once, at most one for each set here, and has an event. oneTBB starts a worker for each
# processor at most, whenever it first needs one. The other threads are there from the start, with as many events.
held() {
    local own events threads
    own=$(pgrep -P "$daemon" || true)
    events=$(find "/proc/$daemon/fd" -mindepth 1 -lname 'anon_inode:\[eventfd\]' | wc -l)
    threads=$(find "/proc/$daemon/task" -mindepth 1 -maxdepth 1 | wc -l)
    echo "descriptors-without-events $(($(find "/proc/$daemon/fd" -mindepth 1 | wc -l) - events))"
    echo "events-beyond-threads $(too_many "$events" "$threads")"
    echo "threads-too-many $(too_many "$threads" $((THREADS + ${#SETS[@]} + $(nproc))))"
    echo "children $(wc -w <<<"$own")"
    echo "mapped $(grep -Ec 'anon_inode:|/memfd:' "/proc/$daemon/maps" || true)"
    echo "programs-and-maps-opened $(cat "/proc/$daemon/fdinfo/"* 2>/dev/null | grep -Ec '^(prog|map)_id' || true)"
    echo "program $(program_id)"
    echo "maps-of-program $(bpftool -j prog show id "$(program_id)" | jq '.map_ids | length')"
    echo "filters-in-the-kernel $(bpftool -j map show | jq --arg prefix "${PREFIX}_" \
        '[.[] | select(.name // "" | startswith($prefix))] | length')"
    echo "files $(find "$STATE" -type f | wc -l)"
}
# The kernel frees maps after a grace period, and a child's end takes a moment.
holds() { diff "$1" <(held) >"$WORK/awaited" 2>&1; }
resident() { sed -nE 's/^VmRSS:[^0-9]*([0-9]+) kB/\1/p' "/proc/$daemon/status"; }
processor_ticks() { sed 's/.*) //' "/proc/$daemon/stat" | awk '{ print $12 + $13 + $14 + $15 }'; }

day() {
    local round version=0 warm=$((ROUNDS / 4 > 3 ? ROUNDS / 4 : 3)) before_kib=0 after_kib before ticks began
    rm -rf "$STATE" "$LISTS"
    mkdir -p "$LISTS/folder" "$LISTS/www"
    chmod 755 "$WORK"
    start_nginx
    configure_day
    write_lists 0
    service_manager
    start
    await have_version 0
    began=$(date +%s%N)
    for ((round = 1; round <= ROUNDS; round++)); do
        : >"$WORK/said"
        if ((round % 4 == 0)); then
            before=$(refreshes)
            kill -HUP "$daemon"
            await refreshed_since "$before"
        else
            version=$round
            write_lists "$version"
            kill -HUP "$daemon"
            await have_version "$version"
        fi
        if ((round == warm)); then
            in_force "$version"
            await at_rest
            held >"$WORK/held"
            before_kib=$(resident)
        fi
    done
    in_force "$version"
    await at_rest
    await holds "$WORK/held"
    after_kib=$(resident) ticks=$(processor_ticks)
    awk -v rounds="$ROUNDS" -v sets="${#SETS[@]}" -v before="$before_kib" -v after="$after_kib" -v ticks="$ticks" \
        -v hertz="$(getconf CLK_TCK)" -v took=$(($(date +%s%N) - began)) 'BEGIN {
        printf "%d rounds, %d refreshes in %.0f s, %.3f s of processor time each; ",
            rounds, rounds * sets, took / 1e9, ticks / hertz / rounds / sets
        printf "%d KiB after warming up, %d KiB at the end\n", before, after }'
    paste -sd , "$WORK/held"
    [ "$(refreshes)" -gt "$ROUNDS" ] || fail "$(grep refreshes_total "$WORK/metrics")"
    [ "$(failed_refreshes)" = 0 ] || fail "$(grep refreshes_total "$WORK/metrics")"
    [ "$(refreshes replaced)" -ge $((ROUNDS - ROUNDS / 4)) ] || fail "$(grep refreshes_total "$WORK/metrics")"
    [ $((after_kib - before_kib)) -le "$MOST_KIB" ] || fail "it has grown by more than $MOST_KIB KiB"
    stop
    [ -z "$(pgrep -P "$daemon" || true)" ] || fail "children are left"
}

ktap_run "a day of refreshes leaves nothing behind, in $ROUNDS rounds" day
