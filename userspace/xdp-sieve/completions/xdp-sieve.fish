# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
# Completion of xdp-sieve's command line in fish. `xdp-sieve complete` knows the candidates.

function __xdp_sieve_candidates
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    # The program needs the word as it would get it. A word with an open quote stays as it is.
    set -l plain (string unescape -- "$current"); and set current $plain
    $before[1] complete -- $before[2..-1] "$current" 2>/dev/null
end
complete -c xdp-sieve -f -k -a '(__xdp_sieve_candidates)'
