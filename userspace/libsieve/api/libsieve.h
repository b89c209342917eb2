/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * libsieve: filter images for programs in any language.
 *
 * A program builds an image out of keys, or opens one, asks it about keys, plans the size of one, and puts
 * images in force on a network interface. The packet path that asks the same images in the kernel is the
 * project's XDP program, or a BPF program of your own that includes <sieve/...>.
 *
 * Conventions
 *   - Objects are opaque. Whoever creates one frees it with the function of the same family; every free
 *     function takes NULL.
 *   - A function that can fail returns true if it succeeded. If it fails it sets *error, unless `error` is
 *     NULL; the caller frees the error. Out parameters are then left alone, and nothing was changed.
 *   - NULL where something is needed, and other bad arguments, are errors (LIBSIEVE_ERROR_INVALID). Functions
 *     without an error answer NULL with 0, false or NULL. An empty text does not stand for NULL; as the name
 *     of an interface it is an error.
 *   - A structure of options starts with its own size, so that programs built against an older header go on
 *     working with a newer library. LIBSIEVE_INIT sets the size and zeroes the rest; zero always means "the
 *     default". A structure whose size cannot be one is an error.
 *   - Texts are UTF-8 and NUL-terminated. A text that an object returns lives as long as the object.
 *   - An object belongs to one thread at a time. An image that nobody changes may be asked by many threads.
 *   - A child of fork(2) may go on with keys, images and plans, on one thread; docs/library.md says more.
 *
 * docs/library.md explains the interface with examples.
 */
#ifndef LIBSIEVE_H
#define LIBSIEVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sieve/key.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LIBSIEVE_API __attribute__((visibility("default")))

/* Zeroes a structure of options and notes its size. */
#define LIBSIEVE_INIT(options)                                                                               \
    do {                                                                                                     \
        __builtin_memset(&(options), 0, sizeof(options));                                                    \
        (options).size = sizeof(options);                                                                    \
    } while (0)

/* "0.1.0": the library that runs, not the header that was compiled. */
LIBSIEVE_API const char* libsieve_version(void);

/* ---- Errors ---- */

typedef struct libsieve_error libsieve_error;

/* The kinds that a program can base decisions on. The numbers never change their meaning. */
enum libsieve_error_kind {
    LIBSIEVE_ERROR_INVALID = 1,    /* the request makes no sense: options, names, sizes */
    LIBSIEVE_ERROR_BAD_INPUT = 2,  /* a feed, an image or a key is wrong */
    LIBSIEVE_ERROR_KERNEL = 3,     /* the kernel, or the rights of this process, said no */
    LIBSIEVE_ERROR_NO = 4,         /* the request was understood, and the answer is no */
    LIBSIEVE_ERROR_MEMORY = 5,     /* there is not enough memory */
    LIBSIEVE_ERROR_UNFINISHED = 6, /* the change was made, but what follows it could not be done */
    LIBSIEVE_ERROR_LOCKOUT = 7     /* the change would drop an address that this host lives by */
};

LIBSIEVE_API int libsieve_error_kind(const libsieve_error* error);

/* One sentence for a person: where, what was found, what was expected. */
LIBSIEVE_API const char* libsieve_error_message(const libsieve_error* error);
LIBSIEVE_API void libsieve_error_free(libsieve_error* error);

/* ---- Keys ---- */

/* A list of keys that are all made of the same fields (enum sieve_field). */
typedef struct libsieve_keys libsieve_keys;

/* The fields of a comma list such as "src,dport,proto". */
LIBSIEVE_API bool libsieve_parse_fields(const char* text, uint32_t* fields, libsieve_error** error);

/* One key as people write it, with its fields in their order: "192.0.2.1" or "192.0.2.1 443 tcp". */
LIBSIEVE_API bool libsieve_parse_key(const char* text, uint32_t fields, struct sieve_key* key,
                                     libsieve_error** error);

LIBSIEVE_API bool libsieve_keys_new(uint32_t fields, libsieve_keys** keys, libsieve_error** error);

/* Adds the selected fields of a key; all others are ignored. */
LIBSIEVE_API bool libsieve_keys_add(libsieve_keys* keys, const struct sieve_key* key, libsieve_error** error);

