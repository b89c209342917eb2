# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Prints `=` and one number or word of a JSON text, as jq prints it. If it cannot tell what jq would print, it prints
# `?` and the whole text: lib.sh then gives the text to jq.
#
#     awk -v path='.interfaces[0].mode' -v quotes=0 -f json_value.awk [FILE]     quotes=0: a word without quotes

function here() { return depth == 0 ? "" : base[depth] (kind[depth] == "{" ? "." key[depth] : "[" count[depth] "]") }

# A number or a word, or the beginning of an object or a list.
function meet(token) {
    if (depth == 0 && roots++ > 0) unknown = 1
    if (here() != path) return
    # jq writes other numbers in a form of its own.
    if (token ~ /^-?[0-9]+$/ && length(token) < 16 || token ~ /^"[^\\]*"$/ || token == "true" || token == "false") {
        value = token
        found = 1
    } else {
        unknown = 1
    }
}

function read_token(token) {
    if (token == "{" || token == "[") {
        meet(token)
        base[depth + 1] = here()
        kind[++depth] = token
        count[depth] = 0
        expects_key = token == "{"
    } else if (token == "}" || token == "]") {
        if (depth-- == 0) unknown = 1
        expects_key = 0
    } else if (token == ",") {
        count[depth]++
        expects_key = kind[depth] == "{"
    } else if (token == ":") {
        expects_key = 0
    } else if (expects_key) {
        key[depth] = substr(token, 2, length(token) - 2)
    } else {
        meet(token)
    }
}

{
    line[NR] = rest = $0
    size += length(rest)
    if (size > 16000) unknown = 1 # jq is faster
    while (!unknown && rest ~ /[^ \t]/) {
        if (!match(rest, /^[ \t]*("([^"\\]|\\.)*"|[-+.0-9A-Za-z]+|[][{}:,])/)) {
            unknown = 1
            break
        }
        token = substr(rest, 1, RLENGTH)
        rest = substr(rest, RLENGTH + 1)
        sub(/^[ \t]+/, "", token)
        read_token(token)
    }
}

END {
    if (found && !unknown && depth == 0) {
        if (!quotes && value ~ /^"/) value = substr(value, 2, length(value) - 2)
        print "=" value
    } else {
        print "?"
        for (i = 1; i <= NR; i++) print line[i]
    }
}
