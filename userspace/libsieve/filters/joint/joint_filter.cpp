// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/joint/joint_filter.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <queue>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/analysis/binomial.hpp"
#include "libsieve/filters/joint/check_joint_names.hpp"
#include "libsieve/filters/kinds/exact/exact_listing.hpp"
#include "libsieve/filters/kinds/exact/exact_table.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/filters/kinds/xorsat/xorsat_builder.hpp"
#include "libsieve/filters/kinds/xorsat/xorsat_plan.hpp"
#include "libsieve/filters/kinds/xorsat/xorsat_rate.hpp"
#include "libsieve/filters/placement/distinct_hashes.hpp"
#include "libsieve/filters/sizing.hpp"
#include "libsieve/util/random/secret.hpp"
#include "libsieve/util/random/splitmix64.hpp"
#include "libsieve/util/text/counted.hpp"

namespace sieve {

namespace {

// As kind xorsat at its normal effort: after the eighth sweep hardly anything changes.
constexpr std::uint32_t sweeps = 8;
constexpr double standard_bits_per_key = 16;
constexpr std::uint64_t trials = 1 << 20; // random hashes that measure the rate

struct Secret {
    std::array<__u64, SIEVE_HASH_KEY_WORDS> hash_key;
    std::array<__u64, 2> identity;
};

Result<Secret> draw(std::optional<std::uint64_t> seed) {
    std::array<std::uint64_t, sizeof(Secret) / sizeof(std::uint64_t)> words{};
    SIEVE_TRY(draw_secret(seed, words));
    Secret secret{};
    std::memcpy(&secret, words.data(), sizeof(secret));
    return secret;
}

// The keys of all sets in hash_order, each once. The fingerprint of each is combined with the number of the
// first set that holds it.
HugeArray<sieve_hash> numbered_hashes(std::span<const KeySet* const> sets, const __u64* hash_key) {
    std::vector<HugeArray<sieve_hash>> of_set;
    std::size_t most = 0;
    for (const KeySet* const set : sets) {
        of_set.push_back(distinct_hashes(*set, hash_key));
        most += of_set.back().size();
    }
    // The next hash of each set. Of equal hashes, that of the lowest number comes first.
    using Next = std::pair<const sieve_hash*, std::size_t>;
    const auto later = [](const Next& a, const Next& b) {
        if (hash_order(*a.first, *b.first)) return false;
        return hash_order(*b.first, *a.first) || a.second > b.second;
    };
    std::priority_queue<Next, std::vector<Next>, decltype(later)> next(later);
    for (std::size_t set = 0; set < of_set.size(); set++)
        if (!of_set[set].empty()) next.emplace(of_set[set].begin(), set);

    HugeArray<sieve_hash> all(most);
    std::size_t count = 0;
    const sieve_hash* last = nullptr;
    while (!next.empty()) {
        const auto [hash, set] = next.top();
        next.pop();
        if (hash + 1 != of_set[set].end()) next.emplace(hash + 1, set);
        if (last != nullptr && last->locate == hash->locate && last->test == hash->test) continue;
        last = hash;
        all[count++] = {.locate = hash->locate ^ std::uint64_t{set} << 32, .test = hash->test};
    }
    all.truncate(count);
    return all;
}

Result<std::uint64_t> line_count(std::uint64_t keys, const JointOptions& options) {
    if (options.fpr) return xorsat_lines_for_fpr(keys, *options.fpr, sweeps);
    return lines_for_bits(keys, options.bits_per_key.value_or(standard_bits_per_key));
}

// The line that keeps the hash's eighth. It depends neither on the fingerprint nor on the number in it.
const sieve_line& line_of(const sieve_lookup& lookup, std::span<const sieve_line> lines,
                          const sieve_hash& hash) {
    const std::uint32_t line = sieve_xorsat_line(&lookup, hash);
    const std::uint32_t eighth = sieve_xorsat_eighth(hash);
    const bool exported = sieve_xorsat_exports(&lines[line], eighth) != 0;
    return lines[exported ? sieve_xorsat_other(&lookup, line, eighth) : line];
}

std::optional<std::uint32_t> find_number(const sieve_lookup& lookup, std::span<const sieve_line> lines,
                                         const sieve_hash& hash) {
    const std::uint32_t number = sieve_joint_number(&line_of(lookup, lines, hash), hash);
    return number < lookup.hashes ? std::optional(number) : std::nullopt;
}

Status check(std::span<const KeySet* const> sets) {
    if (sets.size() < SIEVE_JOINT_LEAST_SETS || sets.size() > SIEVE_JOINT_MOST_SETS)
        return invalid_request(fmt::format("a joint filter of {}: expected {} to {}",
                                           counted(sets.size(), "set"), SIEVE_JOINT_LEAST_SETS,
                                           SIEVE_JOINT_MOST_SETS));
    for (const KeySet* const set : sets)
        if (set->fields() != sets.front()->fields())
            return invalid_request("a joint filter: its sets have different fields, expected the same");
    return {};
}

// The lines before the filter's own lines.
struct Header {
    sieve_lookup lookup;
    sieve_probes probes;
    sieve_file file;
};
static_assert(sizeof(Header) == SIEVE_FIRST_LINE * sizeof(sieve_line), "no padding");

// Says what is wrong with a number of sets; empty if nothing is.
std::string sets_fault(std::uint32_t sets) {
    if (sets >= SIEVE_JOINT_LEAST_SETS && sets <= SIEVE_JOINT_MOST_SETS) return {};
    return fmt::format("it is of {}, expected {} to {}", counted(sets, "set"), SIEVE_JOINT_LEAST_SETS,
                       SIEVE_JOINT_MOST_SETS);
}

// Says what is wrong with the header; empty if nothing is.
std::string fault_of(const Header& header) {
    const auto& [lookup, probes, file] = header;
    if (file.version != SIEVE_IMAGE_VERSION) return "no header of a joint filter";
    if (std::string fault = joint_fault(lookup); !fault.empty()) return fault;
    const std::uint64_t lines = std::uint64_t{lookup.buckets} + SIEVE_FIRST_LINE;
    if (file.lines != lines || lines > UINT32_MAX)
        return fmt::format("its header asks for {} lines and counts {}", lines, file.lines);
    if (file.keys == 0 || file.keys > lines * SIEVE_LINE_BITS)
        return fmt::format("{} keys in {} lines", file.keys, lines);
    return {};
}

// The addresses of all sets, in their order, each with its set's number.
struct Numbered {
    explicit Numbered(std::span<const KeySet* const> sets) {
        for (std::size_t set = 0; set < sets.size(); set++) {
            const int word = sieve_address_word(sets[set]->fields());
            const auto number = static_cast<std::uint16_t>(set);
            sets[set]->for_each(0, sets[set]->size(), [&](const sieve_key& key) {
                const std::uint64_t upper = key.word[word];
                const std::uint64_t lower = key.word[word + 1];
                if (sieve_family(upper, lower) == SIEVE_FAMILY_V4) {
                    ipv4.push_back(static_cast<std::uint32_t>(lower));
                    ipv4_sets.push_back(number);
                } else {
                    ipv6.push_back(address_number(upper, lower));
                    ipv6_sets.push_back(number);
                }
            });
        }
    }
    [[nodiscard]] exact::Addresses addresses() const {
        return {.ipv4 = ipv4, .ipv6 = ipv6, .ipv4_values = ipv4_sets, .ipv6_values = ipv6_sets};
    }
    // Calls body(address, set) for each address of each set.
    template <class Body>
    void for_each(const Body& body) const {
        for (std::size_t i = 0; i < ipv4.size(); i++) body(uint128{sieve_v4_mapped(ipv4[i])}, ipv4_sets[i]);
        for (std::size_t i = 0; i < ipv6.size(); i++) body(ipv6[i], ipv6_sets[i]);
    }

