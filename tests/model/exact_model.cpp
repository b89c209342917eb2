// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "model/exact_model.hpp"

#include <array>

namespace sieve::model {

namespace {

__extension__ typedef unsigned __int128 Wide;

constexpr std::size_t line_bytes = 64;
constexpr std::size_t first_line = 6;
constexpr std::uint64_t two_to_32 = std::uint64_t{1} << 32;

// Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014), mix64variant13.
std::uint64_t mix13(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 13787848793156543929ULL;
    z = (z ^ (z >> 27)) * 10723151780598845931ULL;
    return z ^ (z >> 31);
}

std::uint64_t nh(std::uint64_t word, std::uint64_t key) {
    return (word % two_to_32 + key % two_to_32) % two_to_32 *
           ((word / two_to_32 + key / two_to_32) % two_to_32);
}

} // namespace

std::uint64_t ExactImage::number(std::size_t offset, std::size_t size) const {
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value * 256 + bytes_.at(offset + i);
    return value;
}

ExactImage::ExactImage(std::span<const unsigned char> bytes) : bytes_(bytes.begin(), bytes.end()) {}

std::optional<std::uint64_t> ExactImage::lane(std::uint64_t word, std::uint64_t entry) const {
    const unsigned width = static_cast<unsigned>(number(7, 1));
    const unsigned value_bits = static_cast<unsigned>(number(12, 1));
    // IPv4 words begin behind the filter's first line.
    const std::uint64_t bits = number((first_line + 1) * line_bytes + 8 * word, 8);
    const auto read = [bits](unsigned first, unsigned count) {
        std::uint64_t found = 0;
        for (unsigned bit = 0; bit < count; bit++) found += (bits >> (first + bit) & 1) << bit;
        return found;
    };
    for (unsigned at = 0; at + width <= 64; at += width)
        if (read(at + value_bits, width - value_bits) == entry) return read(at, value_bits);
    return std::nullopt;
}

std::optional<std::uint64_t> ExactImage::value_ipv4(std::uint64_t address) const {
    const std::uint64_t words = number(16, 4);
    const std::uint64_t range = number(20, 4);
    // Add; then three times: fold the upper half into the lower one, multiply.
    std::uint64_t x = (address + number(24, 4)) % two_to_32;
    const std::array<unsigned, 3> folds = {16, 15, 16};
    for (std::size_t round = 0; round < folds.size(); round++) {
        x = x ^ x / (std::uint64_t{1} << folds[round]);
        x = x * number(28 + 4 * round, 4) % two_to_32;
    }
    const Wide product = static_cast<Wide>(x) * words;
    const auto first = static_cast<std::uint64_t>(product / two_to_32);
    const auto rest = static_cast<std::uint64_t>(product % two_to_32 * range / two_to_32);
    const std::uint64_t scattered = rest * number(40, 4) % two_to_32;
    const std::uint64_t second =
        (first + 1 + static_cast<std::uint64_t>(static_cast<Wide>(scattered) * number(44, 4) / two_to_32)) %
        words;
    const std::optional<std::uint64_t> found = lane(first, rest);
    return found ? found : lane(second, range + rest);
}

std::optional<std::uint64_t> ExactImage::value_ipv6(std::uint64_t upper, std::uint64_t lower) const {
    const std::size_t part = first_line * line_bytes;
    const std::uint64_t lines = number(part + 16, 4);
    if (lines == 0) return std::nullopt;
    const std::uint64_t hash = mix13(nh(upper, number(part, 8)) + nh(lower, number(part + 8, 8)));
    const std::uint64_t behind = first_line + 1 + number(16, 4) / 8;
    for (const std::uint64_t half : {hash / two_to_32, hash % two_to_32}) {
        const auto own = static_cast<std::uint64_t>(static_cast<Wide>(half) * lines / two_to_32);
        const std::uint64_t line = behind + own;
        for (std::size_t place = 0; place < 4; place++)
            if (number(line * line_bytes + 8 * place, 8) == upper &&
                number(line * line_bytes + 8 * (place + 4), 8) == lower) {
                // Behind the addresses: two bytes for each place.
                if (number(12, 1) == 0) return 0;
                return number((behind + lines) * line_bytes + 8 * own + 2 * place, 2);
            }
    }
    return std::nullopt;
}

std::optional<std::uint64_t> ExactImage::value(std::uint64_t upper, std::uint64_t lower) const {
    if (upper == 0 && lower / two_to_32 == 0xffff) return value_ipv4(lower % two_to_32);
    return value_ipv6(upper, lower);
}

bool ExactImage::contains(std::uint64_t upper, std::uint64_t lower, std::uint64_t now) const {
    const std::optional<std::uint64_t> found = value(upper, lower);
    const std::size_t part = first_line * line_bytes;
    if (!found || number(part + 20, 1) != 2) return found.has_value();
    // All ones: never. Else the key ends where that unit begins, counted from the base; clocks wrap.
    if (*found + 1 == std::uint64_t{1} << number(12, 1)) return true;
    const std::uint64_t since = now - number(part + 24, 8);
    if (since / (std::uint64_t{1} << 63) == 1) return *found > 0;
    return *found > 0 && (static_cast<Wide>(*found) << number(part + 21, 1)) > since;
}

bool ExactImage::contains(const std::array<std::uint64_t, 5>& key) const {
    const std::size_t part = first_line * line_bytes;
    const std::uint64_t fields = number(5, 1);
    // The key's words of the selected fields: source and destination address, then ports and protocol.
    std::vector<std::uint64_t> words;
    std::vector<std::uint64_t> secrets;
    const auto take = [&](std::size_t word, std::uint64_t value) {
        words.push_back(value);
        secrets.push_back(number(part + 16 + 8 * word, 8));
    };
    if (fields % 2 == 1) take(0, key[0]), take(1, key[1]);
    if (fields / 2 % 2 == 1) take(2, key[2]), take(3, key[3]);
    if (fields / 4 != 0) {
        std::uint64_t ports = 0;
        if (fields / 4 % 2 == 1) ports += key[4] / (1 << 24) % 65536 * (1 << 24);
        if (fields / 8 % 2 == 1) ports += key[4] / 256 % 65536 * 256;
        if (fields / 16 % 2 == 1) ports += key[4] % 256;
        take(4, ports);
    }
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < words.size(); i++) sum += nh(words[i], secrets[i]);
    const std::uint64_t hash = mix13(sum);
    const std::uint64_t tag = hash % 32768 == 0 ? 1 : hash % 32768;
    const std::uint64_t rows = number(part + 8, 4);
    // Behind the first line: rows of 32 bytes, then groups of 8 records.
    const std::uint64_t groups = part + line_bytes + 32 * rows;
    const std::uint64_t group_bytes = 8 * 8 * words.size();
    for (const std::uint64_t drawn : {hash / two_to_32, hash / 256 % two_to_32}) {
        const std::uint64_t row = drawn * rows / two_to_32;
        for (std::uint64_t i = 0; i < 16; i++) {
            if (number(part + line_bytes + 32 * row + 2 * i, 2) % 32768 != tag) continue;
            const std::uint64_t place = 16 * row + i;
            std::uint64_t at = groups + place / 8 * group_bytes;
            bool same = true;
            for (std::size_t word = 0; word < words.size(); word++) {
                // Words of addresses are in pairs, one behind the other; ports are by themselves.
                const bool is_address = word < words.size() - words.size() % 2;
                const std::uint64_t own =
                    is_address ? at + 16 * (place % 8) + 8 * (word % 2) : at + 8 * (place % 8);
                same = same && number(own, 8) == words[word];
                if (word % 2 == 1) at += 2 * line_bytes;
            }
            if (same) return true;
        }
    }
    return false;
}

} // namespace sieve::model
