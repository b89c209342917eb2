# shellcheck shell=bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Completion of the command lines of xdp-sieve and xdp-sieved in bash. The programs know the candidates: their hidden
# command `complete`.

_xdp_sieve() {
    # Readline also splits words at = and :, and replaces only what follows. The program needs the whole words.
    local word words=() line
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        # What stands apart on the line is a word of its own.
        if ((${#words[@]})) && [[ $word =~ ^[=:]+$ || ${words[-1]} == *[=:] ]] &&
            [[ ${COMP_LINE:0:COMP_POINT} == *"${words[-1]}$word"* ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
    done
    local current=${words[-1]-} cut=''
    [[ $COMP_WORDBREAKS != *=* || $current != *=* ]] || cut=${current%"${current##*=}"}
    [[ $COMP_WORDBREAKS != *:* || $current != *:* ]] || cut=${current%"${current##*[:=]}"}
    COMPREPLY=()
    while IFS= read -r line; do
        line=${line%%$'\t'*}
        line=${line#"$cut"}
        # The end says whether the word may go on.
        [[ $line != *[=,/:] ]] || compopt -o nospace
        printf -v line %q "$line"
        COMPREPLY+=("${line//\\,/,}")
    done < <("${COMP_WORDS[0]}" complete -- "${words[@]//\\/}" 2>/dev/null)
}
complete -o nosort -F _xdp_sieve xdp-sieve xdp-sieved