    std::vector<std::uint32_t> ipv4{};
    std::vector<uint128> ipv6{};
    std::vector<std::uint16_t> ipv4_sets{};
    std::vector<std::uint16_t> ipv6_sets{};
};

std::optional<std::uint32_t> value_of(const exact::Parts& parts, uint128 address) {
    return exact::value_in(parts, static_cast<std::uint64_t>(address >> 64),
                           static_cast<std::uint64_t>(address));
}

// Whether each address of each set has the number of the first set that holds it, for a table in which each
// address has the number of some set that holds it.
bool names_first_sets(const exact::Parts& parts, const Numbered& numbered) {
    bool right = true;
    numbered.for_each([&](uint128 address, std::uint32_t set) {
        const std::optional<std::uint32_t> named = value_of(parts, address);
        right &= named && *named <= set;
    });
    return right;
}

} // namespace

std::string joint_fault(const sieve_lookup& lookup) {
    if (lookup.magic != SIEVE_MAGIC || (lookup.kind != SIEVE_KIND_XORSAT && lookup.kind != SIEVE_KIND_EXACT))
        return "no header of a joint filter";
    if (lookup.kind == SIEVE_KIND_EXACT) {
        if (std::string fault = geometry_fault(lookup); !fault.empty()) return fault;
        return sieve_exact_of(&lookup)->value_bits == 0 ? "its keys have no values" : "";
    }
    if (std::string fault = sets_fault(lookup.hashes); !fault.empty()) return fault;
    // But for the number of sets, the header is that of an image.
    sieve_lookup image = lookup;
    image.hashes = 0;
    if (std::string fault = geometry_fault(image); !fault.empty()) return fault;
    return lookup.probes != 0 ? "it has probes of prefixes" : "";
}

JointFilter::JointFilter(std::uint64_t filter_lines) : lines_(SIEVE_FIRST_LINE + filter_lines) {}

sieve_lookup& JointFilter::lookup() {
    return *reinterpret_cast<sieve_lookup*>(lines_.data());
}

const sieve_lookup& JointFilter::lookup() const {
    return *reinterpret_cast<const sieve_lookup*>(lines_.data());
}

sieve_file& JointFilter::file() {
    return *reinterpret_cast<sieve_file*>(lines_.data() + SIEVE_FILE_LINE);
}

const sieve_file& JointFilter::file() const {
    return *reinterpret_cast<const sieve_file*>(lines_.data() + SIEVE_FILE_LINE);
}

std::span<sieve_line> JointFilter::filter() {
    return std::span(lines_.data(), lines_.size()).subspan(SIEVE_FIRST_LINE);
}

std::span<const sieve_line> JointFilter::filter() const {
    return lines().subspan(SIEVE_FIRST_LINE);
}

double JointFilter::predicted_rate() const {
    return std::bit_cast<double>(std::uint64_t{file().predicted_fpr});
}

double JointFilter::expected_rate() const {
    return std::bit_cast<double>(std::uint64_t{file().expected_fpr});
}

bool JointFilter::states_every_number() const {
    const unsigned bits = std::bit_width(sets() - 1);
    return std::ranges::all_of(filter(), [bits](const sieve_line& line) {
        return sieve_xorsat_bits(line.word[0] & 255, 0) >= bits;
    });
}

bool JointFilter::names_every_key(std::span<const sieve_hash> numbered) const {
    return std::ranges::all_of(numbered, [this](const sieve_hash& hash) {
        return sieve_joint_number(&line_of(lookup(), filter(), hash), hash) == 0;
    });
}

std::uint32_t JointFilter::sets() const {
    return exact() ? exact::Parts::of(lookup(), filter()).ipv6.sets : lookup().hashes;
}

Status JointFilter::check_table() const {
    const exact::Parts parts = exact::Parts::of(lookup(), filter());
    std::string fault = exact::parts_fault(parts);
    if (fault.empty() && parts.ipv6.meaning != SIEVE_EXACT_SETS) fault = "its values name no sets";
    if (fault.empty()) fault = sets_fault(parts.ipv6.sets);
    std::uint64_t keys = 0;
    if (fault.empty())
        fault = exact::list_lines(parts, SIEVE_EXACT_IPV4_LINE, filter().size(), true,
                                  [&](uint128, std::uint32_t, bool) { keys++; });
    if (fault.empty() && keys != file().keys)
        fault = fmt::format("it lists {} keys, and its header counts {}", keys, file().keys);
    if (!fault.empty()) return bad_input(fault);
    return {};
}

Status JointFilter::rate(std::uint64_t seed) {
    file().predicted_fpr = std::bit_cast<std::uint64_t>(predict_xorsat_fpr(keys(), filter().size(), sweeps));
    file().expected_fpr = std::bit_cast<std::uint64_t>(expected_xorsat_rate(lookup(), filter()));
    SplitMix64 random(seed);
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i < trials; i++) {
        const std::uint64_t locate = random();
        found += find_hash({.locate = locate, .test = random()}).has_value() ? 1 : 0;
    }
    const double rate = std::min(1.0, sets() * expected_rate());
    if (analysis::fits_rate(found, trials, rate)) return {};
    return bad_input(fmt::format("a joint filter: {} of {} random keys matched, expected {:.3g} by its bits; "
                                 "this is a bug, please report it",
                                 found, trials, rate * static_cast<double>(trials)));
}

