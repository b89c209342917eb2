// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The functions of libarchive that this project calls.
#include "libsieve/util/system/libarchive_on_demand.hpp"

#include <archive.h>
#include <archive_entry.h>

#define LIBARCHIVE(name) SIEVE_ON_DEMAND(sieve::libarchive, name)

archive* archive_read_new() {
    return LIBARCHIVE(archive_read_new)();
}
int archive_read_free(archive* archive) {
    return LIBARCHIVE(archive_read_free)(archive);
}
int archive_read_support_format_zip_seekable(archive* archive) {
    return LIBARCHIVE(archive_read_support_format_zip_seekable)(archive);
}
int archive_read_support_format_raw(archive* archive) {
    return LIBARCHIVE(archive_read_support_format_raw)(archive);
}
int archive_read_append_filter(archive* archive, int filter) {
    return LIBARCHIVE(archive_read_append_filter)(archive, filter);
}
int archive_read_open(archive* archive, void* data, archive_open_callback* open, archive_read_callback* read,
                      archive_close_callback* close) {
    return LIBARCHIVE(archive_read_open)(archive, data, open, read, close);
}
int archive_read_open_memory(archive* archive, const void* bytes, size_t size) {
    return LIBARCHIVE(archive_read_open_memory)(archive, bytes, size);
}
int archive_read_next_header(archive* archive, archive_entry** entry) {
    return LIBARCHIVE(archive_read_next_header)(archive, entry);
}
la_ssize_t archive_read_data(archive* archive, void* to, size_t size) {
    return LIBARCHIVE(archive_read_data)(archive, to, size);
}
const char* archive_error_string(archive* archive) {
    return LIBARCHIVE(archive_error_string)(archive);
}
__LA_MODE_T archive_entry_filetype(archive_entry* entry) {
    return LIBARCHIVE(archive_entry_filetype)(entry);
}
int archive_entry_is_encrypted(archive_entry* entry) {
    return LIBARCHIVE(archive_entry_is_encrypted)(entry);
}
const char* archive_entry_pathname(archive_entry* entry) {
    return LIBARCHIVE(archive_entry_pathname)(entry);
}
