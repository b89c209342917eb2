#!/usr/bin/env bash
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Checks the style rules that a program can check, as a KTAP test. Exit code: 0 passed, 1 failed.
set -euo pipefail
cd "$(dirname "$0")/.."
number=0 failed=0
SKIPPED=4 # a rule's exit code if it cannot be checked yet

# rule DESCRIPTION COMMAND...: the command's output says why the rule failed.
rule() {
    local description=$1 text status=0
    shift
    number=$((number + 1))
    text=$("$@" 2>&1) || status=$?
    if [ "$status" -eq 0 ]; then
        echo "ok $number $description"
    elif [ "$status" -eq "$SKIPPED" ]; then
        echo "ok $number $description # SKIP $text"
    else
        failed=1
        head -n 30 <<<"$text" | sed 's/^/# /'
        echo "not ok $number $description"
    fi
}

# files NAME...: the project's files of these names, one a line, whether or not git tracks them yet.
files() {
    local name match=()
    for name in "$@"; do match+=(-o -name "$name"); done
    find . \( -path ./.git -o -path ./build -o -path ./tests/data -o -path ./LICENSES -o -name __pycache__ \) -prune \
        -o -type f \( "${match[@]:1}" \) -print | sort
}

licence_lines() {
    local missing
    missing=$(files '*' | grep -v -e '\.md$' -e '\.svg$' -e '\.png$' -e '\.json$' -e '/LICENSE$' -e '/\.gitignore$' \
        -e '/\.clang-format$' -e '/tests/fuzz/.*corpus' -e '/tests/fuzz/seeds' -e '/debian/changelog$' \
        -e '/debian/copyright$' -e '/debian/source/format$' | tr '\n' '\0' |
        xargs -0 grep -L -I 'SPDX-License-Identifier:' || true)
    [ -z "$missing" ] || {
        echo "without an SPDX line: $missing"
        return 1
    }
}

# The kernel accepts the BPF side under the GPL only. All other files allow either licence.
licence_sides() {
    local wrong
    wrong=$(files '*.c' '*.h' '*.cpp' '*.hpp' | tr '\n' '\0' | xargs -0 grep -H -m 1 'SPDX-License-Identifier:' |
        grep -v -e '^\./bpf/.*: GPL-2\.0-only' -e '(GPL-2\.0-only OR BSD-2-Clause)' || true)
    [ -z "$wrong" ] || {
        echo "$wrong"
        return 1
    }
}

