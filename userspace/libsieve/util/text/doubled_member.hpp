// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Finds an object that has a member twice, while nlohmann's parser reads JSON. The parser keeps the last of
// them, so entries of the others would be lost without a word.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sieve {

// Watches one document, as the parser's callback: `parse(text, std::ref(watcher))`.
class DoubledMember {
  public:
    template <class Event, class Json>
    bool operator()(int, Event event, const Json& value) {
        if (event == Event::object_start) members_.emplace_back();
        if (event == Event::object_end) members_.pop_back();
        if (event == Event::key && !members_.back().insert(value.template get<std::string>()).second)
            found_ = value.template get<std::string>();
        return true;
    }

    // The name of the last one, if there is any.
    [[nodiscard]] const std::optional<std::string>& found() const { return found_; }

  private:
    std::vector<std::set<std::string>> members_; // of the objects that are open
    std::optional<std::string> found_;
};

} // namespace sieve
