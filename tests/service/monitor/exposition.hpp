// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Prometheus's text format, read by the letter of its description: one line, one sample.
#pragma once

#include <map>
#include <set>
#include <sstream>
#include <string>

namespace sieve::service::test {

struct Exposition {
    std::map<std::string, double> samples;    // by name and labels, as they stand in the line
    std::map<std::string, std::string> types; // by family
    std::set<std::string> names;              // of samples, without labels

    [[nodiscard]] double value(const std::string& sample) const {
        const auto found = samples.find(sample);
        return found == samples.end() ? -1 : found->second;
    }
    // Of a sample that must not fall.
    [[nodiscard]] bool is_counter(const std::string& sample) const {
        const std::string name = sample.substr(0, sample.find('{'));
        for (const char* suffix : {"", "_sum", "_count"}) {
            const std::string ending = suffix;
            if (!name.ends_with(ending)) continue;
            const auto type = types.find(name.substr(0, name.size() - ending.size()));
            if (type == types.end()) continue;
            if (type->second == "counter" || (type->second == "summary" && !ending.empty())) return true;
        }
        return false;
    }
};

inline Exposition read_exposition(const std::string& text) {
    Exposition all;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("# TYPE ")) {
            const std::size_t blank = line.find(' ', 7);
            all.types[line.substr(7, blank - 7)] = line.substr(blank + 1);
        }
        if (line.empty() || line.front() == '#') continue;
        const std::size_t value = line.rfind(' ');
        all.samples[line.substr(0, value)] = std::stod(line.substr(value + 1));
        all.names.insert(line.substr(0, line.find_first_of("{ ")));
    }
    return all;
}

} // namespace sieve::service::test
