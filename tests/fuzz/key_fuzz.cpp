// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Fuzzes keys and field lists as the command line reads them. The first byte chooses the fields, the rest is
// the text.
//
// What must hold: a text is a key if and only if the model in tests/model says so, and both read the same
// key. Printed keys and field lists read back unchanged. The C library reads a printed address as the same
// address.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "fuzz/support.hpp"
#include "libsieve/feeds/text/address_text.hpp"
#include "libsieve/feeds/text/entry.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "model/entry_model.hpp"

namespace {

using namespace sieve::fuzz;
using sieve::model::Meaning;

bool same(const sieve_key& a, const sieve_key& b) {
    return std::memcmp(&a, &b, sizeof(a)) == 0;
}

void check_key(std::string_view text, std::uint32_t fields) {
    const auto key = sieve::parse_key(text, fields);
    const sieve::model::Entry entry = sieve::model::read_entry(text, fields);
    const bool complete = entry.rest.find_first_not_of(" \t,") == std::string_view::npos;
    FUZZ_REQUIRE(key.has_value() == (entry.meaning == Meaning::key && complete));
    if (!key) {
        require_message(key.error().message);
        return;
    }
    FUZZ_REQUIRE(std::equal(entry.key.begin(), entry.key.end(), key->word));
    const std::string printed = sieve::format_key(*key, fields);
    const auto back = sieve::parse_key(printed, fields);
    FUZZ_REQUIRE(back && same(*back, *key));
    FUZZ_REQUIRE(sieve::format_key(*back, fields) == printed);
}

// Any sixteen bytes are an address.
void check_address(Bytes bytes) {
    if (bytes.size() < 16) return;
    std::uint64_t words[2] = {};
    for (std::size_t i = 0; i < 16; i++) words[i / 8] = words[i / 8] << 8 | bytes[i];
    const std::string printed = sieve::format_address(words[0], words[1]);
    std::uint8_t back[16] = {};
    if (words[0] == 0 && words[1] >> 32 == 0xffff) {
        back[10] = back[11] = 0xff;
        FUZZ_REQUIRE(::inet_pton(AF_INET, printed.c_str(), back + 12) == 1);
    } else {
        FUZZ_REQUIRE(::inet_pton(AF_INET6, printed.c_str(), back) == 1);
        std::uint64_t upper = 0;
        std::uint64_t lower = 0;
        const char* end = printed.data() + printed.size();
        FUZZ_REQUIRE(sieve::entry::parse_ipv6(printed.data(), end, upper, lower) == end);
        FUZZ_REQUIRE(upper == words[0] && lower == words[1]);
    }
    FUZZ_REQUIRE(std::equal(back, back + 16, bytes.begin()));
}

void check_fields(std::string_view text) {
    const auto fields = sieve::parse_fields(text);
    if (!fields) {
        require_message(fields.error().message);
        return;
    }
    FUZZ_REQUIRE(*fields != 0 && *fields <= SIEVE_FIELD_ALL);
    FUZZ_REQUIRE(sieve::format_fields(*fields) == text);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
    if ((data[0] & 64) != 0)
        check_fields(text);
    else if ((data[0] & SIEVE_FIELD_ALL) != 0)
        check_key(text, (data[0] & 32) != 0 ? std::uint32_t{SIEVE_FIELD_SRC} : data[0] & SIEVE_FIELD_ALL);
    check_address({data + 1, size - 1});
    return 0;
}