# The checker reads a library again for each script that sources it, which took three quarters of its time. All that it
# takes from one is whether `set -e` is on and which variables there are. So it reads the scripts in a copy of the tree
# in which the libraries have only those lines, and the libraries, whole, by themselves.
shell_scripts() {
    local copy status=0
    local -a scripts libraries
    mapfile -t scripts < <(files '*.sh' '*.bash' '*.postinst' '*.postrm' '*.prerm' && echo ./.ci/run)
    mapfile -t libraries < <(grep -HoP '^# shellcheck source=\K.*\.sh$' "${scripts[@]}" | sed 's|[^/]*:||' |
        xargs realpath -e --relative-to=. | sed 's|^|./|' | sort -u)
    [ ${#libraries[@]} -gt 0 ] || return 1
    copy=$(mktemp -d)
    cp --parents .shellcheckrc tests/selftests/settings "${scripts[@]}" "$copy"
    (cd "$copy" && sed -i -nE '/^(set|export|readonly) |^[A-Za-z_]+=|^# shellcheck shell=/p' "${libraries[@]}")
    mapfile -t scripts < <(printf '%s\n' "${scripts[@]}" | grep -vxFf <(printf '%s\n' "${libraries[@]}"))
    (cd "$copy" && shellcheck -x "${scripts[@]}") || status=1
    shellcheck -x "${libraries[@]}" || status=1
    rm -rf "$copy"
    return "$status"
}
python_scripts() { files '*.py' | tr '\n' '\0' | xargs -0 python3 -c '
import ast, sys
for path in sys.argv[1:]: ast.parse(open(path).read(), path)'; }
formatted() { files '*.c' '*.h' '*.cpp' '*.hpp' | tr '\n' '\0' | xargs -0 clang-format --dry-run --Werror; }
man_pages() {
    local pages status=0
    pages=$(mktemp -d)
    scripts/man_pages.py "$pages" && { files '*.8' '*.1' '*.5'; find "$pages" -type f; } | tr '\n' '\0' |
        xargs -0 mandoc -T lint -W warning || status=1
    rm -rf "$pages"
    return "$status"
}

# clang-format checks the other files.
line_length() {
    local long
    long=$(files '*.sh' '*.py' | tr '\n' '\0' | xargs -0 grep -nE '^.{121,}' || true)
    [ -z "$long" ] || {
        echo "$long"
        return 1
    }
}

# Relative links between pages must exist. docs/format.md must agree with the compiler and with a real build,
# docs/configuration.md with the list of keys.
page_links() { scripts/page_links.py; }
format_page() { scripts/format_page.py; }
abi_number() { scripts/abi_digest.py; }
configuration_page() {
    [ -x build/unit-tests ] || {
        echo "build/unit-tests is missing: run make first"
        return "$SKIPPED"
    }
    build/unit-tests --gtest_brief=1 --gtest_filter='ConfigurationTables.AreDocumented'
}

# The glossary's last table: words that have given way to others.
forbidden_words() {
    local words
    words=$(sed -n '/^## Words that style refuses/,$ p' docs/glossary.md |
        sed -n 's/^| \([a-z, ]*[a-z]\) *\(([^|]*)\)\{0,1\} *|.*/\1/p' | grep -vx 'word' | tr ',\n' '  ')
    [ -n "$words" ] || return 1
    # shellcheck disable=SC2086 # one word each
    ! git grep -inE "$(printf '%s|' $words | sed 's/|$//; s/making/in_?the_?making/')" -- \
        bpf docs examples include scripts tests userspace README.md CONTRIBUTING.md Makefile \
        ':!docs/glossary.md' ':!tests/data' ':!tests/fuzz/corpus' ':!tests/fuzz/seeds'
}
# Rooms include, and link, only rooms below them.
rooms() { scripts/rooms.py && { [ ! -d build/rooms ] || scripts/rooms.py --libraries build/rooms; }; }

# A type's name has one meaning, so no two headers define it. libsieve's own interface (api/) repeats names of the
# inside. Types within types and those of a single source are free.
type_names() {
    local twice
    twice=$(files '*.hpp' | grep '^\./userspace/libsieve/' | grep -v '^\./userspace/libsieve/api/' | tr '\n' '\0' |
        xargs -0 grep -hoP '^(?:struct|class|enum class|enum|using) (?:\[\[\w+\]\] )?\K\w+(?= =|[^;]*(?:\{|$))' |
        sort | uniq -d)
    [ -z "$twice" ] || {
        echo "two headers define each of these types: $twice"
        return 1
    }
}

# The wording of a refusal belongs to a test that exists. That a test still has the refusal, the test itself finds.
recorded_messages() {
    local place orphans=0
    while IFS= read -r place; do
        grep -qsF "\"${place#*: }\"" "tests/selftests/${place%%: *}" || {
            echo "no such test: $place"
            orphans=1
        }
    done < <(grep -hv -e '^#' -e '^ ' tests/selftests/messages/* | sort -u)
    return "$orphans"
}

# What comments and docs call by its name must have that name.
stale_names() { scripts/stale_names.py; }

echo "KTAP version 1"
echo "1..16"
rule "every file has an SPDX line" licence_lines
rule "each side has its licence" licence_sides
rule "shell scripts pass shellcheck" shell_scripts
rule "Python scripts parse" python_scripts
rule "C and C++ are formatted (make format)" formatted
rule "man pages pass mandoc" man_pages
rule "no line of a script is over 120 characters long" line_length
rule "pages link to what exists, and have one reader" page_links
rule "docs/format.md is true (scripts/format_page.py --write)" format_page
rule "docs/configuration.md has the keys (SIEVE_WRITE_DOCS=1 build/unit-tests, ConfigurationTables)" configuration_page
rule "comments and docs name what exists (scripts/stale_names.py)" stale_names
rule "no word of the glossary's last table is in use" forbidden_words
rule "recorded messages belong to tests (tests/selftests/messages)" recorded_messages
rule "rooms include only rooms below them (userspace/rooms)" rooms
rule "no two headers of libsieve define a type of the same name" type_names
rule "what packets read has its SIEVE_ABI (scripts/abi_digest.py)" abi_number
exit "$failed"
