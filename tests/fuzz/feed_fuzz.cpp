// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Fuzzes the feed reader (libFuzzer). The first byte chooses the fields, the rest is the feed.
//
//   clang++-19 -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Iuserspace
//   tests/fuzz/feed_fuzz.cpp
//       userspace/libsieve/feeds/*.cpp userspace/libsieve/filters/key_set.cpp
//       userspace/libsieve/util/*.cpp -lfmt -ltbb
//
// What must hold of any bytes: small blocks on two threads yield what one block on one thread yields, the
// same keys or the same error; every line is counted once; and every key reads back from its text.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/key_text.hpp"
#include "libsieve/util/unique_fd.hpp"

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

bool same(const sieve_key& a, const sieve_key& b) {
    return std::memcmp(&a, &b, sizeof(a)) == 0;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    if (size == 0) return 0;
    const std::uint32_t fields = data[0] & 32 ? std::uint32_t{SIEVE_FIELD_SRC} : data[0] & SIEVE_FIELD_ALL;
    const bool skip_invalid = data[0] & 64;
    if (fields == 0) return 0;

    const sieve::UniqueFd file(::memfd_create("feed", 0));
    require(::write(file.get(), data + 1, size - 1) == static_cast<ssize_t>(size - 1));
    const std::string path = "/proc/self/fd/" + std::to_string(file.get());

    const auto one = sieve::read_feed({path}, fields,
                                      {.skip_invalid = skip_invalid, .threads = 1, .block_bytes = 1 << 20});
    const auto two =
        sieve::read_feed({path}, fields, {.skip_invalid = skip_invalid, .threads = 2, .block_bytes = 1});
    require(one.has_value() == two.has_value());
    if (!one) {
        require(one.error().message == two.error().message && one.error().message.size() < 1000);
        for (char c : one.error().message) require(c >= ' ' && c <= '~');
        return 0;
    }
    require(one->lines == one->keys.size() + one->comments + one->skipped);
    require(one->lines == two->lines && one->comments == two->comments && one->skipped == two->skipped);
    require(one->keys.size() == two->keys.size() && one->skipped_first == two->skipped_first);
    for (std::size_t i = 0; i < one->keys.size(); ++i) {
        const sieve_key key = one->keys.at(i);
        require(same(key, two->keys.at(i)));
        const auto back = sieve::parse_key(sieve::format_key(key, fields), fields);
        require(back && same(*back, key));
    }
    return 0;
}
