// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include <fmt/core.h>

#include "libsieve/api/handles.hpp"
#include "libsieve/build/set_builder.hpp"
#include "libsieve/filters/kinds/registry.hpp"

namespace {

constexpr std::uint32_t most_threads = 1024; // as for `build --threads`

sieve::Result<sieve::BuildOptions> build_options(const libsieve_build_options* given) {
    SIEVE_ASSIGN(const libsieve_build_options from, sieve::api::at_full_size(given));
    if (from.threads > most_threads)
        return sieve::invalid_request(
            fmt::format("{} threads: expected at most {}", from.threads, most_threads));
    sieve::BuildOptions options;
    if (from.bits_per_key != 0) options.bits_per_key = from.bits_per_key;
    if (from.fpr != 0) options.fpr = from.fpr;
    if (from.memory != 0) options.memory = from.memory;
    options.kind.kind = sieve::automatic_kind;
    if (from.kind != nullptr) {
        SIEVE_ASSIGN(options.kind.kind, sieve::parse_kind(from.kind));
    }
    if (from.effort != nullptr) {
        SIEVE_ASSIGN(options.kind.effort, sieve::parse_effort(from.effort));
    }
    if (from.choices != 0) options.kind.choices = from.choices;
    options.threads = from.threads;
    if (from.use_seed) options.seed = from.seed;
    if (from.label != nullptr) options.label = from.label;
    return options;
}

// The members of `keys` without the exceptions among them, and what the builder is told.
sieve::Result<sieve::Exceptions> take_out(sieve::Members& members, const libsieve_keys* keys,
                                          const libsieve_build_options* given) {
    SIEVE_ASSIGN(const libsieve_build_options from, sieve::api::at_full_size(given));
    const libsieve_keys* const exceptions = from.exceptions;
    if (exceptions == nullptr) return sieve::Exceptions{};
    if (exceptions == keys) return sieve::bad_input("every entry of the list is an exception");
    if (exceptions->members.fields() != members.fields())
        return sieve::invalid_request("the exceptions have other fields than the keys");
    SIEVE_TRY(sieve::subtract(members, exceptions->members));
    if (members.empty()) return sieve::bad_input("every entry of the list is an exception");
    return sieve::Exceptions{.lines = sieve::prefixes_of(exceptions->members)};
}

} // namespace

bool libsieve_build(libsieve_keys* keys, const libsieve_build_options* options, libsieve_image** image,
                    libsieve_error** error) {
    return sieve::api::guarded(error, {{"keys", keys}, {"image", image}}, [&]() -> sieve::Status {
        libsieve_keys taken{sieve::Members(keys->members.fields())};
        std::swap(taken, *keys);
        SIEVE_ASSIGN(const sieve::BuildOptions chosen, build_options(options));
        SIEVE_ASSIGN(const sieve::Exceptions exceptions, take_out(taken.members, keys, options));
        SIEVE_ASSIGN(sieve::BuiltSet built,
                     sieve::build_set(std::move(taken.members), chosen, {}, exceptions));
        *image = std::make_unique<libsieve_image>(libsieve_image{std::move(built.image)}).release();
        return {};
    });
}
