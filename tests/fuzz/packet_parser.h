/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The packet path's parser (bpf/parse.h) as functions of user space, one for each hook. packet_parser.c is
 * the only file that knows how the parser is called.
 */
#ifndef SIEVE_TESTS_PACKET_PARSER_H
#define SIEVE_TESTS_PACKET_PARSER_H

#include <sieve/key.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sieve_parser_result {
    struct sieve_key key;
    __u32 have;
    __u32 outcome;
};

/*
 * Parses the packet in [begin, end), which begins with what enum sieve_link says. Both must lie below 4 GiB,
 * because a context of BPF holds addresses in 32 bits. `segmented`: the packet awaits segmentation.
 */
void sieve_parser_run_xdp(const void* begin, const void* end, __u32 link, int segmented,
                          struct sieve_parser_result* result);
void sieve_parser_run_tc(const void* begin, const void* end, __u32 link, int segmented,
                         struct sieve_parser_result* result);

#ifdef __cplusplus
}
#endif

#endif