/* Adds an entry as a feed has it: a key. Addresses may be prefixes or ranges, and among several fields "*" is
 * any value. */
LIBSIEVE_API bool libsieve_keys_add_text(libsieve_keys* keys, const char* text, libsieve_error** error);

/* Adds all entries of a feed; "-" is standard input. If a line is malformed, the call fails and adds no
 * entry. */
LIBSIEVE_API bool libsieve_keys_add_feed(libsieve_keys* keys, const char* path, libsieve_error** error);

/* The number of entries, duplicates included. A prefix or a range counts as one. */
LIBSIEVE_API uint64_t libsieve_keys_count(const libsieve_keys* keys);
LIBSIEVE_API void libsieve_keys_free(libsieve_keys* keys);

/* ---- Images ---- */

typedef struct libsieve_image libsieve_image;

/* What an image says about itself. A false positive rate (FPR) is a share of non-members that match. */
struct libsieve_image_info {
    size_t size;
    const char* kind;     /* as `xdp-sieve build --kind` takes it */
    const char* label;    /* where the keys came from, for people */
    uint32_t fields;      /* enum sieve_field bits */
    uint32_t probes;      /* 0: keys are exact; otherwise the most prefix lengths that a lookup asks for */
    uint64_t keys;        /* distinct keys; of a prefix set, prefixes after expansion */
    uint64_t entries;     /* of the feed */
    uint64_t duplicates;  /* entries whose key the set already had */
    uint64_t built_at;    /* seconds since 1970; 0 if the image was built with a seed */
    uint64_t identity[2]; /* random: tells one build from another */
    double bits_per_key;  /* of the filter alone */
    double predicted_fpr; /* before the build */
    double expected_fpr;  /* exact, from the bits of this image */
    double measured_fpr;  /* on random non-members */
};

/* Opens and checks an image file. */
LIBSIEVE_API bool libsieve_image_open(const char* path, libsieve_image** image, libsieve_error** error);

/* Writes the image to a new file, or over another image. */
LIBSIEVE_API bool libsieve_image_save(libsieve_image* image, const char* path, libsieve_error** error);

/* Fills as much as `info->size` has room for. */
LIBSIEVE_API void libsieve_image_describe(const libsieve_image* image, struct libsieve_image_info* info);

/* Whether the set may hold the key; of a prefix set, whether it may hold one of the address's prefixes.
 * The answer false is certain. */
LIBSIEVE_API bool libsieve_image_contains(const libsieve_image* image, const struct sieve_key* key);

/* The image's bytes. They fill the value area of a BPF array map (value size 64, *lines entries). */
LIBSIEVE_API const void* libsieve_image_lines(const libsieve_image* image, uint32_t* lines);
LIBSIEVE_API void libsieve_image_free(libsieve_image* image);

/* ---- Building ---- */

struct libsieve_build_options {
    size_t size;
    const char* kind;    /* NULL: "exact" for addresses, "ranges" with prefixes or ranges, else a filter */
    double bits_per_key; /* give at most one of these three, for a filter; all zero: the kind's own size */
    double fpr;          /* takes the smallest filter that is predicted to stay below this rate */
    uint64_t memory;     /* takes the largest filter whose image fits into these bytes */
    const char* effort;  /* "fast", "normal" or "best"; NULL: normal */
    uint32_t choices;    /* lines, groups or subtables that a key chooses from; 0: the kind's default */
    uint32_t threads;    /* 0: as many as processors */
    uint64_t seed;       /* with use_seed: builds the same image again; for tests, its hash keys are known */
    bool use_seed;
    const char* label; /* where the keys came from, for people; NULL: none */
    /* Keys of the same fields that the image must not match, not even by a false positive; those among `keys`
     * are taken out. NULL: none. They are not consumed. */
    const libsieve_keys* exceptions;
};

/*
 * Builds an image of the keys and consumes them: `keys` is empty afterwards, even if building fails.
 * `options` may be NULL.
 */
LIBSIEVE_API bool libsieve_build(libsieve_keys* keys, const struct libsieve_build_options* options,
                                 libsieve_image** image, libsieve_error** error);

/* ---- Planning ---- */

typedef struct libsieve_plan libsieve_plan;

