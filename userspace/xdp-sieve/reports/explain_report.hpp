// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a table in force says about a key, in words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "libsieve/control/query/explain.hpp"
#include "xdp-sieve/arguments/context.hpp"
#include "xdp-sieve/arguments/search_list.hpp"

namespace sieve::cli {

struct ExplainedKey {
    std::string interface {};
    kernel::HookPoint point = kernel::HookPoint::xdp;
    sieve_key key{};
    std::uint32_t fields = 0;
    control::Explanation explanation;
    std::vector<std::string> origin{}; // origin_of(), if it was asked for
};

// Asks what is in force at the hook. `fields` and `hook` are as the options give them; empty: not given.
[[nodiscard]] Result<ExplainedKey> explain_key(const std::string& interface, const std::string& hook,
                                               const std::string& fields, const std::string& text,
                                               const Context& context);

// `searched`: what was found in the deciding set's list; nothing: no list was searched.
[[nodiscard]] nlohmann::ordered_json explanation_json(const ExplainedKey& explained,
                                                      const std::optional<Searched>& searched);
// Searches the deciding set's list: these feeds, or without any the list that a daemon keeps.
[[nodiscard]] Result<std::optional<Searched>> search_list(const ExplainedKey& explained,
                                                          const std::vector<std::string>& feeds);
void print_explanation(const ExplainedKey& explained, const std::optional<Searched>& searched);

} // namespace sieve::cli
