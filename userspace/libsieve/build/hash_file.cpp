// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/build/hash_file.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/core.h>

#include "libsieve/filters/placement/distinct_hashes.hpp"
#include "libsieve/filters/placement/sort_hashes.hpp"
#include "libsieve/util/parallel/parallel.hpp"

namespace sieve {

namespace {

// Blocks of 64 KiB are written at nearly the speed of a disk's sequential writes.
constexpr std::size_t most_block_hashes = (std::size_t{64} << 10) / sizeof(sieve_hash);

std::size_t part_of(const sieve_hash& hash) {
    return (hash.locate & 0xffffffff) >> (32 - HashFile::part_bits);
}

} // namespace

HashFile::HashFile(TemporaryFile file, std::size_t block_hashes)
    : file_(std::move(file)), block_hashes_(block_hashes), parts_(parts), waiting_(parts * block_hashes) {}

Result<HashFile> HashFile::create(std::uint64_t memory) {
    SIEVE_ASSIGN(TemporaryFile file, TemporaryFile::create("hashes"));
    const std::size_t hashes = std::max(memory, least_memory) / sizeof(sieve_hash) / parts;
    return HashFile(std::move(file), std::min(hashes, most_block_hashes));
}

std::uint64_t HashFile::offset_of(std::uint64_t block) const {
    return block * block_hashes_ * sizeof(sieve_hash);
}

Status HashFile::append(std::span<const sieve_hash> hashes) {
    for (const sieve_hash& hash : hashes) {
        const std::size_t p = part_of(hash);
        Part& part = parts_[p];
        waiting_[p * block_hashes_ + part.waiting++] = hash;
        if (part.waiting == block_hashes_) SIEVE_TRY(flush(p));
    }
    return {};
}

// Only the last flush of a part may find less than a full block.
Status HashFile::flush(std::size_t p) {
    Part& part = parts_[p];
    if (part.waiting == 0) return {};
    SIEVE_TRY(
        file_.write(offset_of(blocks_), &waiting_[p * block_hashes_], part.waiting * sizeof(sieve_hash)));
    part.blocks.push_back(blocks_++);
    part.written += part.waiting;
    part.waiting = 0;
    return {};
}

// Over the part's own blocks, which have room for as many hashes as were appended.
Status HashFile::write(const Part& part, std::span<const sieve_hash> hashes) const {
    for (std::size_t first = 0; first < hashes.size(); first += block_hashes_) {
        const auto block = hashes.subspan(first, std::min(block_hashes_, hashes.size() - first));
        const std::uint64_t at = offset_of(part.blocks[first / block_hashes_]);
        SIEVE_TRY(file_.write(at, block.data(), block.size_bytes()));
    }
    return {};
}

Status HashFile::read(const Part& part, std::span<sieve_hash> hashes) const {
    for (std::size_t first = 0; first < hashes.size(); first += block_hashes_) {
        const auto block = hashes.subspan(first, std::min(block_hashes_, hashes.size() - first));
        const std::uint64_t at = offset_of(part.blocks[first / block_hashes_]);
        SIEVE_TRY(file_.read(at, block.data(), block.size_bytes()));
    }
    return {};
}

std::uint64_t HashFile::size() const {
    std::uint64_t sum = 0;
    for (const Part& part : parts_) sum += part.written + part.waiting;
    return sum;
}

std::uint64_t HashFile::bytes_of_largest(unsigned bits) const {
    std::uint64_t most = 0;
    for (std::size_t first = 0; first < parts; first += std::size_t{1} << bits) {
        std::uint64_t sum = 0;
        for (std::size_t p = first; p < first + (std::size_t{1} << bits); p++)
            sum += (parts_[p].written + parts_[p].waiting) * sizeof(sieve_hash);
        most = std::max(most, sum);
    }
    return most;
}

Status HashFile::sort(std::uint64_t memory) {
    for (std::size_t p = 0; p < parts; p++) SIEVE_TRY(flush(p));
    waiting_ = {};
    const std::uint64_t largest = bytes_of_largest(0);
    if (memory < largest)
        return invalid_request(fmt::format("{} bytes of memory are too few to sort {} hashes in {} parts; "
                                           "the largest part takes {} bytes",
                                           memory, size(), parts, largest));
    const ThreadLimit limit(std::clamp<std::uint64_t>(memory / std::max<std::uint64_t>(1, largest), 1,
                                                      std::max(1U, std::thread::hardware_concurrency())));
    std::mutex mutex;
    std::optional<Error> failed;
    for_each_index(parts, [&](std::size_t p) {
        Part& part = parts_[p];
        HugeArray<sieve_hash> hashes(part.written);
        Status done = read(part, {hashes.data(), hashes.size()});
        if (done) {
            sort_hashes({hashes.data(), hashes.size()}, part_bits);
            const auto same = [](const sieve_hash& a, const sieve_hash& b) {
                return a.locate == b.locate && a.test == b.test;
            };
            hashes.truncate(
                static_cast<std::size_t>(std::unique(hashes.begin(), hashes.end(), same) - hashes.begin()));
            done = write(part, {hashes.data(), hashes.size()});
            part.written = hashes.size();
        }
        const HashSum sum = sum_of({hashes.data(), hashes.size()});
        const std::lock_guard lock(mutex);
        if (done)
            sum_ += sum;
        else
            failed = done.error();
    });
    if (failed) return tl::unexpected(*failed);
    return {};
}

Result<HugeArray<sieve_hash>> HashFile::read(std::size_t first, std::size_t count) const {
    std::uint64_t size = 0;
    for (std::size_t p = first; p < first + count; p++) size += parts_[p].written;
    HugeArray<sieve_hash> hashes(size);
    std::uint64_t at = 0;
    for (std::size_t p = first; p < first + count; p++) {
        SIEVE_TRY(read(parts_[p], {hashes.data() + at, parts_[p].written}));
        at += parts_[p].written;
    }
    return hashes;
}

// A binary search, one hash at a time: few hashes are asked for.
Result<bool> HashFile::holds(const sieve_hash& hash) const {
    const Part& part = parts_[part_of(hash)];
    std::uint64_t low = 0;
    std::uint64_t high = part.written;
    while (low < high) {
        const std::uint64_t middle = low + (high - low) / 2;
        sieve_hash found{};
        const std::uint64_t at = offset_of(part.blocks[middle / block_hashes_]);
        SIEVE_TRY(file_.read(at + middle % block_hashes_ * sizeof(sieve_hash), &found, sizeof(found)));
        if (found.locate == hash.locate && found.test == hash.test) return true;
        if (hash_order(found, hash))
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

} // namespace sieve
