#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Lists on servers that want a password or a header, by the service and by commands: what is secret is in its file and
# in the request, and nowhere else.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
# shellcheck source=service.sh
. "$here/service.sh"
needs_daemon

URL=http://127.0.0.1:8080
SERVED=$WORK/www
PASSWORD=s3cret-Pa55 HEADER=h3ader-K3y

# secret NAME TEXT [MODE]: a file that only root can read.
secret() {
    mkdir -p "$WORK/secrets"
    printf '%s\n' "$2" >"$WORK/secrets/$1"
    chmod "${3-600}" "$WORK/secrets/$1"
}

# Two lists, of which one wants a user and the other a header.
serve() {
    rm -rf "$SERVED" "$STATE" "$WORK/secrets" "$WORK/served"
    mkdir -p "$SERVED"
    echo "$MEMBER" >"$SERVED/private"
    echo "reader:$PASSWORD" >"$SERVED/private.user"
    echo 203.0.113.2 >"$SERVED/keyed"
    echo "X-Key: $HEADER" >"$SERVED/keyed.header"
    echo 203.0.113.3 >"$SERVED/open"
    secret password "$PASSWORD"
    secret headers "X-Key: $HEADER"
    inside "$IN" "$here/list_server.py" 127.0.0.1 8080 "$SERVED" >"$WORK/served" &
    await_line "$WORK/served" '^listens'
}

configure_private() {
    cat >"$CONFIG" <<END
[service]
state-directory = "$STATE"
${1-}
[[interface]]
name = "$IN_IF"
sets = ["private", "keyed"]
[set.private]
sources = { url = "$URL/private", username = "reader", password-file = "secrets/password" }
[set.keyed]
sources = { url = "$URL/keyed", header-file = "secrets/headers" }
END
}

# hides FILE...: none of these files holds a secret, plain or as the request has it.
hides() {
    local word
    for word in "$PASSWORD" "$HEADER" "$(printf 'reader:%s' "$PASSWORD" | base64)"; do
        ! grep -rFl -- "$word" "$@" || fail "$word is there"
    done
}

# Writes what any user sees of the daemon, its children, and a command: arguments and environments.
processes() {
    local pid
    for pid in "$daemon" $(pgrep -P "$daemon"); do
        cat "/proc/$pid/cmdline" "/proc/$pid/environ"
    done >"$WORK/processes"
}
child_is_there() { [ -n "$(pgrep -P "$daemon")" ]; }

