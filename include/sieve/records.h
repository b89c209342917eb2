/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Records: whole keys of any width in lines, so that whether one of them is there has an exact answer. They
 * verify a filter's matches (sieve/exact.h), and are the filter of kind `exact` if its key has several fields
 * (sieve/exact_table.h). A key is in one of two *rows*, which its hash names (Pagh, Rodler, "Cuckoo Hashing",
 * J. Algorithms 51, 2004). A packet's lookup requests both before it reads either. There are two forms.
 *
 * Plain: single addresses that do not change. A row is a line of four addresses: words 0 to 3 hold their
 * upper words, words 4 to 7 their lower ones. A place that is left over has a copy of a key, which does no
 * harm: only members are ever there.
 *
 *   line 0               struct sieve_records
 *   lines 1 to R         rows
 *
 * Tagged: all others. A row is half a line of tags, and the keys are elsewhere, where a tag's place says.
 *
 *   line 0               struct sieve_records
 *   lines 1 to R / 2     rows: 16 tags of 16 bits
 *   the rest             records, one for each tag, in groups of 8
 *
 *   tag                  bits 0 to 14: of the key's hash, never 0; bit 15: the key's mark (sieve/exact.h)
 *   0, SIEVE_RECORDS_LEFT        no key; the second: there was one (below)
 *
 * One stranger in 1,000 has the tag of some key in its two rows. No row has a tag more than twice, so four
 * records decide in any case. (Fan, Andersen, Kaminsky, "MemC3", NSDI 2013, put tags before keys.)
 *
 * A group of 8 places is as many lines as its records have words. Words that a set's keys leave zero are not
 * stored: `words` says which are.
 *
 *   words 0, 1           two lines: those of 4 places each, pair by pair
 *   words 2, 3           likewise
 *   word 4               one line: that of place 0, of place 1, ...
 *
 * Tagged keys come and go while packets ask. The record is written first, then its tag, in one aligned 64-bit
 * store: that is when the key is there. A reader's loads of the record depend on its load of the tag, so that
 * it sees the record that was written before. A key goes with its tag, which becomes SIEVE_RECORDS_LEFT.
 * Packets may still read the record then, so the place stays unused until a grace period is over. No key
 * moves.
 */
#ifndef SIEVE_RECORDS_H
#define SIEVE_RECORDS_H

#include <sieve/image.h>

enum sieve_record_words {
    SIEVE_RECORD_SRC = 1 << 0,  /* words 0 and 1 of each key */
    SIEVE_RECORD_DST = 1 << 1,  /* words 2 and 3 */
    SIEVE_RECORD_LAST = 1 << 2, /* word 4 */
    SIEVE_RECORD_ALL = (1 << 3) - 1,
};

#define SIEVE_RECORDS_MAGIC 0x52434552U /* "RECR" */

struct __attribute__((may_alias)) sieve_records {
    __u32 magic;
    __u8 words;    /* enum sieve_record_words bits, at least one */
    __u8 tagged;   /* 1, or 0: plain */
    __u8 fields;   /* of the set: enum sieve_field bits */
    __u8 prefixes; /* 1: the set holds prefixes, so the keys are stored ones (sieve/exact.h) */
    __u32 rows;    /* R, at least 1; of the tagged form even */
    __u32 most;    /* keys that the rows were made for */
    __u64 hash_key[SIEVE_KEY_WORDS]; /* secret */
    __u64 unsettled; /* of a filter in a running map: a change is going on, or its writer died. Else 0 */
};
SIEVE_STATIC_ASSERT(sizeof(struct sieve_records) == SIEVE_LINE_BYTES, "one line");

#define SIEVE_RECORDS_FIRST_ROW 1 /* the line of the first row */
#define SIEVE_RECORDS_IN_PLAIN_ROW 4
#define SIEVE_RECORDS_IN_TAGGED_ROW 16
#define SIEVE_RECORDS_IN_WORD 4 /* tags */
#define SIEVE_RECORDS_ROW_WORDS 4
#define SIEVE_RECORDS_IN_GROUP 8
#define SIEVE_RECORDS_SAME_TAG 2 /* times that a row may have a tag */
#define SIEVE_RECORDS_CANDIDATES (2 * SIEVE_RECORDS_SAME_TAG)