Result<JointFilter> JointFilter::build(std::span<const KeySet* const> sets, const JointOptions& options,
                                       const Progress& progress) {
    SIEVE_TRY(check(sets));
    if (options.exact) return build_exact(sets, options);
    SIEVE_ASSIGN(const Secret secret, draw(options.seed));
    if (progress) progress("hashing", 0);
    const HugeArray<sieve_hash> keys = numbered_hashes(sets, secret.hash_key.data());
    SIEVE_ASSIGN(std::uint64_t lines, line_count(keys.size(), options));
    for (;; lines *= 2) {
        if (lines + SIEVE_FIRST_LINE > UINT32_MAX)
            return invalid_request(
                fmt::format("a joint filter of {} lines: expected at most 2^32, header included", lines));
        JointFilter joint(lines);
        sieve_lookup& lookup = joint.lookup();
        lookup.magic = SIEVE_MAGIC;
        lookup.kind = SIEVE_KIND_XORSAT;
        lookup.fields = static_cast<__u8>(sets.front()->fields());
        lookup.choices = SIEVE_XORSAT_MAX_LINES;
        lookup.hashes = static_cast<__u8>(sets.size());
        lookup.buckets = static_cast<__u32>(lines);
        std::copy(secret.hash_key.begin(), secret.hash_key.end(), std::begin(lookup.hash_key));
        fill_xorsat({keys.data(), keys.size()}, lookup, joint.filter(), sweeps, progress);
        // Only a filter of a few bits a key has such lines.
        if (!joint.states_every_number()) continue;
        if (!joint.names_every_key({keys.data(), keys.size()}))
            return bad_input("a joint filter: it misses a key; this is a bug, please report it");
        sieve_file& file = joint.file();
        file.version = SIEVE_IMAGE_VERSION;
        file.lines = joint.lines_.size();
        file.keys = keys.size();
        std::copy(secret.identity.begin(), secret.identity.end(), std::begin(file.identity));
        SIEVE_TRY(joint.rate(file.identity[0]));
        return joint;
    }
}

