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

/*
 * The number, which has no bits outside the mask. Tells the verifier of Linux 6.1, which forgets what it knew
 * of two numbers once they are or-ed (and compilers turn such sums into an or); one instruction there, none
 * here.
 */
SIEVE_INLINE __u64 sieve_within(__u64 number, const __u32 mask) {
#ifdef __bpf__
    __asm__("%0 &= %1" : "+r"(number) : "i"(mask));
#else
    (void)mask;
#endif
    return number;
}

/* Compilers must not be told more than this about a branch; both know the builtin. */
#define SIEVE_LIKELY(x) __builtin_expect(!!(x), 1)
#define SIEVE_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* value >> (by mod 64). BPF's shift takes the lower six bits of its right side by definition; C has to say
 * so, and clang keeps what C says. */
#ifdef __bpf__
SIEVE_INLINE __u64 sieve_shift_right(__u64 value, __u64 by) {
    asm volatile("%0 >>= %1" : "+r"(value) : "r"(by));
    return value;
}
#else
SIEVE_INLINE __u64 sieve_shift_right(__u64 value, __u64 by) {
    return value >> (by & 63);
}
#endif

/*
 * Makes the compiler take the value as it stands. Clang's BPF back end otherwise collects the terms of a long
 * chain of ANDs before it combines them, and spills what does not fit into ten registers.
 */
#ifdef __bpf__
#define SIEVE_KEEP(value) asm volatile("" : "+r"(value))
#else
#define SIEVE_KEEP(value) (void)(value)
#endif

#endif