service_takes_them() {
    serve
    configure_private
    service_manager
    start
    says 'set private: a new list with 1 entry'
    says 'set keyed: a new list with 1 entry'
    verdicts <<END
drop udp $MEMBER $IN4 1 2
drop udp 203.0.113.2 $IN4 1 2
pass udp 203.0.113.3 $IN4 1 2
END
    touch "$SERVED/private.hangs" "$SERVED/keyed.hangs"
    kill -s HUP "$daemon"
    await child_is_there
    processes
    grep -qa -- --sieve-child "$WORK/processes" || fail "no child was seen"
    rm "$SERVED"/*.hangs
    inside "$IN" curl -sf http://127.0.0.1:19273/ >"$WORK/page"
    grep -q "$URL/private" "$WORK/page" || fail "the page does not name the source"
    inside "$IN" curl -sf http://127.0.0.1:19273/metrics >"$WORK/metrics"
    sieve --json status "$IN_IF" >"$WORK/status"
    sieve config "$CONFIG" >"$WORK/config"
    stop
    hides "$WORK/processes" "$WORK/said" "$WORK/notified" "$WORK/page" "$WORK/metrics" "$WORK/status" "$WORK/config" \
        "$STATE"
}

# The file's next password counts for the next download; until then the list stays.
rotated() {
    serve
    configure_private
    service_manager
    start
    says 'set private: a new list with 1 entry'
    echo "reader:an0ther" >"$SERVED/private.user"
    echo 203.0.113.4 >>"$SERVED/private"
    kill -s HUP "$daemon"
    says "set private: $URL/private: the server answered 401 Unauthorized, expected 200; it does not take the user"
    verdicts <<END
drop udp $MEMBER $IN4 1 2
pass udp 203.0.113.4 $IN4 1 2
END
    secret password an0ther
    kill -s HUP "$daemon"
    says 'set private: a new list with 2 entries'
    verdicts <<<"drop udp 203.0.113.4 $IN4 1 2"
    stop
    ! grep -q an0ther "$WORK/said" || fail "the log has the password"
    hides "$WORK/said"
}

# refuses FILE PATTERN: `apply` says of the file what is wrong, and nothing that it holds.
refuses() {
    sieve apply "$CONFIG" >"$WORK/out" 2>&1 && fail "it was taken: $(cat "$WORK/out")"
    grep -Eq -- "secrets/$1$2" "$WORK/out" || fail "not /secrets\/$1$2/: $(cat "$WORK/out")"
    hides "$WORK/out"
}

wrong_files() {
    local expected='expected a password in one line'
    serve
    configure_private
    sieve apply "$CONFIG"
    secret password "$PASSWORD" 644
    refuses password ': others may read or write it'
    chown 1 "$WORK/secrets/password"
    chmod 600 "$WORK/secrets/password"
    refuses password ': others may read or write it'
    rm "$WORK/secrets/password"
    refuses password ": cannot be read: No such file or directory, $expected"
    secret password ''
    refuses password ": empty, $expected"
    secret password "$PASSWORD"$'\nmore'
    refuses password ": more than one line, $expected"
    secret password "$PASSWORD"$'\t'
    refuses password ": a control character, $expected"
    printf '%s\0' "$PASSWORD" >"$WORK/secrets/password"
    refuses password ": a control character, $expected"
    head -c 100000 /dev/zero | tr '\0' x >"$WORK/secrets/password"
    refuses password ": has more than 1024 bytes, the limit, $expected"
    rm "$WORK/secrets/password"
    mkfifo -m 600 "$WORK/secrets/password"
    refuses password ": is no regular file, $expected"
    rm "$WORK/secrets/password"
    secret password "$PASSWORD"
    secret headers "X-Key $HEADER"
    refuses headers ':1: expected lines .NAME: VALUE. of a request'
    secret headers "X-Key: $HEADER"
    sieve apply "$CONFIG"
}

# A proxy for all sources of the configuration, and a source that wants none.
proxies() {
    serve
    configure_private 'proxy = "http://127.0.0.1:8080"'
    sed -i "s|$URL/private|http://lists.example/private|" "$CONFIG"
    # Whatever the environment says.
    http_proxy=http://127.0.0.1:9 sieve apply "$CONFIG"
    verdicts <<<"drop udp $MEMBER $IN4 1 2"
    sed -i 's|username =|proxy = "", username =|' "$CONFIG"
    http_proxy=http://127.0.0.1:8080 sieve apply "$CONFIG" >"$WORK/out" 2>&1 && fail "a proxy was asked"
    grep -q 'lists.example' "$WORK/out" || fail "$(cat "$WORK/out")"
}

# A password that anybody on the way can read is used, and told once: by the command, and by the daemon when it takes
# the configuration, but not at each download.
readable_on_the_way() {
    local said='the password goes over plain http, and anyone on the way can read it'
    serve
    configure_private 'proxy = "http://127.0.0.1:8080"'
    sieve apply --check "$CONFIG" >"$WORK/out" 2>&1
    ! grep -q 'plain http' "$WORK/out" || fail "of this host itself: $(cat "$WORK/out")"
    sed -i "s|$URL/private|http://lists.example/private|" "$CONFIG"
    for how in '--check' ''; do
        # shellcheck disable=SC2086
        sieve apply $how "$CONFIG" >"$WORK/out" 2>&1
        [ "$(grep -c "http://lists.example/private: $said" "$WORK/out")" = 1 ] || fail "apply $how: $(cat "$WORK/out")"
    done
    service_manager
    start
    says "warning: http://lists.example/private: $said"
    echo 203.0.113.4 >>"$SERVED/private"
    says_anew 'the configuration was read anew' kill -s HUP "$daemon"
    says 'set private: a new list with 2 entries'
    stop
    [ "$(grep -c "$said" "$WORK/said")" = 2 ] || fail "not once for each configuration: $(cat "$WORK/said")"
    sieve -q load "$IN_IF" --force \
        "bad=http://lists.example/private,proxy=$URL,username=reader,password-file=$WORK/secrets/password"
    sieve load "$IN_IF" --force \
        "bad=http://lists.example/private,proxy=$URL,username=reader,password-file=$WORK/secrets/password" 2>"$WORK/err"
    grep -q "http://lists.example/private: $said" "$WORK/err" || fail "load: $(cat "$WORK/err")"
    hides "$WORK/said" "$WORK/out" "$WORK/err"
}

# --- commands -----------------------------------------------------------------------------------------------

sets_are() { [ "$(sieve --json status "$IN_IF" | jq -c '[.interfaces[0].sets[].keys]')" = "$1" ]; }

command_takes_urls() {
    serve
    mkdir -p "$WORK/folder"
    echo 203.0.113.11 >"$WORK/folder/a.txt"
    echo 203.0.113.12 >"$WORK/folder/b.txt"
    echo 203.0.113.13 >"$WORK/folder/b.txt.bak"
    sieve load "$IN_IF" "bad=$URL/open,feed=$WORK/folder/" "one=$WORK/folder/a*"
    sets_are '[3,1]' || fail "$(sieve status "$IN_IF")"
    verdicts <<END
drop udp 203.0.113.3 $IN4 1 2
drop udp 203.0.113.12 $IN4 1 2
pass udp 203.0.113.13 $IN4 1 2
END
    sieve swap "$IN_IF" "bad=$URL/private,username=reader,password-file=$WORK/secrets/password"
    verdicts <<<"drop udp $MEMBER $IN4 1 2"
    (cd "$WORK" && sieve swap "$IN_IF" "bad=$URL/keyed,header-file=secrets/headers")
    verdicts <<<"drop udp 203.0.113.2 $IN4 1 2"
    sieve swap "$IN_IF" "bad=http://lists.example/open,proxy=$URL"
    verdicts <<<"drop udp 203.0.113.3 $IN4 1 2"
    echo "gate:$PASSWORD" >"$SERVED/open.proxy-user"
    refused 3 sieve swap "$IN_IF" "bad=http://lists.example/open,proxy=$URL"
    sieve swap "$IN_IF" \
        "bad=http://lists.example/open,proxy=$URL,proxy-username=gate,proxy-password-file=$WORK/secrets/password"
    rm "$SERVED/open.proxy-user"
    sieve --no-sandbox swap "$IN_IF" "bad=$URL/open,except=$URL/open,feed=$WORK/folder/a.txt"
    verdicts <<<"pass udp 203.0.113.3 $IN4 1 2"
    inside "$IN" "$SIEVE" -q build -o "$WORK/built.sieve" "$URL/open" "$WORK/folder"
    [ "$("$SIEVE" --json inspect "$WORK/built.sieve" | jq .keys)" = 3 ] || fail "a list is missing"
    # A filter comes from this host.
    cp "$WORK/built.sieve" "$SERVED/image"
    refused 3 sieve swap "$IN_IF" "bad=$URL/image"
}

command_says_why_not() {
    local before
    serve
    sieve load "$IN_IF" "bad=$URL/open"
    before=$(state)
    echo '<!DOCTYPE html><html>' >"$SERVED/page"
    refused 3 sieve swap "$IN_IF" "bad=$URL/none"
    refused 3 sieve swap "$IN_IF" "bad=$URL/page"
    refused_with 3 'http://127.0.0.1:9/open: Failed to connect' sieve swap "$IN_IF" bad=http://127.0.0.1:9/open
    refused 3 sieve swap "$IN_IF" "bad=$URL/private"
    refused 3 sieve swap "$IN_IF" bad=ftp://h/
    refused 3 sieve swap "$IN_IF" "bad=$WORK/secrets/*.txt"
    refused 2 sieve swap "$IN_IF" "bad=http://reader:$PASSWORD@127.0.0.1:8080/private"
    hides "$WORK/err"
    refused 2 sieve swap "$IN_IF" "bad=$URL/private,proxy=http://reader:$PASSWORD@127.0.0.1:8080"
    hides "$WORK/err"
    refused 2 sieve swap "$IN_IF" "bad=$URL/private,username=a:b,password-file=$WORK/secrets/password"
    refused 2 sieve swap "$IN_IF" "bad=$URL/private,proxy=proxy"
    chmod 644 "$WORK/secrets/password"
    refused 3 sieve swap "$IN_IF" "bad=$URL/private,username=reader,password-file=$WORK/secrets/password"
    refused 2 sieve swap "$IN_IF" "bad=$URL/private,username=reader"
    refused 2 sieve swap "$IN_IF" "bad=$WORK/folder,header-file=$WORK/secrets/headers"
    unchanged "$before"
}

ktap_run \
    "the service takes passwords and headers from files" service_takes_them \
    "a password that changes" rotated \
    "files that are wrong" wrong_files \
    "a proxy" proxies \
    "a password that others can read on its way" readable_on_the_way \
    "commands take URLs, folders and patterns" command_takes_urls \
    "commands say why they cannot" command_says_why_not
