// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "sieve-lab/simulations/adaptive_attacker.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

namespace sieve::experiments {

namespace {

// How many neighbours are asked on each side of a known key.
constexpr std::uint64_t reach = 2048;

struct KeyHash {
    std::size_t operator()(const sieve_key& key) const {
        std::uint64_t sum = 0;
        for (const std::uint64_t word : key.word) sum = mix(sum ^ word);
        return sum;
    }
};

struct SameKey {
    bool operator()(const sieve_key& a, const sieve_key& b) const {
        return std::memcmp(&a, &b, sizeof a) == 0;
    }
};

// A set of hashes that only grows. It is a plain table because it holds ten million of them.
class AskedKeys {
  public:
    explicit AskedKeys(std::uint64_t most) : slots_(std::bit_ceil(2 * most + 2)) {}

    // True if the hash was not there.
    bool insert(const sieve_key& key) {
        const std::uint64_t hash = KeyHash{}(key) | 1; // 0 is an empty slot
        for (std::size_t at = hash >> 1;; at++) {
            std::uint64_t& slot = slots_[at & (slots_.size() - 1)];
            if (slot == hash) return false;
            if (slot != 0) continue;
            slot = hash;
            return true;
        }
    }

  private:
    std::vector<std::uint64_t> slots_;
};

std::uint64_t mask_of(const KeyField& field) {
    return ~std::uint64_t{0} >> (64 - field.width);
}

// One game: counts the queries and remembers what matched. A key that did not match never will, so asking it
// again gains nothing. Only matches must be checked for repetition.
class Game {
  public:
    Game(const Target& target, const KeySpace& space, std::uint64_t queries, Random& random)
        : target_(target), space_(space), left_(queries), random_(random) {}

    [[nodiscard]] bool over() const { return left_ == 0; }
    [[nodiscard]] std::uint64_t left() const { return left_; }
    [[nodiscard]] const KeySpace& space() const { return space_; }
    [[nodiscard]] Random& random() { return random_; }
    [[nodiscard]] const std::vector<sieve_key>& positives() const { return attack_.positives; }

    // Asks without counting the key as chosen. True if it is a new false positive.
    bool explore(const sieve_key& key) { return ask(key) == Answer::positive; }

    // Asks a key as the attacker's choice. Members, and false positives that the attacker already knew, do
    // not count.
    bool choose(const sieve_key& key) {
        const Answer answer = ask(key);
        if (answer == Answer::nothing) return false;
        attack_.chosen++;
        if (answer == Answer::positive) attack_.hits++;
        return answer == Answer::positive;
    }

    // The same, for strategies that often produce the same keys. Repetitions cost nothing and count for
    // nothing.
    bool choose_once(const sieve_key& key) {
        if (left_ == 0) return false;
        if (!asked_) asked_.emplace(left_);
        return asked_->insert(key) && choose(key);
    }

    // Asks random keys until only `rest` queries are left.
    void explore_until(std::uint64_t rest) {
        while (left_ > rest) explore(space_.random(random_));
    }

    Attack result() { return std::move(attack_); }

  private:
    enum class Answer { nothing, negative, positive };

    Answer ask(const sieve_key& key) {
        if (left_ == 0) return Answer::nothing;
        left_--;
        if (!target_.matches(key)) return Answer::negative;
        if (target_.is_member(key) || !seen_.insert(key).second) return Answer::nothing;
        attack_.positives.push_back(key);
        return Answer::positive;
    }

