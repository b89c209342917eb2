// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/key_file.hpp"

#include <algorithm>
#include <span>

namespace sieve {

namespace {

// A portion of five-tuples takes 640 KiB.
constexpr std::size_t portion_keys = std::size_t{1} << 14;

// The lower words of the addresses, if all of them are of IPv4. `words` are those of a set of one address.
bool pack(std::span<const std::uint64_t> words, std::vector<std::uint32_t>& packed) {
    packed.clear();
    for (std::size_t i = 0; i < words.size(); i += 2) {
        const auto lower = static_cast<std::uint32_t>(words[i + 1]);
        if (words[i] != 0 || words[i + 1] != sieve_v4_mapped(lower)) return false;
        packed.push_back(lower);
    }
    return true;
}

} // namespace

Result<KeyFile> KeyFile::create(std::uint32_t fields) {
    SIEVE_ASSIGN(NamelessFile file, NamelessFile::create("keys"));
    return KeyFile(std::move(file), fields);
}

Status KeyFile::append(const KeySet& keys) {
    const std::span<const std::uint64_t> words = keys.words();
    const std::size_t stride = keys.stride();
    std::vector<std::uint32_t> packed;
    for (std::size_t first = 0; first < keys.size(); first += portion_keys) {
        const std::size_t count = std::min(portion_keys, keys.size() - first);
        const auto own = words.subspan(first * stride, count * stride);
        const bool ipv4 = sieve_is_one_address(fields_) != 0 && pack(own, packed);
        const std::size_t bytes = ipv4 ? packed.size() * sizeof(packed[0]) : own.size_bytes();
        SIEVE_TRY(file_.write(
            bytes_, ipv4 ? static_cast<const void*>(packed.data()) : static_cast<const void*>(own.data()),
            bytes));
        bytes_ += bytes;
        portions_.push_back({.keys = static_cast<std::uint32_t>(count), .ipv4 = ipv4});
    }
    return {};
}

Status KeyFile::for_each(const std::function<Status(const KeySet&)>& visit) const {
    std::uint64_t at = 0;
    std::vector<std::uint32_t> packed;
    std::vector<std::uint64_t> words;
    for (const Portion& portion : portions_) {
        KeySet keys(fields_);
        words.resize(portion.keys * keys.stride());
        if (portion.ipv4) {
            packed.resize(portion.keys);
            const std::size_t bytes = packed.size() * sizeof(packed[0]);
            SIEVE_TRY(file_.read(at, packed.data(), bytes));
            at += bytes;
            for (std::size_t i = 0; i < packed.size(); i++) {
                words[2 * i] = 0;
                words[2 * i + 1] = sieve_v4_mapped(packed[i]);
            }
        } else {
            const std::size_t bytes = words.size() * sizeof(words[0]);
            SIEVE_TRY(file_.read(at, words.data(), bytes));
            at += bytes;
        }
        keys.append_words(words);
        SIEVE_TRY(visit(keys));
    }
    return {};
}

} // namespace sieve
