// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/setup/bench_keys.hpp"

#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "bpf/bench/bench_control.h"

namespace sieve::bench {

std::vector<std::uint32_t> member_addresses(std::uint64_t keys) {
    std::vector<std::uint32_t> addresses(keys);
    for (std::uint64_t i = 0; i < keys; i++) addresses[i] = bench_address(static_cast<std::uint32_t>(i));
    return addresses;
}

KeySet member_keys(std::uint64_t keys) {
    KeySet set(SIEVE_FIELD_SRC);
    set.reserve(keys);
    for (std::uint64_t i = 0; i < keys; i++) {
        sieve_key key{};
        key.word[1] = sieve_v4_mapped(bench_address(static_cast<std::uint32_t>(i)));
        set.add(key);
    }
    return set;
}

Result<BuiltSet> build_exact_set(std::uint64_t keys, const Progress& progress) {
    BuildOptions build;
    build.kind.kind = SIEVE_KIND_EXACT;
    return build_set(member_keys(keys), build, progress);
}

Status write_addresses(const std::filesystem::path& path, std::span<const std::uint32_t> addresses,
                       const std::string& head, const std::string& before, const std::string& after,
                       const std::string& tail) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"), &std::fclose);
    if (!file) return bad_input(fmt::format("{}: cannot be written", path.string()));
    std::string text = head;
    bool good = true;
    for (const std::uint32_t address : addresses) {
        fmt::format_to(std::back_inserter(text), "{}{}.{}.{}.{}{}", before, address >> 24,
                       address >> 16 & 255, address >> 8 & 255, address & 255, after);
        if (text.size() < 1 << 20) continue;
        good = good && std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
        text.clear();
    }
    text += tail;
    good = good && std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
    if (!good || std::fflush(file.get()) != 0)
        return bad_input(fmt::format("{}: could not be written, is the disk full?", path.string()));
    return {};
}

} // namespace sieve::bench