/* One way to hold the keys. */
struct libsieve_candidate {
    size_t size;
    const char* kind;
    const char* parameters; /* for people: "2 choices, k = 13" */
    const char* infeasible; /* why the candidate is impossible; NULL if it is possible */
    bool recommended;
    uint64_t bytes; /* of the image */
    double bits_per_key;
    double predicted_fpr;
    double lines_miss; /* cache lines that a lookup of a non-member touches, on average */
    double lines_hit;  /* likewise of a member */
};

/*
 * Every kind for that many keys. Give either a rate to stay below, or the bytes of the whole image, or
 * neither (both 0): then each kind has its own size, and the recommended one is that of single addresses.
 */
LIBSIEVE_API bool libsieve_plan_new(uint64_t keys, double fpr, uint64_t memory, libsieve_plan** plan,
                                    libsieve_error** error);
LIBSIEVE_API size_t libsieve_plan_count(const libsieve_plan* plan);

/* Fills as much as `candidate->size` has room for. Returns false if there is no such candidate. */
LIBSIEVE_API bool libsieve_plan_candidate(const libsieve_plan* plan, size_t index,
                                          struct libsieve_candidate* candidate);
LIBSIEVE_API void libsieve_plan_free(libsieve_plan* plan);

/* ---- In force ---- */

/*
 * The sets that packets on one hook of an interface meet, in their order. Needs root. Sets come from files,
 * images or feeds, so that anybody who looks later can tell where a set came from.
 */
typedef struct libsieve_table libsieve_table;

/* `hook` is "xdp" (arriving packets, before the stack), "ingress" or "egress" (at tc); NULL: xdp. */
LIBSIEVE_API bool libsieve_table_new(const char* interface, const char* hook, libsieve_table** table,
                                     libsieve_error** error);

/* What becomes of packets that no set decides: "pass", which is the default, or "drop". */
LIBSIEVE_API bool libsieve_table_set_default(libsieve_table* table, const char* action,
                                             libsieve_error** error);

/*
 * What becomes of packets that the program cannot read to their end though Linux may accept them: "drop",
 * which is the default, or "pass".
 */
LIBSIEVE_API bool libsieve_table_set_unreadable(libsieve_table* table, const char* action,
                                                libsieve_error** error);

/*
 * What becomes of a packet that would be dropped, by a set or by the default, if it answers a flow that this
 * host or a network behind it began: "pass" or "drop". If never called: "drop" for a default of "pass", and
 * "pass" for a new default of "drop". `max_flows` is how many flows are remembered; 0: by the machine's
 * memory. All hooks of a network namespace share one memory, so that another size than its is refused.
 */
LIBSIEVE_API bool libsieve_table_set_replies(libsieve_table* table, const char* action, uint64_t max_flows,
                                             libsieve_error** error);

/*
 * Adds a set behind the others: an image, or a feed of source addresses (at egress: of destinations).
 * `action` is "drop", "pass", "count" or "limit=PPS[/BURST]"; NULL: the opposite of the default.
 */
LIBSIEVE_API bool libsieve_table_add(libsieve_table* table, const char* name, const char* path,
                                     const char* action, libsieve_error** error);

/*
 * What this set of the table drops stays dropped, even if it answers a flow of this host. The set must drop
 * or limit.
 */
LIBSIEVE_API bool libsieve_table_keep_replies_out(libsieve_table* table, const char* set,
                                                  libsieve_error** error);

/*
 * Gives this set of the table a condition: only packets match whose `field`, "dport", "sport" or "proto", is
 * one of `values`, such as "22,443,8000-8100" or "tcp,udp". "any": there is no condition on the field.
 */
LIBSIEVE_API bool libsieve_table_set_condition(libsieve_table* table, const char* set, const char* field,
                                               const char* values, libsieve_error** error);

/*
 * Applies the table even if it drops an address that this host lives by: its own on the interface, its
 * gateways and resolvers, the peers of administrators' sessions, and those of libsieve_table_protect_list().
 * Otherwise such a table is refused (LIBSIEVE_ERROR_LOCKOUT).
 */
LIBSIEVE_API bool libsieve_table_allow_lockout(libsieve_table* table, libsieve_error** error);

