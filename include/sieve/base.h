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
 * Returns the number, which has no bits outside the mask. This tells the bound to the verifier of Linux 6.1,
 * which forgets what it knew about two numbers once they are or-ed (and compilers turn such sums into an or).
 * It costs one instruction in BPF, none in user space.
 */
SIEVE_INLINE __u64 sieve_within(__u64 number, const __u32 mask) {
#ifdef __bpf__
    __asm__("%0 &= %1" : "+r"(number) : "i"(mask));
#else
    (void)mask;
#endif
    return number;
}

/* Which way a branch mostly goes. Both compilers know the builtin. */
#define SIEVE_LIKELY(x) __builtin_expect(!!(x), 1)
#define SIEVE_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* value >> (by mod 64), value << (by mod 64). BPF's shifts use only the lower six bits of their right
 * operand. C must mask them, and clang keeps the mask. */
#ifdef __bpf__
SIEVE_INLINE __u64 sieve_shift_right(__u64 value, __u64 by) {
    asm volatile("%0 >>= %1" : "+r"(value) : "r"(by));
    return value;
}
SIEVE_INLINE __u64 sieve_shift_left(__u64 value, __u64 by) {
    asm volatile("%0 <<= %1" : "+r"(value) : "r"(by));
    return value;
}
#else
SIEVE_INLINE __u64 sieve_shift_right(__u64 value, __u64 by) {
    return value >> (by & 63);
}
SIEVE_INLINE __u64 sieve_shift_left(__u64 value, __u64 by) {
    return value << (by & 63);
}
#endif

/*
 * All ones if `bit` (0 or 1) is 1, else zero. Neither the compiler makes a branch of it, nor does the
 * verifier walk on once with each value: newer ones do so with numbers that they know to be -1 or 0, as a
 * plain -bit.
 */
SIEVE_INLINE __u64 sieve_ones_if(__u64 bit) {
#ifdef __bpf__
    asm volatile("%0 -= 1" : "+r"(bit));
    asm volatile("%0 ^= -1" : "+r"(bit));
    return bit;
#else
    return 0 - bit;
#endif
}

/*
 * Makes the compiler compute the value here. Otherwise clang's BPF back end collects the terms of a long
 * chain of ANDs before it combines them, and spills what does not fit into ten registers.
 */
#ifdef __bpf__
#define SIEVE_KEEP(value) asm volatile("" : "+r"(value))
#else
#define SIEVE_KEEP(value) (void)(value)
#endif

#endif
