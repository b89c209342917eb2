// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "model/image_model.hpp"

#include <algorithm>

namespace sieve::model {

namespace {

using Wide = unsigned __int128;

// Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014), mix64variant13, written
// out.
std::uint64_t mix13(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 13787848793156543929ULL;
    z = (z ^ (z >> 27)) * 10723151780598845931ULL;
    return z ^ (z >> 31);
}

// `count` bits of the product, from bit `low` up.
std::uint64_t product_bits(std::uint64_t a, std::uint64_t b, unsigned low, unsigned count) {
    const std::uint64_t product = static_cast<std::uint64_t>(static_cast<Wide>(a) * b);
    return (product >> low) % (std::uint64_t{1} << count);
}

} // namespace

std::uint64_t FilterImage::number(std::size_t offset, std::size_t size) const {
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value * 256 + bytes_.at(offset + i);
    return value;
}

FilterImage::FilterImage(std::span<const unsigned char> bytes) : bytes_(bytes.begin(), bytes.end()) {
    kind_ = static_cast<unsigned>(number(4, 1));
    fields_ = static_cast<unsigned>(number(5, 1));
    choices_ = static_cast<unsigned>(number(6, 1));
    hashes_ = static_cast<unsigned>(number(7, 1));
    line_count_ = number(8, 4);
    alpha_ = number(12, 2);
    prefixes_ = number(14, 1) != 0;
    shards_ = std::uint64_t{1} << number(15, 1);
    for (std::size_t i = 0; i < nh_key_.size(); i++)
        nh_key_[i] = static_cast<std::uint32_t>(number(16 + 4 * i, 4));
    if (kind_ == ranges) ranges_.emplace(bytes);
    if (kind_ == exact) exact_.emplace(bytes);
}

// NH over the message of 32-bit words that the selected fields make at their fixed offsets. The second word
// is NH with the key two words further on (UMAC, section 4: Toeplitz).
std::pair<std::uint64_t, std::uint64_t> FilterImage::hash(const Key& key) const {
    std::uint64_t ports = 0;
    if (fields_ & 4) ports += key[4] / (1 << 24) % 65536 * (1 << 24);
    if (fields_ & 8) ports += key[4] / 256 % 65536 * 256;
    if (fields_ & 16) ports += key[4] % 256;
    const std::array<std::uint64_t, 5> words = {key[0], key[1], key[2], key[3], ports};
    std::array<std::uint64_t, 2> sums{};
    for (std::size_t pass = 0; pass < 2; pass++)
        for (std::size_t w = 0; w < words.size(); w++) {
            const unsigned needed = w < 2 ? 1 : w < 4 ? 2 : 28;
            if ((fields_ & needed) == 0) continue;
            const std::uint64_t low = (words[w] % (1ULL << 32) + nh_key_[2 * (w + pass)]) % (1ULL << 32);
            const std::uint64_t high = (words[w] / (1ULL << 32) + nh_key_[2 * (w + pass) + 1]) % (1ULL << 32);
            sums[pass] += low * high;
        }
    return {mix13(sums[0]), mix13(sums[1])};
}

std::vector<std::uint64_t> FilterImage::lines(std::uint64_t locate) const {
    const std::uint64_t own = locate % (1ULL << 32);
    std::vector<std::uint64_t> lines{own * line_count_ / (1ULL << 32)};
    const bool phi = product_bits(locate, 11400714819323198485ULL, 48, 16) <= alpha_;
    // A further line is at a share of the first line's shard: the lower bits of another number, as many as
    // say where inside a shard a number is.
    const std::uint64_t inside = (1ULL << 32) / shards_;
    const std::uint64_t shard = own / inside;
    const std::uint64_t shard_lines = line_count_ / shards_;
    const auto further = [&](std::uint64_t hash32) {
        lines.push_back(shard * shard_lines + hash32 % inside * shard_lines / inside);
    };
    if (choices_ >= 2 && phi) further(locate / (1ULL << 32));
    if (choices_ >= 3 && phi) further(product_bits(locate, 15074714826142052245ULL, 32, 32));
    return lines;
}

std::set<unsigned> FilterImage::pattern(std::uint64_t test) const {
    std::set<unsigned> bits;
    const std::uint64_t rest_multiplier = 11562461410679940143ULL;
    const std::array<std::uint64_t, 3> rounds = {test, test * 11400714819323198485ULL / 65536,
                                                 test * 6384245875588680899ULL / 65536};
    unsigned left = hashes_;
    for (const std::uint64_t round : rounds) {
        if (left < 8) break;
        std::uint64_t digits = round;
        for (unsigned word = 0; word < 8; word++, digits /= 64)
            bits.insert(64 * word + static_cast<unsigned>(digits % 64));
        left -= 8;
    }
    if (left / 4 % 2 == 1) {
        const auto parity = static_cast<unsigned>(product_bits(test, rest_multiplier, 16, 1));
        for (unsigned i = 0; i < 4; i++)
            bits.insert(64 * (2 * i + parity) +
                        static_cast<unsigned>(product_bits(test, rest_multiplier, 17 + 6 * i, 6)));
    }
    if (left / 2 % 2 == 1) {
        const auto place = static_cast<unsigned>(product_bits(test, rest_multiplier, 41, 2));
        for (unsigned i = 0; i < 2; i++)
            bits.insert(64 * (4 * i + place) +
                        static_cast<unsigned>(product_bits(test, rest_multiplier, 43 + 6 * i, 6)));
    }
    if (left % 2 == 1)
        bits.insert(64 * static_cast<unsigned>(product_bits(test, rest_multiplier, 55, 3)) +
                    static_cast<unsigned>(product_bits(test, rest_multiplier, 58, 6)));
    return bits;
}

// The address as 128 binary digits. Digits behind the length are cleared, and the length is mixed into both
// sums.
std::pair<std::uint64_t, std::uint64_t> FilterImage::hash_prefix(const Key& key, unsigned length) const {
    const std::size_t word = fields_ == 1 ? 0 : 2;
    std::array<std::uint64_t, 2> cut = {0, 0};
    for (unsigned bit = 0; bit < length; bit++) {
        const std::uint64_t digit = (key[word + bit / 64] >> (63 - bit % 64)) % 2;
        cut[bit / 64] += digit << (63 - bit % 64);
    }
    std::array<std::uint64_t, 2> sums{};
    for (std::size_t pass = 0; pass < 2; pass++) {
        sums[pass] = length * 11400714819323198485ULL;
        for (std::size_t w = 0; w < 2; w++)
            sums[pass] += (cut[w] % (1ULL << 32) + nh_key_[2 * (w + pass)]) % (1ULL << 32) *
                          ((cut[w] / (1ULL << 32) + nh_key_[2 * (w + pass) + 1]) % (1ULL << 32));
    }
    return {mix13(sums[0]), mix13(sums[1])};
}

// A set of several fields: the first binary digits of each address, the fields that are compared, and in the
// upper 24 bits of the last word the probe itself. All ten 32-bit words are hashed.
std::pair<std::uint64_t, std::uint64_t>
FilterImage::hash_probe(const Key& key, unsigned source, unsigned destination, unsigned transport) const {
    std::array<std::uint64_t, 5> words{};
    for (unsigned address = 0; address < 2; address++)
        for (unsigned bit = 0; bit < (address == 0 ? source : destination); bit++) {
            const std::uint64_t digit = (key[2 * address + bit / 64] >> (63 - bit % 64)) % 2;
            words[2 * address + bit / 64] += digit << (63 - bit % 64);
        }
    if (transport & 4) words[4] += key[4] / (1 << 24) % 65536 * (1 << 24);
    if (transport & 8) words[4] += key[4] / 256 % 65536 * 256;
    if (transport & 16) words[4] += key[4] % 256;
    words[4] += (source + 256ULL * destination + 65536ULL * transport) * (1ULL << 40);
    std::array<std::uint64_t, 2> sums{};
    for (std::size_t pass = 0; pass < 2; pass++)
        for (std::size_t w = 0; w < words.size(); w++)
            sums[pass] += (words[w] % (1ULL << 32) + nh_key_[2 * (w + pass)]) % (1ULL << 32) *
                          ((words[w] / (1ULL << 32) + nh_key_[2 * (w + pass) + 1]) % (1ULL << 32));
    return {mix13(sums[0]), mix13(sums[1])};
}

bool FilterImage::contains(const Key& key, std::uint64_t now) const {
    if (ranges_) return fields_ == 1 ? ranges_->contains(key[0], key[1]) : ranges_->contains(key[2], key[3]);
    if (exact_ && fields_ != 1 && fields_ != 2) return exact_->contains(key);
    if (exact_)
        return fields_ == 1 ? exact_->contains(key[0], key[1], now) : exact_->contains(key[2], key[3], now);
    if (!prefixes_) return contains_hash(hash(key));
    if (fields_ != 1 && fields_ != 2) {
        const std::size_t word = fields_ % 2 == 1 ? 0 : 2;
        const bool v4 = key[word] == 0 && key[word + 1] / (1ULL << 32) == 65535;
        // Line 1: behind the lengths, eight lengths of the destination for each family, then eight field
        // sets.
        const std::uint64_t count = number(64 + (v4 ? 0 : 1), 1);
        for (std::uint64_t i = 0; i < count; i++) {
            const std::uint64_t at = 64 + 8 + (v4 ? 0 : 8) + i;
            if (contains_hash(hash_probe(key, static_cast<unsigned>(number(at, 1)),
                                         static_cast<unsigned>(number(at + 16, 1)),
                                         static_cast<unsigned>(number(at + 32, 1)))))
                return true;
        }
        return false;
    }
    const std::size_t word = fields_ == 1 ? 0 : 2;
    const bool v4 = key[word] == 0 && key[word + 1] / (1ULL << 32) == 65535;
    // Line 1: counts by family (IPv4 first), then from byte 8 on eight lengths for each.
    const std::uint64_t count = number(64 + (v4 ? 0 : 1), 1);
    for (std::uint64_t i = 0; i < count; i++)
        if (contains_hash(hash_prefix(key, static_cast<unsigned>(number(64 + 8 + (v4 ? 0 : 8) + i, 1)))))
            return true;
    return false;
}

bool FilterImage::bit(std::uint64_t line, unsigned bit) const {
    return number((6 + line) * 64 + bit / 8, 1) >> (bit % 8) & 1;
}

// Equation j: the exclusive or of one bit of each window is bit j of the fingerprint. Window i begins at bit
// 56 i and has 64 bits; key-dependent is where in the window equation 0 reads. The line's first 16 bits are
// its header.
// XORSAT: a bit for each equation of the key that the line does not fulfil, from the lowest.
std::uint64_t FilterImage::remainder(std::uint64_t locate, std::uint64_t test) const {
    const std::uint64_t own = locate % (1ULL << 32) * line_count_ / (1ULL << 32);
    const auto eighth = static_cast<unsigned>(test / (1ULL << 54) % 8);
    std::uint64_t line = own;
    if (bit(own, 8 + eighth)) {
        const std::uint64_t reach = std::min<std::uint64_t>(64, line_count_);
        const std::uint64_t scattered = product_bits(8 * own + eighth, 11400714819323198485ULL, 32, 32);
        line = (own + scattered * reach / (1ULL << 32)) % line_count_;
    }
    const std::uint64_t compared = (number((6 + line) * 64, 1) + test / (1ULL << 61)) / 8;
    std::uint64_t unfulfilled = 0;
    for (unsigned j = 0; j < compared; j++) {
        bool sum = (locate >> 32 >> j & 1) != 0;
        std::uint64_t digits = test;
        for (unsigned window = 0; window < 9; window++, digits /= 64) {
            const unsigned inside = static_cast<unsigned>(digits % 64) + j;
            const unsigned place = 56 * window + inside;
            if (inside < 64 && place >= 16 && bit(line, place)) sum = !sum;
        }
        // The last window once more, with its own small shift.
        if (bit(line, 448 + static_cast<unsigned>(test / (1ULL << 57) % 16) + j)) sum = !sum;
        if (sum) unfulfilled += 1ULL << j;
    }
    return unfulfilled;
}

std::optional<std::uint64_t> FilterImage::names(const Key& key) const {
    const auto [locate, test] = hash(key);
    const std::uint64_t number = remainder(locate, test);
    return number < hashes_ ? std::optional(number) : std::nullopt;
}

bool FilterImage::contains_hash(std::pair<std::uint64_t, std::uint64_t> hash) const {
    const auto [locate, test] = hash;
    if (kind_ == xorsat) return remainder(locate, test) == 0;
    const std::set<unsigned> bits = pattern(test);
    const std::vector<std::uint64_t> at = lines(locate);
    return std::any_of(at.begin(), at.end(), [&](std::uint64_t line) {
        return std::all_of(bits.begin(), bits.end(), [&](unsigned one) { return bit(line, one); });
    });
}

} // namespace sieve::model
