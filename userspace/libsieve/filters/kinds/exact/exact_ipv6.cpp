// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/kinds/exact/exact_ipv6.hpp"

#include <cmath>

namespace sieve::exact {

namespace {

// Two lines of four places carry 0.977 (docs/exact.md).
constexpr double load = 0.965;
constexpr std::size_t most_steps = 1U << 14;

// How many of a line's places hold an address, or where it holds this one. Places fill from the first one.
struct Found {
    int count = 0;
    bool is_there = false;
};

Found look(const sieve_line& line, uint128 address) {
    Found found;
    for (int place = 0; place < SIEVE_EXACT_IPV6_WAYS; place++) {
        const uint128 other = address_at(line, place, 0); // nobody has marked it yet
        if (other == address) found.is_there = true;
        if (other == no_address) break;
        found.count++;
    }
    return found;
}

class Placement {
  public:
    Placement(const sieve_exact_ipv6& part, std::span<sieve_line> lines)
        : part_(part), lines_(lines.first(part.lines)), values_(lines.subspan(part.lines)) {}

    // False: no room.
    bool place(uint128 address, std::uint32_t value, std::vector<uint128>& repeated) {
        const sieve_exact_lines at = lines_of(part_, address);
        const Found first = look(lines_[at.first], address);
        const Found second = look(lines_[at.second], address);
        if (first.is_there || second.is_there) {
            repeated.push_back(address);
            return true;
        }
        const Found& emptier = first.count <= second.count ? first : second;
        if (emptier.count == SIEVE_EXACT_IPV6_WAYS) return make_room(at, address, value);
        put(first.count <= second.count ? at.first : at.second, emptier.count, address, value);
        return true;
    }

  private:
    struct Step {
        std::uint32_t line;
        std::int32_t before; // the step whose address would come here; -1: the new one would
        int place;           // in that step's line
    };

    void put(std::uint32_t line, int place, uint128 address, std::uint32_t value) {
        put_address(lines_[line], place, address);
        if (!values_.empty()) put_value(values_, line, place, value);
    }
    [[nodiscard]] std::uint32_t value(std::uint32_t line, int place) const {
        return values_.empty() ? 0 : value_at(values_, line, place);
    }

    // Moves addresses along the shortest chain that ends in a line with a free place.
    bool make_room(const sieve_exact_lines& lines, uint128 address, std::uint32_t value) {
        steps_.assign({{lines.first, -1, 0}, {lines.second, -1, 0}});
        for (std::size_t at = 0; at < steps_.size() && steps_.size() < most_steps; at++) {
            const std::uint32_t from = steps_[at].line;
            for (int place = 0; place < SIEVE_EXACT_IPV6_WAYS; place++) {
                const sieve_exact_lines of_other = lines_of(part_, address_at(lines_[from], place, 0));
                const std::uint32_t to = of_other.first == from ? of_other.second : of_other.first;
                const int count = look(lines_[to], no_address).count;
                if (count < SIEVE_EXACT_IPV6_WAYS) {
                    steps_.push_back({to, static_cast<std::int32_t>(at), place});
                    move_along(address, value, count);
                    return true;
                }
                if (!visited(static_cast<std::int32_t>(at), to))
                    steps_.push_back({to, static_cast<std::int32_t>(at), place});
            }
        }
        return false;
    }

    [[nodiscard]] bool visited(std::int32_t step, std::uint32_t line) const {
        for (; step >= 0; step = steps_[static_cast<std::size_t>(step)].before)
            if (steps_[static_cast<std::size_t>(step)].line == line) return true;
        return false;
    }

    // From the last step back to the first: each address goes to the place that was left before.
    void move_along(uint128 address, std::uint32_t its_value, int free) {
        Step to = steps_.back();
        while (to.before >= 0) {
            const Step from = steps_[static_cast<std::size_t>(to.before)];
            put(to.line, free, address_at(lines_[from.line], to.place, 0), value(from.line, to.place));
            free = to.place;
            to = from;
        }
        put(to.line, free, address, its_value);
    }

    const sieve_exact_ipv6& part_;
    std::span<sieve_line> lines_;
    std::span<sieve_line> values_;
    std::vector<Step> steps_;
};

} // namespace

std::uint64_t ipv6_lines_for(std::uint64_t addresses) {
    return static_cast<std::uint64_t>(
        std::ceil(static_cast<double>(addresses) / (SIEVE_EXACT_IPV6_WAYS * load)));
}

void draw_secrets(sieve_exact_ipv6& part, std::mt19937_64& random) {
    for (__u64& word : part.hash_key) word = random();
}

bool place_all(const sieve_exact_ipv6& part, std::span<sieve_line> lines, std::span<const uint128> addresses,
               std::span<const std::uint16_t> values, std::vector<uint128>& repeated) {
    for (sieve_line& line : lines.first(part.lines))
        for (int place = 0; place < SIEVE_EXACT_IPV6_WAYS; place++) put_address(line, place, no_address);
    Placement placement(part, lines);
    for (std::size_t i = 0; i < addresses.size(); i++)
        if (!placement.place(addresses[i], values.empty() ? 0 : values[i], repeated)) return false;
    return true;
}

} // namespace sieve::exact
