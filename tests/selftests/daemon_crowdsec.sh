#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# xdp-sieved follows a real crowdsec: from `cscli decisions` to the verdict of a packet, while crowdsec or the daemon
# ends and comes back.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# shellcheck source=service.sh
. "$here/service.sh"
needs_daemon
CROWDSEC=${SIEVE_CROWDSEC:-/var/cache/xdp-sieve/crowdsec}
[ -x "$CROWDSEC/usr/bin/crowdsec" ] || skip_all "crowdsec is not here: scripts/install-deps.sh unpacks it"
API=$WORK/crowdsec
KEY=0123456789abcdef0123456789abcdef
POLL=1

cscli() { inside "$IN" "$CROWDSEC/usr/bin/cscli" -c "$API/config.yaml" "$@" >>"$API/cscli.log" 2>&1 ||
    fail "cscli $*: $(tail -n 3 "$API/cscli.log")"; }

# Gives crowdsec an empty database.
install_crowdsec() {
    rm -rf "$API"
    mkdir -p "$API/hub"
    echo '{}' >"$API/hub/.index.json"
    : >"$API/credentials.yaml"
    cp "$CROWDSEC/etc/crowdsec/simulation.yaml" "$CROWDSEC/etc/crowdsec/profiles.yaml" "$API"
    cat >"$API/config.yaml" <<END
common: {daemonize: false, log_media: stdout, log_level: info, working_dir: $API}
config_paths:
  config_dir: $API
  data_dir: $API
  simulation_path: $API/simulation.yaml
  hub_dir: $API/hub
  index_path: $API/hub/.index.json
  notification_dir: $API/hub
  plugin_dir: $API/hub
cscli: {output: raw}
db_config: {log_level: error, type: sqlite, use_wal: true, db_path: $API/crowdsec.db}
api:
  client: {insecure_skip_verify: false, credentials_path: $API/credentials.yaml}
  server: {log_level: info, listen_uri: "127.0.0.1:8081", profiles_path: $API/profiles.yaml}
prometheus: {enabled: false}
END
    cscli machines add test --auto -f "$API/credentials.yaml"
    cscli bouncers add sieve -k "$KEY"
    (umask 077 && echo "$KEY" >"$API/key")
}
start_crowdsec() {
    # In one of our namespaces, so that end_jobs finds it.
    nsenter --net="/run/netns/$IN" "$CROWDSEC/usr/bin/crowdsec" -c "$API/config.yaml" -no-cs >>"$API/log" 2>&1 &
    crowdsec=$!
    await inside "$IN" bash -c 'exec 3<>/dev/tcp/127.0.0.1/8081' 2>/dev/null
}
stop_crowdsec() {
    kill "$crowdsec"
    wait "$crowdsec" || true
}

fresh() {
    rm -rf "$STATE"
    install_crowdsec
    start_crowdsec
    cat >"$CONFIG" <<END
[service]
state-directory = "$STATE"
[[interface]]
name = "$IN_IF"
sets = ["block"]
[set.block]
kind = "ddlcbf"
sources = { crowdsec = "http://127.0.0.1:8081", key-file = "$API/key", poll = "${POLL}s" }
END
    service_manager
}

# judges VERDICT ADDRESS: whether packets from there have this verdict now. Whoever expects a packet waits for it, so
# they are expected to be dropped.
judges() {
    local found=pass
    if verdicts <<<"drop udp $2 $IN4 1 2" >/dev/null; then found=drop; fi
    [ "$found" = "$1" ] || { echo "$2: $found" >"$WORK/awaited" && return 1; }
}
now_ms() { echo $(($(date +%s%N) / 1000000)); }

# to VERDICT ADDRESS CSCLI...: makes or deletes a decision, and waits for its effect. Prints how long that took.
to() {
    local verdict=$1 address=$2 began
    shift 2
    cscli decisions "$@"
    began=$(now_ms)
    await judges "$verdict" "$address"
    echo "cscli decisions $*: $verdict after $(($(now_ms) - began)) ms; the poll interval is ${POLL}000 ms"
}

decisions_become_verdicts() {
    fresh
    start
    judges pass "$MEMBER" && judges pass "$STRANGER" || fail "something is dropped"
    to drop "$MEMBER" add --ip "$MEMBER"
    judges pass "$STRANGER" || fail "a stranger is dropped"
    to drop 203.0.113.65 add --range 203.0.113.64/28
    judges drop "$FRIEND" || fail "not all of the range"
    judges drop "$MEMBER" || fail "the first decision has gone"
    to pass "$MEMBER" delete --ip "$MEMBER"
    judges drop "$FRIEND" || fail "the range has gone"
    to pass "$FRIEND" delete --range 203.0.113.64/28
    judges pass 203.0.113.65 || fail "not all of the range"
    # This host's own address is never taken.
    cscli decisions add --ip "$IN4"
    to drop "$MEMBER" add --ip "$MEMBER"
    says "not taken, since this host depends on them: .*$IN4"
}