    const Target& target_;
    const KeySpace& space_;
    std::uint64_t left_;
    Random& random_;
    std::unordered_set<sieve_key, KeyHash, SameKey> seen_;
    std::optional<AskedKeys> asked_;
    Attack attack_;
};

// Both neighbours at each distance, nearest first, in the last field, which varies fastest.
template <typename Ask>
void ask_neighbours(Game& game, const sieve_key& key, std::uint64_t to, Ask&& ask) {
    const std::size_t field = game.space().fields().size() - 1;
    const std::uint64_t at = game.space().get(key, field);
    for (std::uint64_t distance = 1; distance <= to && !game.over(); distance++) {
        ask(game.space().with(key, field, at + distance));
        ask(game.space().with(key, field, at - distance));
    }
}

void play_near_members(Game& game, const std::vector<sieve_key>& members, std::uint64_t queries) {
    // Asks each member's neighbours once, as far as the queries allow.
    for (const sieve_key& member : members)
        ask_neighbours(game, member, queries / 2 / members.size(),
                       [&](const sieve_key& key) { game.choose_once(key); });
}

void play_near_hits(Game& game, std::uint64_t queries) {
    game.explore_until(queries / 2);
    std::deque<sieve_key> next(game.positives().begin(), game.positives().end());
    while (!game.over() && !next.empty()) {
        const sieve_key key = next.front();
        next.pop_front();
        ask_neighbours(game, key, reach, [&](const sieve_key& neighbour) {
            if (game.choose_once(neighbour)) next.push_front(neighbour); // this place is good, so stay here
        });
    }
}

void play_differences(Game& game, std::uint64_t queries) {
    struct Step {
        std::size_t field;
        std::uint64_t by;
        double hits = 0;
        double tries = 0;
        [[nodiscard]] double rate() const { return tries == 0 ? 0 : hits / tries; }
    };
    std::vector<Step> steps;
    for (std::size_t field = 0; field < game.space().fields().size(); field++)
        for (unsigned bit = 0; bit < game.space().fields()[field].width; bit++)
            for (const std::uint64_t by : {std::uint64_t{1} << bit, ~(std::uint64_t{1} << bit) + 1})
                steps.push_back({field, by});
    const auto moved = [&](const sieve_key& key, const Step& step, std::uint64_t times) {
        return game.space().with(key, step.field, game.space().get(key, step.field) + times * step.by);
    };
    game.explore_until(queries / 2);
    const std::vector<sieve_key> start = game.positives();
    for (const sieve_key& key : start)
        for (Step& step : steps) {
            if (game.left() <= queries / 4) break;
            step.tries++;
            if (game.choose_once(moved(key, step, 1))) step.hits++;
        }
    std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.rate() > b.rate(); });
    steps.resize(std::min<std::size_t>(steps.size(), 8));
    // Odd multiples are steps that have not been tried.
    for (std::uint64_t times = 3; !game.over() && !start.empty() && times < 1U << 20; times += 2)
        for (const sieve_key& key : start)
            for (const Step& step : steps) game.choose_once(moved(key, step, times));
}

void play_parallelograms(Game& game, std::uint64_t queries) {
    game.explore_until(queries / 2);
    const std::vector<sieve_key> known = game.positives();
    if (known.size() < 3) return;
    const auto any = [&]() -> const sieve_key& { return known[game.random().below(known.size())]; };
    // Few false positives make few parallelograms, and the draws repeat them.
    for (std::uint64_t draws = 0; draws < queries && !game.over(); draws++)
        game.choose_once(game.space().parallelogram(any(), any(), any()));
}

