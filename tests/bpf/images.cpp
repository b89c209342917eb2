// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "bpf/images.hpp"

#include <cstring>
#include <random>

#include "bpf/bounded.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/feeds/text/key_text.hpp"
#include "libsieve/filters/kinds/registry.hpp"

namespace sieve::test {

Image image_of_keys(KeySet keys, std::uint64_t seed, double bits_per_key, sieve_kind kind) {
    BuildOptions options;
    if (kind_of(kind).exact() == nullptr) options.bits_per_key = bits_per_key;
    options.seed = seed;
    options.threads = 1;
    options.kind.kind = kind;
    // Good enough for tests that ignore how low the rate is.
    if (kind == SIEVE_KIND_BLOCKED || kind == SIEVE_KIND_BLOOM) options.kind.rounds = 1;
    options.trials = 20'000; // enough for small sets, and quick
    options.label = "test";
    return value_or_fail(build_set(std::move(keys), options, [](std::string_view, double) {})).image;
}

Image image_of(const std::vector<std::string>& keys, const std::string& fields, double bits_per_key) {
    const std::uint32_t set = value_or_fail(parse_fields(fields));
    KeySet list(set);
    for (const std::string& text : keys) list.add(value_or_fail(parse_key(text, set)));
    return image_of_keys(std::move(list), 1, bits_per_key, SIEVE_KIND_BLOCKED);
}

Image random_image(std::size_t keys, std::uint64_t seed, double bits_per_key, sieve_kind kind) {
    std::mt19937_64 random(seed);
    KeySet list(SIEVE_FIELD_SRC);
    for (std::size_t i = 0; i < bounded(keys); i++) {
        sieve_key key{};
        key.word[1] = sieve_v4_mapped(static_cast<std::uint32_t>(random() % (std::uint64_t{224} << 24)));
        list.add(key);
    }
    return image_of_keys(std::move(list), seed, bits_per_key, kind);
}

Image copy_of(const Image& image) {
    Image copy =
        value_or_fail(Image::create(image.filter().size(), image.file().witnesses, image.file().exceptions));
    // The header line is the first line.
    std::memcpy(static_cast<void*>(&copy.lookup()), image.lines().data(), image.bytes());
    return copy;
}

kernel::FilterMap map_of(const Image& image, const std::string& name) {
    return value_or_fail(kernel::FilterMap::create(image, name));
}

} // namespace sieve::test