# The API leaves out what the configuration does not want.
some_scenarios() {
    fresh
    sed -i 's|poll = |scenarios-not-containing = ["probing"], poll = |' "$CONFIG"
    cscli decisions add --ip "$STRANGER" --reason crowdsecurity/http-probing
    cscli decisions add --ip "$MEMBER" --reason crowdsecurity/ssh-bf
    start
    await judges drop "$MEMBER"
    judges pass "$STRANGER" || fail "not left out"
    cscli decisions add --ip "$FRIEND" --reason crowdsecurity/http-probing
    to drop 203.0.113.65 add --ip 203.0.113.65 --reason crowdsecurity/ssh-bf
    judges pass "$FRIEND" || fail "not left out of what came later"
}

# While the API is away, decisions stay, and end when they should. What came meanwhile is learnt when it is back.
the_api_comes_and_goes() {
    local program began
    fresh
    began=$(now_ms)
    cscli decisions add --ip "$MEMBER" --duration 8s
    cscli decisions add --ip "$STRANGER" --duration 1h
    start
    await judges drop "$STRANGER"
    # On a busy machine its time may be over already.
    judges drop "$MEMBER" || [ $(($(now_ms) - began)) -ge 8000 ] || fail "only one of the decisions"
    program=$(program_id)
    stop_crowdsec
    says 'warning: set block: .*onnect.*; the list with [12] entr.* stays in force'
    await_line "$WORK/notified" '^STATUS=.*set block: .*onnect'
    await judges pass "$MEMBER" # its time is over
    judges drop "$STRANGER" || fail "the other has gone, too"
    start_crowdsec
    to pass "$STRANGER" delete --ip "$STRANGER"
    to drop "$MEMBER" add --ip "$MEMBER"
    [ "$(program_id)" = "$program" ] || fail "another program"
}

# The daemon is killed, and started while the API is away: what it knew is in force as before, and ends in time. When
# the API is back, it has both what came and what went meanwhile.
the_daemon_comes_and_goes() {
    local program began
    fresh
    began=$(now_ms)
    cscli decisions add --ip "$MEMBER" --duration 10s
    cscli decisions add --ip "$STRANGER" --duration 1h
    cscli decisions add --ip "$FRIEND" --duration 1h
    start
    await judges drop "$FRIEND"
    # On a busy machine its time may be over already.
    judges drop "$MEMBER" || [ $(($(now_ms) - began)) -ge 10000 ] || fail "the decision of ten seconds is missing"
    judges drop "$STRANGER" || fail "not all decisions"
    program=$(program_id)
    stop KILL 137
    cscli decisions delete --ip "$FRIEND"
    stop_crowdsec
    judges drop "$FRIEND" || fail "the end of the daemon has changed a verdict"
    start
    says "$IN_IF: taken over as it runs"
    judges drop "$FRIEND" && judges drop "$STRANGER" || fail "the start has changed a verdict"
    await judges pass "$MEMBER"
    # A start with nothing in the kernel: the list and its journal are all that there is.
    stop KILL 137
    reset_interfaces
    judges pass "$STRANGER" || fail "still attached"
    start
    says "$IN_IF: attached"
    await judges drop "$STRANGER"
    judges drop "$FRIEND" || fail "a decision was forgotten"
    judges pass "$MEMBER" || fail "a decision has come back"
    start_crowdsec
    await judges pass "$FRIEND"
    judges drop "$STRANGER" || fail "a decision was forgotten"
    to drop "$MEMBER" add --ip "$MEMBER"
    [ "$(program_id)" != "$program" ] || fail "the first program has come back"
    stop
    judges drop "$STRANGER" || fail "the stop has changed a verdict"
}

# The state directory is gone or damaged, and the API is away: what is in force stays, until crowdsec has said all of
# its list.
what_is_kept_is_lost() {
    local loss
    for loss in "rm -r $STATE" "truncate -s -9 $STATE/sets/block/*.list $STATE/sets/block-ranges/*.list"; do
        fresh
        cscli decisions add --ip "$MEMBER" --duration 1h
        cscli decisions add --range 203.0.113.64/28 --duration 1h
        start
        await judges drop "$MEMBER"
        await judges drop 203.0.113.65
        stop KILL 137
        stop_crowdsec
        bash -c "$loss"
        start
        says "set block: .*; what is in force, if anything is, stays until the sources have said all of their lists"
        says "set block-ranges: .*; what is in force, if anything is, stays until the sources have said all"
        judges drop "$MEMBER" && judges drop 203.0.113.65 || fail "after $loss, a member passes"
        start_crowdsec
        to drop "$STRANGER" add --ip "$STRANGER"
        judges drop "$MEMBER" && judges drop 203.0.113.65 || fail "after $loss and crowdsec's list, a member passes"
        to pass "$MEMBER" delete --ip "$MEMBER"
        to pass 203.0.113.65 delete --range 203.0.113.64/28
        judges drop "$STRANGER" || fail "a decision was forgotten"
        stop
        stop_crowdsec
        reset_interfaces
    done
}

ktap_run \
    "decisions of cscli become verdicts" decisions_become_verdicts \
    "decisions of some scenarios are left out" some_scenarios \
    "the API ends and comes back" the_api_comes_and_goes \
    "the daemon is killed and comes back" the_daemon_comes_and_goes \
    "the state directory is lost" what_is_kept_is_lost
