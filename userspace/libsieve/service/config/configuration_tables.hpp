// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Every key that a configuration may have, for what describes them: docs/configuration.md, the manual page's
// test, the dictionary of the fuzz target.
#pragma once

#include <string>
#include <vector>

namespace sieve::service {

struct KeyFacts {
    std::string name;
    std::string form;     // as ConfigurationKey has it
    std::string help;     // one line
    std::string standard; // "NAME = VALUE" or "# NAME: MEANING", as it is printed where the file does not say
};

struct TableFacts {
    std::string name; // "[service]", "[set.NAME]"; of a source that is a table, its first key: "url"
    std::vector<KeyFacts> keys;
};

[[nodiscard]] std::vector<TableFacts> configuration_tables();

} // namespace sieve::service
