// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Fuzzes the configuration of `apply`: no text does harm.
//
// What must hold: mistakes are in the order of the file and inside it. A configuration without a mistake uses
// every set. Its printed form reads back to the same configuration.
#include <algorithm>
#include <set>
#include <string>

#include "fuzz/support.hpp"
#include "libsieve/service/config/configuration_reader.hpp"
#include "libsieve/service/config/configuration_tables.hpp"
#include "libsieve/service/config/configuration_text.hpp"

namespace {

using namespace sieve::service;

constexpr char path[] = "/etc/xdp-sieve/xdp-sieve.toml";

void check_mistakes(const std::vector<Mistake>& mistakes, const std::string& text) {
    const auto lines = static_cast<std::uint32_t>(std::count(text.begin(), text.end(), '\n') + 1);
    std::uint32_t last = 0;
    for (const Mistake& mistake : mistakes) {
        FUZZ_REQUIRE(!mistake.message.empty());
        FUZZ_REQUIRE(mistake.line >= last && mistake.line <= lines);
        last = mistake.line;
    }
}

void check_uses(const Configuration& configuration) {
    FUZZ_REQUIRE(!configuration.interfaces.empty() || configuration.fleet);
    for (const InterfaceConfiguration& entry : configuration.interfaces) {
        FUZZ_REQUIRE(!entry.sets.empty());
        for (const std::string& name : entry.sets) FUZZ_REQUIRE(configuration.find_set(name) != nullptr);
    }
    for (const SetConfiguration& set : configuration.sets) {
        FUZZ_REQUIRE(!set.sources.empty());
        FUZZ_REQUIRE(std::any_of(configuration.interfaces.begin(), configuration.interfaces.end(),
                                 [&](const InterfaceConfiguration& entry) {
                                     return std::find(entry.sets.begin(), entry.sets.end(), set.name) !=
                                            entry.sets.end();
                                 }));
    }
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
    std::set<std::string> words;
    for (const TableFacts& table : configuration_tables())
        for (const KeyFacts& key : table.keys) words.insert(key.name + " = ");
    sieve::fuzz::print_words(*argc, *argv, words);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(data, data + size);
    const ReadConfiguration read = read_configuration(text, path);
    check_mistakes(read.mistakes, text);
    if (!read.mistakes.empty()) return 0;
    check_uses(read.configuration);
    const std::string printed = configuration_text(read.configuration);
    const ReadConfiguration again = read_configuration(printed, path);
    FUZZ_REQUIRE(again.mistakes.empty());
    FUZZ_REQUIRE(configuration_text(again.configuration) == printed);
    return 0;
}
