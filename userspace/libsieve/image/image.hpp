// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A filter image in memory: the lines of sieve/image.h, made by a builder or read from a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include <sieve/image.h>

#include "libsieve/image/header.hpp"
#include "libsieve/util/files/input.hpp"
#include "libsieve/util/files/output.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve {

class FilterKind;
class Kinds;
[[nodiscard]] const Kinds& built_in_kinds();

// Move-only owner of an image's pages. An Image that exists is either under construction by a builder or has
// passed check().
class Image {
  public:
    // Each of these takes the kinds that the image may be of; they must outlive the image.

    // Zeroed pages for a filter of `filter_lines` lines, `witnesses` witness lines and `exceptions` exception
    // lines, with magic, version and sizes set. Errors: out_of_memory; bad_input if a map cannot have that
    // many lines.
    static Result<Image> create(std::uint64_t filter_lines, std::uint32_t witnesses,
                                std::uint32_t exceptions = 0, const Kinds& kinds = built_in_kinds());

    // Reads an image up to the input's end and checks it. Refuses a wrong, truncated, altered or foreign
    // image, and says what is wrong with it. Checks the header before it allocates memory and reads the rest.
    static Result<Image> load(Input& input, const Kinds& kinds = built_in_kinds());

    // The same for a path; "-" is standard input.
    static Result<Image> load(const std::filesystem::path& path, const Kinds& kinds = built_in_kinds());

    Image(Image&& other) noexcept;
    Image& operator=(Image&& other) noexcept;
    ~Image();

    // Writes the checksum, then the file. As with write_output(), the file is replaced as a whole or not at
    // all. Only its owner may read it, because an image holds secret hash keys. An existing file is replaced
    // only if it is an image, or if `replace` allows it.
    [[nodiscard]] Status save(const std::filesystem::path& path, Replace replace = Replace::ours);

    // Sets the checksum of the current content.
    void seal();

    // Checks everything that can be wrong with an image's bytes. The error names `origin` (a path or "built
    // image").
    [[nodiscard]] Status check(const std::string& origin) const;

    [[nodiscard]] sieve_lookup& lookup();
    [[nodiscard]] const sieve_lookup& lookup() const;
    [[nodiscard]] sieve_file& file();
    [[nodiscard]] const sieve_file& file() const;

    // What lookup() says.
    [[nodiscard]] const FilterKind& kind() const;

    // The lengths of a prefix set.
    [[nodiscard]] sieve_probes& probes();
    [[nodiscard]] const sieve_probes& probes() const;

    // The filter's own lines.
    [[nodiscard]] std::span<sieve_line> filter();
    [[nodiscard]] std::span<const sieve_line> filter() const;

    [[nodiscard]] std::span<sieve_witness> witnesses();
    [[nodiscard]] std::span<const sieve_witness> witnesses() const;

    // The keys that the filter promises not to match, if file().excluded is not 0.
    [[nodiscard]] std::span<sieve_exception> exceptions();
    [[nodiscard]] std::span<const sieve_exception> exceptions() const;

    // The whole image, as the kernel's map holds it.
    [[nodiscard]] std::span<const sieve_line> lines() const { return {lines_, count_}; }
    [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(sieve_line); }

    // True if the filter may hold the key or, for a prefix set, one of the address's prefixes. Runs the same
    // locate and test as the packet path.
    [[nodiscard]] bool contains(const sieve_key& key) const;

    // One question of a lookup: whether the filter may hold what this probe (of probes_of()) compares of the
    // key.
    [[nodiscard]] bool holds(const sieve_key& key, const sieve_probe& probe) const;

    // Whether no exception matches. Asks at most most_exception_questions; the caller has counted them.
    [[nodiscard]] bool excludes(std::span<const sieve_exception> exceptions) const;

  private:
    Image(sieve_line* lines, std::size_t count, const Kinds& kinds)
        : lines_(lines), count_(count), kinds_(&kinds) {}
    [[nodiscard]] std::uint64_t checksum() const;
    [[nodiscard]] bool contains_hash(sieve_hash hash) const;

    sieve_line* lines_ = nullptr;
    std::size_t count_ = 0;
    const Kinds* kinds_;
};

// True if the input begins like a filter image. Only peeks at the input.
[[nodiscard]] Result<bool> is_image(Input& input);

// How an image file begins, for code that may overwrite one.
[[nodiscard]] const OutputKind& image_output();

} // namespace sieve