/*
 * Protects the addresses of a list like those that this host lives by: a file of addresses, prefixes and
 * ranges, packed or not, of at most 65536 addresses. It is read now. Further calls add further lists.
 */
LIBSIEVE_API bool libsieve_table_protect_list(libsieve_table* table, const char* path,
                                              libsieve_error** error);

/*
 * Applies the table even where that needs force: it takes the place of another program, it lets everybody in
 * where an allowlist is in force, or it leaves no way in.
 */
LIBSIEVE_API bool libsieve_table_set_force(libsieve_table* table, libsieve_error** error);

/*
 * A set whose name is in force goes on with its counters. Otherwise they start at zero if the set has another
 * list or another action than the one in force.
 */
LIBSIEVE_API bool libsieve_table_keep_counters(libsieve_table* table, libsieve_error** error);

/*
 * Puts the table on probation when it is applied: it is in force at once, and the kernel itself goes back to
 * the table from before after so many seconds (1 to 86400) unless libsieve_confirm() keeps it. 0: for good.
 */
LIBSIEVE_API bool libsieve_table_set_probation(libsieve_table* table, uint32_t seconds,
                                               libsieve_error** error);

/*
 * Tests every set in the kernel, attaches the program if it is not there yet, and puts the table in force
 * between two packets. It replaces the table that was there.
 */
LIBSIEVE_API bool libsieve_table_apply(const libsieve_table* table, libsieve_error** error);
LIBSIEVE_API void libsieve_table_free(libsieve_table* table);

/*
 * The functions from here on change one thing that is in force. Everything else stays: filters with the keys
 * that were inserted, other sets' counters. `hook` may be NULL if only one hook has the program, or the set.
 * A change that would drop an address that this host lives by is refused (LIBSIEVE_ERROR_LOCKOUT), as for
 * libsieve_table_allow_lockout(), unless it has options that allow it.
 */
LIBSIEVE_API bool libsieve_swap(const char* interface, const char* hook, const char* name, const char* path,
                                libsieve_error** error);
/* An error of kind INVALID if the set is the last one that lets packets in under a default of drop. */
LIBSIEVE_API bool libsieve_remove(const char* interface, const char* hook, const char* name,
                                  libsieve_error** error);

/* How a change is made. Each member names the functions that take it; for others it must be zero, or they
 * fail (LIBSIEVE_ERROR_INVALID). */
struct libsieve_change_options {
    size_t size;
    const char* action; /* edit_set, add_set: as libsieve_table_add() takes it, or "redirect=TARGET" */
    const char* before; /* edit_set, add_set: where the set stands; at most one of these four */
    const char* after;
    bool first;
    bool last;
    bool keep_counters; /* edit_set: under another action, too, go on with the set's counters */
    bool force;         /* edit_set, add_set, remove_set, edit_default: also if no packet with a key passes */
    bool allow_lockout; /* every function: also if it drops an address that this host lives by */
    uint32_t probation; /* not delete: seconds, as libsieve_table_set_probation() takes them; 0: for good */
};

/* Gives a set another action, another place in the order, or both, in one step. */
LIBSIEVE_API bool libsieve_edit_set(const char* interface, const char* hook, const char* name,
                                    const struct libsieve_change_options* options, libsieve_error** error);
/* Puts one more set in force, tested before; the last one if no place is given. `path` is read as by
 * libsieve_table_add(). `options` may be NULL. */
LIBSIEVE_API bool libsieve_add_set(const char* interface, const char* hook, const char* name,
                                   const char* path, const struct libsieve_change_options* options,
                                   libsieve_error** error);
/* As libsieve_swap(), also if it locks the host out, or on probation. */
LIBSIEVE_API bool libsieve_swap_set(const char* interface, const char* hook, const char* name,
                                    const char* path, const struct libsieve_change_options* options,
                                    libsieve_error** error);
/* As libsieve_remove(), with force, also if it locks the host out, or on probation. */
LIBSIEVE_API bool libsieve_remove_set(const char* interface, const char* hook, const char* name,
                                      const struct libsieve_change_options* options, libsieve_error** error);
/* What becomes of packets that no set decides from now on: "pass" or "drop". `options` may be NULL. */
LIBSIEVE_API bool libsieve_edit_default(const char* interface, const char* hook, const char* action,
                                        const struct libsieve_change_options* options,
                                        libsieve_error** error);
