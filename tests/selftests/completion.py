#!/usr/bin/env python3
# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
"""Types the beginning of a command line and the tab key into a real shell, and compares what the shell makes of it.

completion.py bash|zsh|fish FOLDER: reads lines of "typed => completed" on standard input; exit 1 if any differs. FOLDER
holds the completion scripts. A completed line ends in | so that blanks at its end count.
"""
import os
import pty
import re
import select
import subprocess
import sys
import time

SHELL, FOLDER = sys.argv[1:]
PATIENCE = float(os.environ.get("PATIENCE", "60"))

# Each shell gets a key, Ctrl-X Ctrl-B, that prints the line as it stands and empties it.
START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
SET_UP = {
    "bash": f"""
bind 'set enable-bracketed-paste off'
bind 'set bell-style none'
source '{FOLDER}/xdp-sieve.bash'
show_line() {{ printf '<<%s>>\\n' "$READLINE_LINE"; READLINE_LINE=; READLINE_POINT=0; }}
bind -x '"\\C-x\\C-b": show_line'
printf 'set %s\\n' up
""",
    "zsh": f"""
unsetopt beep
fpath=('{FOLDER}' $fpath)
autoload -U compinit
compinit -u -D
show_line() {{ print -r -- "<<$BUFFER>>"; BUFFER= }}
zle -N show_line
bindkey '^X^B' show_line
printf 'set %s\\n' up
""",
}


class Terminal:
    def __init__(self, shell):
        child, self.fd = pty.fork()
        if child == 0:
            environment = dict(os.environ, TERM="dumb", PS1="", LC_ALL="C.UTF-8", HISTFILE="/dev/null")
            os.execvpe(START[shell][0], START[shell], environment)
        self.child = child
        self.screen = ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait_for(self, pattern):
        """Returns the match, and forgets the screen up to its end."""
        end = time.monotonic() + PATIENCE
        while True:
            found = re.search(pattern, self.screen, re.S)
            if found:
                self.screen = self.screen[found.end():]
                return found
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                sys.exit(f"{SHELL}: not within {PATIENCE:.0f} s: {pattern}\n{self.screen}")
            self.screen += os.read(self.fd, 65536).decode(errors="replace")

    def end(self):
        self.type("\x15exit\n")
        os.waitpid(self.child, 0)


def in_terminal():
    terminal = Terminal(SHELL)
    terminal.type(SET_UP[SHELL])
    terminal.wait_for("set up\r?\n")

    def complete(typed):
        terminal.type(typed + "\t" + "\x18\x02")
        # A terminal may wrap what it shows, and a shell may redraw the line.
        return re.sub(r"\r\n?|\x1b\[[0-9;?]*[A-Za-z]", "", terminal.wait_for("<<(.*?)>>")[1])

    return complete, terminal.end


def in_fish():
    def complete(typed):
        script = f"source '{FOLDER}/xdp-sieve.fish'; complete -C \"$argv[1]\""
        said = subprocess.run(["fish", "--no-config", "-c", script, typed], capture_output=True, text=True, check=True)
        words = [line.split("\t")[0] for line in said.stdout.splitlines()]
        begin, typed_word = re.fullmatch(r"(.*?)((?:\\.|[^ ])*)", typed).groups()
        if len(words) != 1:
            return begin + (os.path.commonprefix(words) or typed_word)
        # fish appends no blank after these, for the word may go on.
        return begin + words[0] + ("" if words[0][-1] in "=,/:" else " ")

    return complete, lambda: None


complete, end = in_fish() if SHELL == "fish" else in_terminal()
cases = [line.rstrip("\n").split(" => ") for line in sys.stdin if line.strip()]
wrong = 0
for typed, expected in cases:
    expected = expected.removesuffix("|")
    got = complete(typed)
    if got != expected:
        wrong += 1
        print(f"{SHELL}: {typed}<tab>: expected [{expected}], got [{got}]")
end()
if not cases:
    sys.exit("nothing to complete")
sys.exit(1 if wrong else 0)