#define SIEVE_RECORDS_TAG 0x7fffU
#define SIEVE_RECORDS_MARK 0x8000U
#define SIEVE_RECORDS_LEFT SIEVE_RECORDS_MARK /* a mark without a tag */
#define SIEVE_RECORDS_FEET 0x0001000100010001ULL

/* The words of the keys of a set with these fields (sieve/exact.h), without prefixes or with them. */
SIEVE_INLINE __u32 sieve_record_words_of(__u32 fields, int prefixes) {
    const __u32 source = fields & SIEVE_FIELD_SRC ? SIEVE_RECORD_SRC : 0;
    const __u32 destination = fields & SIEVE_FIELD_DST ? SIEVE_RECORD_DST : 0;
    const __u32 last = (fields & SIEVE_FIELD_TRANSPORT) || prefixes ? SIEVE_RECORD_LAST : 0;

    if (prefixes && sieve_is_one_address(fields)) return SIEVE_RECORD_SRC | last;
    return source | destination | last;
}

/* Where a key may be, and as what. */
struct sieve_record_place {
    __u32 first, second; /* rows */
    __u32 tag;
};

/* The hash of a key's stored words. */
SIEVE_INLINE __u64 sieve_records_hash(const struct sieve_records* records, const struct sieve_key* key) {
    __u64 hash = 0;

    if (records->words & SIEVE_RECORD_SRC)
        hash = sieve_nh_step(key->word[0], records->hash_key[0]) +
               sieve_nh_step(key->word[1], records->hash_key[1]);
    if (records->words & SIEVE_RECORD_DST)
        hash += sieve_nh_step(key->word[2], records->hash_key[2]) +
                sieve_nh_step(key->word[3], records->hash_key[3]);
    if (records->words & SIEVE_RECORD_LAST) hash += sieve_nh_step(key->word[4], records->hash_key[4]);
    return sieve_mix(hash);
}

SIEVE_INLINE struct sieve_record_place sieve_records_locate(const struct sieve_records* records,
                                                            const struct sieve_key* key) {
    const __u64 hash = sieve_records_hash(records, key);
    struct sieve_record_place place;

    place.first = sieve_reduce((__u32)(hash >> 32), records->rows);
    place.second = sieve_reduce((__u32)(hash >> 8), records->rows);
    place.tag = (__u32)hash & SIEVE_RECORDS_TAG;
    place.tag |= (place.tag - 1) >> 31; /* 0 says: no key */
    return place;
}

/* --- plain -------------------------------------------------------------------------------------------------
 */

/* 1 if the row holds the address, else 0. There is no branch, because the verifier would walk both ways. */
SIEVE_INLINE __u64 sieve_records_in_plain_row(const struct sieve_line* row, __u64 upper, __u64 lower) {
    __u64 none = ~0ULL;
    int i;

#pragma GCC unroll 4
    for (i = 0; i < SIEVE_RECORDS_IN_PLAIN_ROW; i++) {
        const __u64 differs = (row->word[i] ^ upper) | (row->word[i + SIEVE_RECORDS_IN_PLAIN_ROW] ^ lower);

        none &= differs | (0 - differs); /* the highest bit is clear if and only if `differs` is 0 */
        SIEVE_KEEP(none);
    }
    return (none >> 63) ^ 1;
}

/* --- tagged ------------------------------------------------------------------------------------------------
 */

/* The line of a row, and the index of its first word there. */
SIEVE_INLINE __u32 sieve_records_row_line(__u32 row) {
    return SIEVE_RECORDS_FIRST_ROW + row / 2;
}
SIEVE_INLINE __u32 sieve_records_row_word(__u32 row) {
    return (__u32)sieve_within((row & 1) * SIEVE_RECORDS_ROW_WORDS, SIEVE_RECORDS_ROW_WORDS);
}