Result<JointFilter> JointFilter::build_exact(std::span<const KeySet* const> sets,
                                             const JointOptions& options) {
    constexpr int most_draws = 8;
    const std::uint32_t fields = sets.front()->fields();
    if (!sieve_is_one_address(fields)) return invalid_request("an exact joint filter takes addresses only");
    const auto count = static_cast<std::uint32_t>(sets.size());
    const exact::Values values{.bits = static_cast<std::uint32_t>(std::bit_width(count - 1)),
                               .meaning = SIEVE_EXACT_SETS,
                               .sets = count};
    const Numbered numbered(sets);
    for (int tries = 0; tries < most_draws; tries++) {
        SIEVE_ASSIGN(const Secret secret,
                     draw(options.seed ? std::optional(*options.seed + static_cast<std::uint64_t>(tries))
                                       : std::nullopt));
        SIEVE_ASSIGN(const exact::Table table,
                     exact::build_table(numbered.addresses(), fields, secret.hash_key, values));
        JointFilter joint(table.lines.size());
        joint.lookup() = reinterpret_cast<const sieve_lookup&>(table.geometry);
        joint.lookup().magic = SIEVE_MAGIC;
        std::copy(table.lines.begin(), table.lines.end(), joint.filter().begin());
        sieve_file& file = joint.file();
        file.version = SIEVE_IMAGE_VERSION;
        file.lines = joint.lines_.size();
        file.keys = table.keys;
        std::copy(secret.identity.begin(), secret.identity.end(), std::begin(file.identity));
        // A key that found no room at first may have come in later by a further set that holds it.
        if (names_first_sets(exact::Parts::of(joint.lookup(), joint.filter()), numbered)) return joint;
    }
    return bad_input(fmt::format("an exact joint filter: none of {} tables named the first set of each key, "
                                 "which has practically no chance; report it if it happens twice",
                                 most_draws));
}

