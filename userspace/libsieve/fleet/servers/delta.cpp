// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/servers/delta.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <zstd.h>

#include "libsieve/fleet/servers/sha256.hpp"
#include "libsieve/util/system/write_all.hpp"

namespace sieve::fleet {

namespace {

// Higher levels take a hundred times as long for half the size.
constexpr int level = 9;
constexpr int narrowest_window = 10; // zstd takes no less, and lists may be shorter
constexpr int widest_window = 30;

// A whole file, to be read.
class Mapping {
  public:
    [[nodiscard]] static Result<Mapping> of(int file) {
        struct stat info {};
        if (::fstat(file, &info) != 0) return bad_input("cannot be read: " + errno_text(errno));
        const auto size = static_cast<std::size_t>(info.st_size);
        if (size == 0 || size > largest_for_delta)
            return bad_input(fmt::format("{} bytes, expected 1 to {}", size, largest_for_delta));
        void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
        if (at == MAP_FAILED) return bad_input("cannot be read: " + errno_text(errno));
        return Mapping(at, size);
    }
    Mapping(Mapping&& other) noexcept : at_(std::exchange(other.at_, nullptr)), size_(other.size_) {}
    Mapping& operator=(Mapping&&) = delete;
    ~Mapping() {
        if (at_ != nullptr) ::munmap(at_, size_);
    }
    [[nodiscard]] const void* data() const { return at_; }
    [[nodiscard]] std::size_t size() const { return size_; }

  private:
    Mapping(void* at, std::size_t size) : at_(at), size_(size) {}
    void* at_;
    std::size_t size_;
};

Status check(std::size_t code, const char* what) {
    if (ZSTD_isError(code) == 0) return {};
    return bad_input(fmt::format("{}: {}", what, ZSTD_getErrorName(code)));
}

// By the blob at hand. False: the store has no such difference.
Result<bool> bring_by_delta(ObjectStore& store, const Blob& blob, const BlobAtHand& before, int file) {
    if (blob.bytes > largest_for_delta) return false;
    SIEVE_ASSIGN(const std::optional<std::string> delta,
                 store.read(delta_name(before.digest, blob.digest), blob.bytes));
    if (!delta) return false;
    SIEVE_TRY(apply_delta(before.file, *delta, file, blob.bytes));
    SIEVE_ASSIGN(const std::string digest, sha256_of_file(file));
    if (digest != blob.digest) return bad_input("the difference leads to another blob");
    return true;
}

} // namespace

std::string delta_name(const std::string& from, const std::string& to) {
    return to + ".from." + from;
}

Result<std::string> make_delta(int from, int to) {
    SIEVE_ASSIGN(const Mapping before, Mapping::of(from));
    SIEVE_ASSIGN(const Mapping after, Mapping::of(to));
    const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
    if (!context) return failure(ErrorKind::out_of_memory, "no memory for a difference");
    const int window =
        std::clamp<int>(std::bit_width(before.size() + after.size()), narrowest_window, widest_window);
    const std::pair<ZSTD_cParameter, int> parameters[] = {
        {ZSTD_c_compressionLevel, level}, {ZSTD_c_windowLog, window}, {ZSTD_c_enableLongDistanceMatching, 1}};
    for (const auto& [parameter, value] : parameters)
        SIEVE_TRY(check(ZSTD_CCtx_setParameter(context.get(), parameter, value), "zstd"));
    SIEVE_TRY(check(ZSTD_CCtx_refPrefix(context.get(), before.data(), before.size()), "zstd"));
    std::string delta(ZSTD_compressBound(after.size()), '\0');
    const std::size_t size =
        ZSTD_compress2(context.get(), delta.data(), delta.size(), after.data(), after.size());
    SIEVE_TRY(check(size, "zstd"));
    delta.resize(size);
    return delta;
}

Status apply_delta(int from, std::string_view delta, int into, std::uint64_t bytes) {
    SIEVE_ASSIGN(const Mapping before, Mapping::of(from));
    if (bytes == 0 || bytes > largest_for_delta)
        return bad_input(fmt::format("{} bytes, expected 1 to {}", bytes, largest_for_delta));
    const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
    if (!context) return failure(ErrorKind::out_of_memory, "no memory for a difference");
    SIEVE_TRY(check(ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, widest_window), "zstd"));
    SIEVE_TRY(check(ZSTD_DCtx_refPrefix(context.get(), before.data(), before.size()), "zstd"));
    std::vector<char> after(bytes);
    const std::size_t size =
        ZSTD_decompressDCtx(context.get(), after.data(), after.size(), delta.data(), delta.size());
    SIEVE_TRY(check(size, "the difference cannot be applied"));
    if (size != bytes)
        return bad_input(fmt::format("the difference leads to {} bytes, expected {}", size, bytes));
    if (::lseek(into, 0, SEEK_SET) != 0) return bad_input("cannot be kept: " + errno_text(errno));
    return write_all(into, {after.data(), after.size()});
}

Status bring_blob(ObjectStore& store, const Blob& blob, const std::optional<BlobAtHand>& before, int file) {
    struct stat info {};
    // What came of a whole blob is gone on with.
    if (before && ::fstat(file, &info) == 0 && info.st_size == 0) {
        const Result<bool> brought = bring_by_delta(store, blob, *before, file);
        if (brought && *brought) return {};
        // Whatever it was, the whole blob makes up for it.
        if (::ftruncate(file, 0) != 0 || ::lseek(file, 0, SEEK_SET) != 0)
            return bad_input("cannot be kept: " + errno_text(errno));
    }
    return store.download(blob, file);
}

} // namespace sieve::fleet
