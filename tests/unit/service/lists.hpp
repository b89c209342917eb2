// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Lists and configurations for tests of the service.
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/service/safety/host_addresses.hpp"

namespace sieve::test {

// The list with these entries.
inline Feed list_of(const std::vector<std::string>& entries, std::uint32_t fields = SIEVE_FIELD_SRC) {
    Feed list(fields);
    for (const std::string& entry : entries) {
        const auto member = parse_member(entry, fields);
        if (!member) throw std::runtime_error(member.error().message);
        if (member->range)
            list.ranges.push_back(*member->range);
        else if (member->key_range)
            list.key_ranges.push_back(*member->key_range);
        else
            list.keys.add(member->key);
    }
    return list;
}

// This many addresses, from 11.0.0.0 on.
inline std::vector<std::string> addresses(int count) {
    std::vector<std::string> all;
    for (int i = 0; i < count; i++)
        all.push_back("11." + std::to_string(i >> 16) + "." + std::to_string(i >> 8 & 255) + "." +
                      std::to_string(i & 255));
    return all;
}

// Puts another file with this content in its place, so that it is another one whatever the clock says.
inline void replace_file(const std::string& path, const std::string& content) {
    const std::string next = path + ".next";
    std::ofstream(next, std::ios::binary) << content;
    std::filesystem::rename(next, path);
}

inline service::HostAddress host_address(const std::string& text,
                                         const std::string& what = "a gateway of eth0") {
    const auto key = parse_key(text, SIEVE_FIELD_SRC).value();
    return {address_number(key.word[0], key.word[1]), what};
}

class FakeHost final : public service::HostAddresses {
  public:
    std::vector<service::HostAddress> addresses;
    Result<std::vector<service::HostAddress>> read() override { return addresses; }
};

} // namespace sieve::test
