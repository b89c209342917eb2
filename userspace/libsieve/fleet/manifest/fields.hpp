// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Numbers and texts as bytes, one after the other: a number is eight bytes, a text its length and itself.
// Reading them takes no parser, so a process with privileges can read what one without privileges wrote.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sieve::fleet {

class FieldWriter {
  public:
    void number(std::uint64_t value) {
        for (int i = 0; i < 8; i++) bytes_ += static_cast<char>(value >> (8 * i));
    }
    void text(std::string_view value) {
        number(value.size());
        bytes_ += value;
    }
    [[nodiscard]] const std::string& bytes() const { return bytes_; }

  private:
    std::string bytes_;
};

// After a field that is not there, every further one is 0 or empty.
class FieldReader {
  public:
    explicit FieldReader(std::string_view bytes) : left_(bytes) {}

    std::uint64_t number() {
        if (left_.size() < 8) return fail();
        std::uint64_t value = 0;
        for (int i = 7; i >= 0; i--)
            value = value << 8 | static_cast<unsigned char>(left_[static_cast<std::size_t>(i)]);
        left_.remove_prefix(8);
        return value;
    }
    // A number of at most `most`, such as a count of what follows.
    std::uint64_t number(std::uint64_t most) {
        const std::uint64_t value = number();
        return value <= most ? value : fail();
    }
    std::string text() {
        const std::uint64_t size = number();
        if (size > left_.size()) return std::string(fail(), '\0');
        std::string value(left_.substr(0, size));
        left_.remove_prefix(size);
        return value;
    }
    // Everything was there, and nothing is left.
    [[nodiscard]] bool complete() const { return !failed_ && left_.empty(); }

  private:
    std::uint64_t fail() {
        failed_ = true;
        left_ = {};
        return 0;
    }

    std::string_view left_;
    bool failed_ = false;
};

} // namespace sieve::fleet
