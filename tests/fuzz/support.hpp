// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Parts that all fuzz targets share: reporting a disagreement, files in memory, and numbers for the totals.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <span>
#include <string>
#include <string_view>

// The functions that libFuzzer calls.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

// Checks what must hold. libFuzzer keeps the input of a run that aborts.
#define FUZZ_REQUIRE(condition)                                                                              \
    do {                                                                                                     \
        if (!(condition)) ::sieve::fuzz::disagree(#condition, __FILE__, __LINE__);                           \
    } while (0)

namespace sieve::fuzz {

using Bytes = std::span<const std::uint8_t>;

// What is being checked right now. A target that derives many texts from one input names the text, so that a
// disagreement can be read and repeated by hand.
inline std::string_view& subject() {
    static std::string_view text;
    return text;
}

[[noreturn]] inline void disagree(const char* condition, const char* file, int line) {
    std::fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    if (!subject().empty()) std::fputs("of: ", stderr);
    for (const char sign : subject())
        if (sign >= ' ' && sign <= '~' && sign != '\\')
            std::fputc(sign, stderr);
        else
            std::fprintf(stderr, "\\x%02x", static_cast<unsigned char>(sign));
    if (!subject().empty()) std::fputc('\n', stderr);
    std::abort();
}

// `TARGET --words`: prints the words as the lines of a dictionary, and ends the process.
inline void print_words(int argc, const char* const* argv, const std::set<std::string>& words) {
    if (argc != 2 || std::string_view(argv[1]) != "--words") return;
    for (const std::string& word : words) std::printf("\"%s\"\n", word.c_str());
    std::exit(0);
}

// Counts checks, of which one execution may make several, and prints the total when the process ends.
class Total {
  public:
    explicit Total(const char* what) : what_(what) {}
    ~Total() { std::fprintf(stderr, "total: %llu %s\n", static_cast<unsigned long long>(count_), what_); }
    Total(const Total&) = delete;
    Total& operator=(const Total&) = delete;

    void add(std::uint64_t more) { count_ += more; }

  private:
    const char* what_;
    std::uint64_t count_ = 0;
};

// A file in memory that has a path. Writing replaces its whole content.
class MemoryFile {
  public:
    explicit MemoryFile(const char* name) : fd_(::memfd_create(name, MFD_CLOEXEC)) {
        FUZZ_REQUIRE(fd_ >= 0);
        path_ = "/proc/self/fd/" + std::to_string(fd_);
    }
    ~MemoryFile() { ::close(fd_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }

    void assign(const void* bytes, std::size_t size) {
        FUZZ_REQUIRE(::ftruncate(fd_, static_cast<off_t>(size)) == 0);
        FUZZ_REQUIRE(::pwrite(fd_, bytes, size, 0) == static_cast<ssize_t>(size));
    }

  protected:
    [[nodiscard]] int fd() const { return fd_; }

  private:
    int fd_;
    std::string path_;
};

// The same file as standard input, whose path is "-". The kernel looks up no path and opens nothing, so this
// is the cheapest way to make the library read bytes as a file.
class StandardInput : public MemoryFile {
  public:
    explicit StandardInput(const char* name) : MemoryFile(name) {
        FUZZ_REQUIRE(::dup2(fd(), STDIN_FILENO) == STDIN_FILENO);
    }

    void assign(const void* bytes, std::size_t size) {
        MemoryFile::assign(bytes, size);
        rewind();
    }
    void rewind() { FUZZ_REQUIRE(::lseek(STDIN_FILENO, 0, SEEK_SET) == 0); }
};

// A message must be one line of limited length that any terminal can show.
inline void require_message(std::string_view message) {
    FUZZ_REQUIRE(!message.empty() && message.size() < 1500);
    for (const char c : message) FUZZ_REQUIRE(c >= ' ' && c <= '~');
}

// Random numbers that depend on the input alone, so that a run can be repeated (SplitMix64).
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }
    // 0 .. bound - 1
    std::uint64_t below(std::uint64_t bound) { return next() % bound; }
    bool one_in(std::uint64_t times) { return below(times) == 0; }

  private:
    std::uint64_t state_;
};

// FNV-1a; gives the seed of an input's random numbers.
inline std::uint64_t fingerprint(Bytes bytes) {
    std::uint64_t sum = 0xcbf29ce484222325ULL;
    for (const std::uint8_t byte : bytes) sum = (sum ^ byte) * 0x100000001b3ULL;
    return sum;
}

} // namespace sieve::fuzz
