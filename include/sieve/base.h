/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What every shared header needs so that one text compiles as BPF C and as C++20.
 */
#ifndef SIEVE_BASE_H
#define SIEVE_BASE_H

#include <linux/types.h>

#ifdef __cplusplus
#define SIEVE_INLINE [[gnu::always_inline]] static inline
#define SIEVE_STATIC_ASSERT(cond, why) static_assert(cond, why)
#else
#define SIEVE_INLINE static inline __attribute__((always_inline))
#define SIEVE_STATIC_ASSERT(cond, why) _Static_assert(cond, why)
#endif

/* Compilers must not be told more than this about a branch; both know the builtin. */
#define SIEVE_LIKELY(x) __builtin_expect(!!(x), 1)
#define SIEVE_UNLIKELY(x) __builtin_expect(!!(x), 0)

#endif