/* The highest bit of each of the four tags that is this one, whatever its mark is. */
SIEVE_INLINE __u64 sieve_records_match(__u64 tags, __u64 wanted) {
    const __u64 differ = (tags ^ wanted) & (SIEVE_RECORDS_TAG * SIEVE_RECORDS_FEET);

    return ~(differ + SIEVE_RECORDS_TAG * SIEVE_RECORDS_FEET) & (SIEVE_RECORDS_MARK * SIEVE_RECORDS_FEET);
}

/* The places of a row that have the tag: bit 16 * lane + word. Each word is loaded once, because a writer may
 * store it meanwhile. */
SIEVE_INLINE __u64 sieve_records_in_row(const __u64* row, __u32 tag) {
    const __u64 wanted = tag * SIEVE_RECORDS_FEET;
    __u64 places = 0;
    int i;

#pragma GCC unroll 4
    for (i = 0; i < SIEVE_RECORDS_ROW_WORDS; i++) {
        places |= sieve_records_match(*(const volatile __u64*)&row[i], wanted) >> (15 - i);
        SIEVE_KEEP(places);
    }
    return places;
}

/* Of both rows: the second one's places are 4 bits higher. */
SIEVE_INLINE __u64 sieve_records_in_rows(const __u64* first, const __u64* second, __u32 tag) {
    return sieve_records_in_row(first, tag) | sieve_records_in_row(second, tag) << SIEVE_RECORDS_ROW_WORDS;
}

/* How many zero bits are below the lowest one. BPF has no instruction for it. */
SIEVE_INLINE __u32 sieve_records_lowest(__u64 places) {
    __u64 below = ~places & (places - 1);

    below -= below >> 1 & 0x5555555555555555ULL;
    below = (below & 0x3333333333333333ULL) + (below >> 2 & 0x3333333333333333ULL);
    below = (below + (below >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
    return (__u32)(below * 0x0101010101010101ULL >> 56);
}

/* The number of the place that the lowest of these bits stands for, among all places. */
SIEVE_INLINE __u32 sieve_records_number(const struct sieve_record_place* place, __u64 places) {
    const __u32 bit = sieve_records_lowest(places);
    const __u32 second = (__u32)sieve_ones_if(bit >> 2 & 1);
    const __u32 row = place->first ^ ((place->first ^ place->second) & second);

    return row * SIEVE_RECORDS_IN_TAGGED_ROW + (bit & 3) * SIEVE_RECORDS_IN_WORD + (bit >> 4);
}

/* Where the record of a place is: the lines of its pairs of words, then that of word 4. */
SIEVE_INLINE __u32 sieve_records_group_lines(__u32 words) {
    return 2 * (words & 1) + (words & 2) + (words >> 2);
}
SIEVE_INLINE __u32 sieve_records_group(const struct sieve_records* records, __u32 number) {
    return SIEVE_RECORDS_FIRST_ROW + records->rows / 2 +
           number / SIEVE_RECORDS_IN_GROUP * sieve_records_group_lines(records->words);
}
/* Within a group: which of a pair's two lines, and the first of the pair's words in that line. */
SIEVE_INLINE __u32 sieve_records_pair_line(__u32 number) {
    return number >> 2 & 1;
}
SIEVE_INLINE __u32 sieve_records_pair_word(__u32 number) {
    return (__u32)sieve_within((number & 3) * 2, 6);
}
SIEVE_INLINE __u32 sieve_records_last_word(__u32 number) {
    return (__u32)sieve_within(number & 7, 7);
}

/* All lines of a set whose header this is. */
SIEVE_INLINE __u64 sieve_records_lines(const struct sieve_records* records) {
    const __u64 groups = (__u64)records->rows * (SIEVE_RECORDS_IN_TAGGED_ROW / SIEVE_RECORDS_IN_GROUP);

    if (!records->tagged) return SIEVE_RECORDS_FIRST_ROW + (__u64)records->rows;
    return SIEVE_RECORDS_FIRST_ROW + records->rows / 2 + groups * sieve_records_group_lines(records->words);
}

#endif
