// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/text/closest_word.hpp"

#include <algorithm>
#include <cstddef>

namespace sieve {

namespace {

std::size_t distance(const std::string& a, const std::string& b) {
    std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); i++)
        for (std::size_t j = 0; j <= b.size(); j++) {
            if (i == 0 || j == 0) {
                cost[i][j] = i + j;
                continue;
            }
            cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1,
                                   cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
        }
    return cost[a.size()][b.size()];
}

} // namespace

std::string closest_word(const std::string& word, const std::vector<std::string>& known) {
    std::string closest;
    std::size_t least = word.size();
    for (const std::string& candidate : known) {
        const std::size_t steps = distance(word, candidate);
        if (steps < least && 3 * steps <= candidate.size()) {
            least = steps;
            closest = candidate;
        }
    }
    return closest;
}

} // namespace sieve