Result<JointFilter> JointFilter::load(Input& input) {
    const auto fault = [&](const std::string& what) {
        return bad_input(fmt::format("{}: {}", input.name(), what));
    };
    const std::optional<std::uint64_t> size = input.size();
    Header header{};
    SIEVE_ASSIGN(const std::size_t got, input.read_all(reinterpret_cast<char*>(&header), sizeof(header)));
    if (got < sizeof(header)) return fault(fmt::format("{} bytes are no joint filter", got));
    if (const std::string wrong = fault_of(header); !wrong.empty()) return fault(wrong);
    const auto wrong_size = [&] {
        return fault(fmt::format("it does not have the {} lines that its header counts", header.file.lines));
    };
    if (size && *size != header.file.lines * sizeof(sieve_line)) return wrong_size();
    // Whatever packets do not read is left behind.
    JointFilter joint(header.lookup.buckets);
    joint.lookup() = header.lookup;
    joint.file().version = SIEVE_IMAGE_VERSION;
    joint.file().lines = joint.lines_.size();
    joint.file().keys = header.file.keys;
    std::copy(std::begin(header.file.identity), std::end(header.file.identity),
              std::begin(joint.file().identity));
    const std::span<sieve_line> filter = joint.filter();
    SIEVE_ASSIGN(const std::size_t rest,
                 input.read_all(reinterpret_cast<char*>(filter.data()), filter.size_bytes()));
    SIEVE_ASSIGN(const std::string_view behind, input.peek(1));
    if (rest < filter.size_bytes() || !behind.empty()) return wrong_size();
    if (joint.exact()) {
        if (const Status checked = joint.check_table(); !checked) return fault(checked.error().message);
        return joint;
    }
    if (!joint.states_every_number()) return fault("one of its lines cannot state every set's number");
    std::array<std::uint64_t, 1> seed{};
    SIEVE_TRY(draw_secret(std::nullopt, seed));
    SIEVE_TRY(joint.rate(seed[0]));
    return joint;
}

namespace {

Status check_exact_names(const JointFilter& filter, std::span<const KeySet* const> sets) {
    std::vector<std::pair<uint128, std::uint32_t>> first;
    Numbered(sets).for_each([&](uint128 address, std::uint32_t set) { first.emplace_back(address, set); });
    std::sort(first.begin(), first.end());
    const auto same = [](const auto& one, const auto& two) { return one.first == two.first; };
    first.erase(std::unique(first.begin(), first.end(), same), first.end());
    if (first.size() != filter.keys())
        return bad_input(
            fmt::format("the joint filter is of {} keys, expected {}", filter.keys(), first.size()));
    const auto& lookup = *reinterpret_cast<const sieve_lookup*>(filter.lines().data());
    const exact::Parts parts = exact::Parts::of(lookup, filter.lines().subspan(SIEVE_FIRST_LINE));
    if (std::ranges::all_of(first, [&](const auto& key) { return value_of(parts, key.first) == key.second; }))
        return {};
    return bad_input("the joint filter does not name the first set that holds a key");
}

} // namespace

Status check_joint_names(const JointFilter& filter, std::span<const KeySet* const> sets) {
    SIEVE_TRY(check(sets));
    if (sets.size() != filter.sets() || sets.front()->fields() != filter.fields())
        return bad_input("the joint filter is one of other sets");
    if (filter.exact()) return check_exact_names(filter, sets);
    const auto& lookup = *reinterpret_cast<const sieve_lookup*>(filter.lines().data());
    const HugeArray<sieve_hash> numbered = numbered_hashes(sets, lookup.hash_key);
    if (numbered.size() != filter.keys())
        return bad_input(
            fmt::format("the joint filter is of {} keys, expected {}", filter.keys(), numbered.size()));
    const std::span<const sieve_line> lines = filter.lines().subspan(SIEVE_FIRST_LINE);
    const bool right = std::all_of(numbered.begin(), numbered.end(), [&](const sieve_hash& hash) {
        return sieve_joint_number(&line_of(lookup, lines, hash), hash) == 0;
    });
    if (right) return {};
    return bad_input("the joint filter does not name the first set that holds a key");
}

std::optional<std::uint32_t> JointFilter::find(const sieve_key& key) const {
    return find_joint(lookup(), filter(), key);
}

std::optional<std::uint32_t> JointFilter::find_hash(const sieve_hash& hash) const {
    return find_number(lookup(), filter(), hash);
}

std::optional<std::uint32_t> find_joint(const sieve_lookup& lookup, std::span<const sieve_line> lines,
                                        const sieve_key& key) {
    if (lookup.kind == SIEVE_KIND_EXACT)
        return exact::value_in(exact::Parts::of(lookup, lines), sieve_address_upper(&key, lookup.fields),
                               sieve_address_lower(&key, lookup.fields));
    return find_number(lookup, lines, sieve_hash_key(&key, lookup.hash_key, lookup.fields));
}

} // namespace sieve
