// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/api/handles.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/text/key_text.hpp"

using sieve::api::guarded;

bool libsieve_parse_fields(const char* text, uint32_t* fields, libsieve_error** error) {
    return guarded(error, {{"text", text}, {"fields", fields}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(*fields, sieve::parse_fields(text));
        return {};
    });
}

bool libsieve_parse_key(const char* text, uint32_t fields, sieve_key* key, libsieve_error** error) {
    return guarded(error, {{"text", text}, {"key", key}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(*key, sieve::parse_key(text, fields));
        return {};
    });
}

bool libsieve_keys_new(uint32_t fields, libsieve_keys** keys, libsieve_error** error) {
    return guarded(error, {{"keys", keys}}, [&]() -> sieve::Status {
        if (fields == 0 || (fields & ~std::uint32_t{SIEVE_FIELD_ALL}) != 0)
            return sieve::invalid_request(
                "keys need one or more of the fields src, dst, sport, dport, proto");
        *keys = std::make_unique<libsieve_keys>(libsieve_keys{sieve::Members(fields)}).release();
        return {};
    });
}

bool libsieve_keys_add(libsieve_keys* keys, const sieve_key* key, libsieve_error** error) {
    return guarded(error, {{"keys", keys}, {"key", key}}, [&]() -> sieve::Status {
        keys->members.keys.add(*key);
        return {};
    });
}

bool libsieve_keys_add_text(libsieve_keys* keys, const char* text, libsieve_error** error) {
    return guarded(error, {{"keys", keys}, {"text", text}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(const sieve::MemberText member, sieve::parse_member(text, keys->members.fields()));
        add_member(member, keys->members);
        return {};
    });
}

bool libsieve_keys_add_feed(libsieve_keys* keys, const char* path, libsieve_error** error) {
    return guarded(error, {{"keys", keys}, {"path", path}}, [&]() -> sieve::Status {
        sieve::Members& members = keys->members;
        SIEVE_ASSIGN(const sieve::Feed feed, sieve::read_feed({std::string(path)}, members.fields(),
                                                              {.ranges = true, .key_ranges = true}));
        members.ranges.reserve(members.ranges.size() + feed.ranges.size());
        members.key_ranges.reserve(members.key_ranges.size() + feed.key_ranges.size());
        members.keys.append(feed.keys);
        members.ranges.insert(members.ranges.end(), feed.ranges.begin(), feed.ranges.end());
        members.key_ranges.insert(members.key_ranges.end(), feed.key_ranges.begin(), feed.key_ranges.end());
        return {};
    });
}

uint64_t libsieve_keys_count(const libsieve_keys* keys) {
    return keys != nullptr ? keys->members.size() : 0;
}

void libsieve_keys_free(libsieve_keys* keys) {
    std::unique_ptr<libsieve_keys>{keys}.reset();
}
