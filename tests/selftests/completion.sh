#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Completion in bash, zsh and fish: each shell, the tab key, the real interface and its sets.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

setup
scripts=$(realpath -m "$here/../../userspace/xdp-sieve/completions")

# completes SHELL: the cases on standard input are "typed => completed|".
completes() {
    [ -e "$scripts/xdp-sieve.bash" ] || skip "the completion scripts are not here"
    command -v "$1" >/dev/null || skip "$1 is not installed"
    echo 203.0.113.1 | tee "$WORK/list.txt" >"$WORK/my list.txt"
    mkdir -p "$WORK/bin" "$WORK/a folder"
    ln -sf "$SIEVE" "$WORK/bin/xdp-sieve"
    ln -sf "${SIEVE}d" "$WORK/bin/xdp-sieved"
    sieve -q load "$IN_IF" "bad=$WORK/list.txt"
    cd "$WORK"
    PATH=$WORK/bin:$PATH inside "$IN" "$here/completion.py" "$1" "$scripts"
}

# What all shells make of it.
cases() {
    cat <<END
xdp-sieve loa => xdp-sieve load |
xdp-sieve --json unl => xdp-sieve --json unload |
xdp-sieve load --hoo => xdp-sieve load --hook |
xdp-sieve load --hook eg => xdp-sieve load --hook egress |
xdp-sieve load --hook=eg => xdp-sieve load --hook=egress |
xdp-sieve load --default dr => xdp-sieve load --default drop |
xdp-sieve build --kind dd => xdp-sieve build --kind ddlcbf |
xdp-sieve build --key src,dp => xdp-sieve build --key src,dport |
xdp-sieve unload $IN_IF --ho => xdp-sieve unload $IN_IF --hook |
xdp-sieve unload ${IN_IF%??} => xdp-sieve unload $IN_IF |
xdp-sieve remove $IN_IF b => xdp-sieve remove $IN_IF bad |
xdp-sieve swap $IN_IF b => xdp-sieve swap $IN_IF bad=|
xdp-sieve swap $IN_IF bad=lis => xdp-sieve swap $IN_IF bad=list.txt |
xdp-sieve load $IN_IF x=list.txt,act => xdp-sieve load $IN_IF x=list.txt,action=|
xdp-sieve load $IN_IF x=list.txt,action=co => xdp-sieve load $IN_IF x=list.txt,action=count |
xdp-sieve load $IN_IF x=list.txt,key=src,ds => xdp-sieve load $IN_IF x=list.txt,key=src,dst |
xdp-sieve load $IN_IF x=list.txt,redirect=cp => xdp-sieve load $IN_IF x=list.txt,redirect=cpu:|
xdp-sieve build -o out.sieve my => xdp-sieve build -o out.sieve my\\ list.txt |
xdp-sieve build -o out.sieve a => xdp-sieve build -o out.sieve a\\ folder/|
xdp-sieve build -o out.sieve my\\ l => xdp-sieve build -o out.sieve my\\ list.txt |
xdp-sieve nonsense x => xdp-sieve nonsense x|
xdp-sieve replay b=lis => xdp-sieve replay b=list.txt |
xdp-sieve replay x=b => xdp-sieve replay x=bin/|
xdp-sieved --che => xdp-sieved --check |
xdp-sieved --log jo => xdp-sieved --log journal |
xdp-sieved --config lis => xdp-sieved --config list.txt |
xdp-sieve inspect --sec => xdp-sieve inspect --secrets |
END
}

in_bash() { cases | completes bash; }
in_zsh() { cases | completes zsh; }
# fish -c completes without a terminal and quotes nothing.
in_fish() { cases | sed 's/ => \(.*\)\\ / => \1 /' | completes fish; }

# A user who may not ask the kernel gets candidates all the same.
without_rights() {
    local said
    said=$(setpriv --reuid 65534 --regid 65534 --clear-groups "$SIEVE" complete -- remove lo '' 2>&1)
    [ -z "$said" ] || fail "said: $said"
    said=$(setpriv --reuid 65534 --regid 65534 --clear-groups "$SIEVE" complete -- remo)
    [[ $said == remove* ]] || fail "no candidate"
}

# The help does not show the command that the scripts call.
not_in_help() {
    if grep -q '^ *complete ' <<<"$("$SIEVE" --help)"; then fail "the help shows it"; fi
}

ktap_run \
    "bash" in_bash \
    "zsh" in_zsh \
    "fish" in_fish \
    "without rights" without_rights \
    "a hidden command" not_in_help
