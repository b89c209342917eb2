# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Completion of the command lines of xdp-sieve and xdp-sieved in fish. The programs know the candidates: their hidden
# command `complete`.

function __xdp_sieve_candidates
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    # The program needs the word as it would get it. A word with an open quote stays as it is.
    set -l plain (string unescape -- "$current"); and set current $plain
    $before[1] complete -- $before[2..-1] "$current" 2>/dev/null
end
complete -c xdp-sieve -f -k -a '(__xdp_sieve_candidates)'
complete -c xdp-sieved -f -k -a '(__xdp_sieve_candidates)'