// An arm is a setting of all fields but one, or of a single field's upper half. There are 1024 arms, and the
// better half survives each round. Only the last rounds' keys count: there the attacker uses what it has
// learned.
void play_half_words(Game& game, std::uint64_t queries) {
    struct Arm {
        sieve_key key;
        std::uint64_t asked = 0;
        std::uint64_t hits = 0;
    };
    const auto& fields = game.space().fields();
    const std::size_t varied = game.random().below(fields.size());
    const unsigned free_bits = fields.size() == 1 ? fields[0].width / 2 : fields[varied].width;
    std::vector<Arm> arms(1024);
    for (Arm& arm : arms) arm.key = game.space().random(game.random());
    const int rounds = 8;
    for (int round = 0; round < rounds; round++) {
        const std::uint64_t each = queries / rounds / arms.size();
        for (Arm& arm : arms)
            for (std::uint64_t i = 0; i < each && arm.asked >> free_bits == 0; i++) {
                const std::uint64_t low = ~std::uint64_t{0} >> (64 - free_bits);
                const std::uint64_t value = (game.space().get(arm.key, varied) & ~low) | (arm.asked++ & low);
                const sieve_key key = game.space().with(arm.key, varied, value);
                if (round >= 2 ? game.choose(key) : game.explore(key)) arm.hits++;
            }
        std::stable_sort(arms.begin(), arms.end(),
                         [](const Arm& a, const Arm& b) { return a.hits > b.hits; });
        if (arms.size() > 64) arms.resize(arms.size() / 2);
    }
}

} // namespace

KeySpace KeySpace::ipv4_source() {
    sieve_key form{};
    form.word[1] = sieve_v4_mapped(0);
    return {form, {{1, 0, 32}}};
}

KeySpace KeySpace::ipv6_source() {
    return {sieve_key{}, {{0, 32, 32}, {0, 0, 32}, {1, 32, 32}, {1, 0, 32}}};
}

KeySpace KeySpace::ipv4_tcp_flow() {
    sieve_key form{};
    form.word[1] = sieve_v4_mapped(0);
    form.word[3] = sieve_v4_mapped(0);
    form.word[4] = sieve_transport_word(0, 0, 6);
    return {form, {{3, 0, 32}, {4, SIEVE_SPORT_SHIFT, 16}, {4, SIEVE_DPORT_SHIFT, 16}, {1, 0, 32}}};
}

std::uint64_t KeySpace::get(const sieve_key& key, std::size_t field) const {
    const KeyField& f = fields_[field];
    return (key.word[f.word] >> f.shift) & mask_of(f);
}

sieve_key KeySpace::with(sieve_key key, std::size_t field, std::uint64_t value) const {
    const KeyField& f = fields_[field];
    key.word[f.word] &= ~(mask_of(f) << f.shift);
    key.word[f.word] |= (value & mask_of(f)) << f.shift;
    return key;
}

sieve_key KeySpace::random(Random& random) const {
    sieve_key key = form_;
    for (std::size_t i = 0; i < fields_.size(); i++) key = with(key, i, random());
    return key;
}

sieve_key KeySpace::parallelogram(const sieve_key& x, const sieve_key& y, const sieve_key& z) const {
    sieve_key key = form_;
    for (std::size_t i = 0; i < fields_.size(); i++) key = with(key, i, get(z, i) + get(y, i) - get(x, i));
    return key;
}

std::string_view name(Strategy strategy) {
    switch (strategy) {
    case Strategy::oblivious:
        return "oblivious";
    case Strategy::near_members:
        return "near members";
    case Strategy::near_hits:
        return "near hits";
    case Strategy::differences:
        return "differences";
    case Strategy::parallelograms:
        return "parallelograms";
    case Strategy::half_words:
        return "half words";
    case Strategy::replay:
        return "replay";
    }
    return "";
}

Attack attack(const Target& target, const KeySpace& space, Strategy strategy, std::uint64_t queries,
              Random& random) {
    Game game(target, space, queries, random);
    switch (strategy) {
    case Strategy::oblivious:
        while (!game.over()) game.choose(space.random(random));
        break;
    case Strategy::near_members:
        play_near_members(game, target.members, queries);
        break;
    case Strategy::near_hits:
        play_near_hits(game, queries);
        break;
    case Strategy::differences:
        play_differences(game, queries);
        break;
    case Strategy::parallelograms:
        play_parallelograms(game, queries);
        break;
    case Strategy::half_words:
        play_half_words(game, queries);
        break;
    case Strategy::replay:
        for (const sieve_key& key : target.elsewhere) game.choose(key);
        break;
    }
    return game.result();
}

} // namespace sieve::experiments