/* Whether answers to this host pass from now on, as libsieve_table_set_replies(). `options` may be NULL. */
LIBSIEVE_API bool libsieve_edit_replies(const char* interface, const char* hook, const char* action,
                                        uint64_t max_flows, const struct libsieve_change_options* options,
                                        libsieve_error** error);

/* Keeps the change that is on probation there, or takes it back at once. An error of kind NO if there is
 * none. */
LIBSIEVE_API bool libsieve_confirm(const char* interface, const char* hook, bool keep,
                                   libsieve_error** error);
LIBSIEVE_API bool libsieve_unload(const char* interface, const char* hook, libsieve_error** error);

/* ---- Single keys in force ---- */

struct libsieve_insert_options {
    size_t size;
    uint64_t seconds;   /* the keys end after so many seconds; 0: never */
    bool again;         /* also keys that match already; delete each as often as it was inserted */
    bool grow;          /* if a verified set is full, swap a larger filter in */
    bool allow_lockout; /* also keys that lock this host out */
};

/* What became of keys. */
struct libsieve_keys_changed {
    size_t size;
    uint64_t done;       /* keys that were inserted or deleted, or whose end changed */
    uint64_t unchanged;  /* insert: matched already; delete: were not in the set */
    uint64_t full;       /* insert: there is no room for them */
    uint64_t other_end;  /* of the keys done: they were in already, and only their end changed */
    uint64_t expired;    /* other keys of the hook's sets, whose time was over, and which were taken out */
    uint64_t keys;       /* in the set afterwards */
    double expected_fpr; /* of the set afterwards */
    uint32_t grown;      /* how often a larger filter was swapped in */
};

/*
 * Inserts keys into a set of kind exact or ddlcbf, or deletes them, while packets flow. The keys must have
 * the set's fields, and no prefixes unless the set holds some. An exact set knows its members for certain and
 * grows by itself; it refuses `again`. `options` and `changed` may be NULL; a deletion takes
 * `allow_lockout` alone. A key that cannot be changed hinders no other key, and is no error: `changed` counts
 * it.
 */
LIBSIEVE_API bool libsieve_insert(const char* interface, const char* hook, const char* name,
                                  const libsieve_keys* keys, const struct libsieve_insert_options* options,
                                  struct libsieve_keys_changed* changed, libsieve_error** error);
LIBSIEVE_API bool libsieve_delete(const char* interface, const char* hook, const char* name,
                                  const libsieve_keys* keys, const struct libsieve_change_options* options,
                                  struct libsieve_keys_changed* changed, libsieve_error** error);

/* Takes the keys out whose time is over. Without an interface (NULL), from the sets of all interfaces.
 * `taken_out` counts them, and may be NULL. */
LIBSIEVE_API bool libsieve_expire(const char* interface, const char* hook, uint64_t* taken_out,
                                  libsieve_error** error);

/* The keys of a set in force, as far as the kernel knows them. */
typedef struct libsieve_key_list libsieve_key_list;

struct libsieve_listed_key {
    size_t size;
    const char* text; /* as a feed has it: a key, or a prefix of a prefix set */
    bool ends;
    int64_t ends_in; /* nanoseconds, if it ends; negative: so long ago */
};

/* All keys of an exact or verified set; of kind ranges, what it holds as the fewest prefixes; else those that
 * were inserted for a time. An error of kind NO if none is known. */
LIBSIEVE_API bool libsieve_list(const char* interface, const char* hook, const char* name,
                                libsieve_key_list** list, libsieve_error** error);
LIBSIEVE_API size_t libsieve_key_list_count(const libsieve_key_list* list);
/* How many more keys the set has, which nobody knows. */
LIBSIEVE_API uint64_t libsieve_key_list_unlisted(const libsieve_key_list* list);
/* Fills as much as `key->size` has room for. Returns false if there is no such key. */
LIBSIEVE_API bool libsieve_key_list_get(const libsieve_key_list* list, size_t index,
                                        struct libsieve_listed_key* key);
LIBSIEVE_API void libsieve_key_list_free(libsieve_key_list* list);

#ifdef __cplusplus
}
#endif

#endif
