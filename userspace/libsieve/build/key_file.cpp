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
    SIEVE_ASSIGN(TemporaryFile file, TemporaryFile::create("keys"));
    return KeyFile(std::move(file), fields);
}

Status KeyFile::append(const KeySet& keys) {
    const auto write = [&](std::size_t count, const auto& data) -> Status {
        const std::span bytes = std::as_bytes(std::span(data));
        SIEVE_TRY(file_.write(bytes_, bytes.data(), bytes.size()));
        bytes_ += bytes.size();
        portions_.push_back(
            {.keys = static_cast<std::uint32_t>(count), .ipv4 = sizeof(data[0]) == sizeof(std::uint32_t)});
        return {};
    };
    const std::span<const std::uint32_t> addresses = keys.addresses();
    for (std::size_t first = 0; first < addresses.size(); first += portion_keys) {
        const std::size_t count = std::min(portion_keys, addresses.size() - first);
        SIEVE_TRY(write(count, addresses.subspan(first, count)));
    }
    const std::span<const std::uint64_t> words = keys.words();
    const std::size_t stride = keys.stride();
    std::vector<std::uint32_t> packed;
    for (std::size_t first = 0; first < words.size(); first += portion_keys * stride) {
        const auto own = words.subspan(first, std::min(portion_keys * stride, words.size() - first));
        if (sieve_is_one_address(fields_) != 0 && pack(own, packed))
            SIEVE_TRY(write(packed.size(), packed));
        else
            SIEVE_TRY(write(own.size() / stride, own));
    }
    return {};
}

Status KeyFile::for_each(const std::function<Status(const KeySet&)>& visit) const {
    std::uint64_t at = 0;
    std::vector<std::uint32_t> packed;
    std::vector<std::uint64_t> words;
    for (const Portion& portion : portions_) {
        KeySet keys(fields_);
        const auto read = [&](auto& data, std::size_t size) -> Status {
            data.resize(size);
            const std::span bytes = std::as_writable_bytes(std::span(data));
            SIEVE_TRY(file_.read(at, bytes.data(), bytes.size()));
            at += bytes.size();
            return {};
        };
        if (portion.ipv4) {
            SIEVE_TRY(read(packed, portion.keys));
            keys.append_addresses(packed);
        } else {
            SIEVE_TRY(read(words, portion.keys * keys.stride()));
            keys.append_words(words);
        }
        SIEVE_TRY(visit(keys));
    }
    return {};
}

} // namespace sieve
