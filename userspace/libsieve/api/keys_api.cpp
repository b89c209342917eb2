// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/api/handles.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/key_text.hpp"

using sieve::api::guarded;

bool libsieve_parse_fields(const char* text, uint32_t* fields, libsieve_error** error) {
    return guarded(error, [&]() -> sieve::Status {
        SIEVE_ASSIGN(*fields, sieve::parse_fields(text));
        return {};
    });
}

bool libsieve_parse_key(const char* text, uint32_t fields, sieve_key* key, libsieve_error** error) {
    return guarded(error, [&]() -> sieve::Status {
        SIEVE_ASSIGN(*key, sieve::parse_key(text, fields));
        return {};
    });
}

bool libsieve_keys_new(uint32_t fields, libsieve_keys** keys, libsieve_error** error) {
    return guarded(error, [&]() -> sieve::Status {
        if (fields == 0 || (fields & ~std::uint32_t{SIEVE_FIELD_ALL}) != 0)
            return sieve::invalid_request(
                "keys need one or more of the fields src, dst, sport, dport, proto");
        *keys = std::make_unique<libsieve_keys>(libsieve_keys{sieve::KeySet(fields), {}}).release();
        return {};
    });
}

bool libsieve_keys_add(libsieve_keys* keys, const sieve_key* key, libsieve_error** error) {
    return guarded(error, [&]() -> sieve::Status {
        keys->keys.add(*key);
        return {};
    });
}

bool libsieve_keys_add_text(libsieve_keys* keys, const char* text, libsieve_error** error) {
    return guarded(error, [&]() -> sieve::Status {
        SIEVE_ASSIGN(const sieve::MemberText member, sieve::parse_member(text, keys->keys.fields()));
        if (member.range)
            keys->ranges.push_back(*member.range);
        else
            keys->keys.add(member.key);
        return {};
    });
}

bool libsieve_keys_add_feed(libsieve_keys* keys, const char* path, libsieve_error** error) {
    return guarded(error, [&]() -> sieve::Status {
        SIEVE_ASSIGN(const sieve::Feed feed,
                     sieve::read_feed({std::string(path)}, keys->keys.fields(), {.ranges = true}));
        keys->ranges.reserve(keys->ranges.size() + feed.ranges.size());
        keys->keys.append(feed.keys);
        keys->ranges.insert(keys->ranges.end(), feed.ranges.begin(), feed.ranges.end());
        return {};
    });
}

uint64_t libsieve_keys_count(const libsieve_keys* keys) {
    return keys->keys.size() + keys->ranges.size();
}

void libsieve_keys_free(libsieve_keys* keys) {
    std::unique_ptr<libsieve_keys>{keys}.reset();
}
