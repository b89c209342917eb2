// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/origin_names.hpp"

#include <cstddef>
#include <vector>

namespace sieve::service::live {

namespace {

// FNV-1a: not keyed, because another process is to find the same code.
std::uint32_t hash_of(const std::string& name) {
    std::uint32_t hash = 2166136261;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
    return hash;
}

} // namespace

std::uint8_t OriginNames::code_of(const std::string& name) {
    if (name.empty()) return 0;
    const std::size_t home = hash_of(name) % most_origins;
    for (std::size_t step = 0; step < most_origins; step++) {
        const std::size_t code = 1 + (home + step) % most_origins;
        if (names_[code].empty()) names_[code] = name;
        if (names_[code] == name) return static_cast<std::uint8_t>(code);
    }
    return 0;
}

void OriginNames::number(Decisions& answer) {
    std::vector<std::uint8_t> codes{0};
    for (const std::string& name : answer.origins) codes.push_back(code_of(name));
    for (std::vector<TimedEntry>* entries : {&answer.added, &answer.deleted})
        for (TimedEntry& entry : *entries) {
            const std::uint8_t origin = origin_of(entry.id);
            entry.id = entry_id(number_of(entry.id), origin < codes.size() ? codes[origin] : 0);
        }
}

} // namespace sieve::service::live
