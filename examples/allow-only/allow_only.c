/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Lets in packets from the listed addresses and no others. Needs root.
 *
 *     allow-only INTERFACE LIST [UNREADABLE]
 *
 * UNREADABLE, "drop" or "pass", decides about packets that the program cannot read to their end. Such a
 * packet may come from a listed address or not; "drop" is the safe answer.
 */
#include <stdio.h>

#include <libsieve/libsieve.h>

int main(int argc, char** argv) {
    const char* unreadable = argc > 3 ? argv[3] : "drop";
    libsieve_table* table = NULL;
    libsieve_error* error = NULL;

    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: allow-only INTERFACE LIST [drop|pass]\n");
        return 2;
    }
    const bool done = libsieve_table_new(argv[1], "xdp", &table, &error) &&
                      libsieve_table_set_default(table, "drop", &error) &&
                      libsieve_table_set_unreadable(table, unreadable, &error) &&
                      libsieve_table_add(table, "friends", argv[2], "pass", &error) &&
                      libsieve_table_apply(table, &error);

    libsieve_table_free(table);
    if (!done) {
        fprintf(stderr, "allow-only: %s\n", libsieve_error_message(error));
        libsieve_error_free(error);
        return 1;
    }
    return 0;
}
