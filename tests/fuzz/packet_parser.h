/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The packet path's parser (bpf/parse.h) as a function of user space. packet_parser.c is the only file that
 * knows how the parser is called.
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
 * Parses the packet in [begin, end). Both must lie below 4 GiB, because a context of BPF holds addresses in
 * 32 bits.
 */
void sieve_parser_run(const void* begin, const void* end, struct sieve_parser_result* result);

#ifdef __cplusplus
}
#endif

#endif
