// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Writes a list of distinct IPv4 addresses in an order without pattern to standard output, faster than it is
// read: for measurements of lists that are too large to be stored (scripts/build_scale.py).
//
//   write-addresses NUMBER     at most 2^32
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

// A bijection of 32 bits: each step can be undone.
std::uint32_t scatter(std::uint32_t x) {
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    return x ^ (x >> 16);
}

bool write_all(const char* bytes, std::size_t count) {
    while (count > 0) {
        const ssize_t written = ::write(STDOUT_FILENO, bytes, count);
        if (written <= 0) return false;
        bytes += written;
        count -= static_cast<std::size_t>(written);
    }
    return true;
}

} // namespace

int main(int argc, char** argv) {
    const double number = argc == 2 ? std::strtod(argv[1], nullptr) : 0;
    if (!(number >= 1 && number <= 4294967296.0)) {
        std::fprintf(stderr, "usage: write-addresses NUMBER, from 1 to 2^32\n");
        return 2;
    }
    std::array<std::string, 256> text;
    for (std::size_t i = 0; i < text.size(); i++) text[i] = std::to_string(i);
    constexpr std::size_t longest = sizeof("255.255.255.255");
    std::vector<char> buffer(std::size_t{1} << 16);
    char* out = buffer.data();
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(number); i++) {
        const std::uint32_t address = scatter(static_cast<std::uint32_t>(i));
        for (unsigned shift = 24;; shift -= 8) {
            const std::string& part = text[address >> shift & 255];
            std::memcpy(out, part.data(), part.size());
            out += part.size();
            *out++ = shift == 0 ? '\n' : '.';
            if (shift == 0) break;
        }
        if (out + longest <= buffer.data() + buffer.size()) continue;
        if (!write_all(buffer.data(), static_cast<std::size_t>(out - buffer.data()))) return 1;
        out = buffer.data();
    }
    return write_all(buffer.data(), static_cast<std::size_t>(out - buffer.data())) ? 0 : 1;
}
