// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/control/spec/source.hpp"

#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "libsieve/build/default_kind.hpp"
#include "libsieve/build/exact_keys.hpp"
#include "libsieve/build/spilled_keys.hpp"
#include "libsieve/feeds/feed.hpp"
#include "libsieve/feeds/read_any.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/keys/address_ranges.hpp"
#include "libsieve/keys/members.hpp"
#include "libsieve/util/text/printable.hpp"
#include "libsieve/util/text/short_path.hpp"

namespace sieve::control {

namespace {

Result<Feed> read_feeds(std::span<Input> inputs, std::uint32_t fields, FeedOptions options,
                        const Observer& observer, const auto& read) {
    options.ranges = options.key_ranges = true;
    options.keep_skipped = observer.malformed != nullptr;
    options.progress = observer.progress;
    SIEVE_ASSIGN(Feed feed, read(inputs, fields, options));
    for (const std::string& decided : feed.decided) observer.remark(decided);
    if (feed.masked > 0)
        observer.remark(fmt::format("{} prefix{} bits set behind the length, which were cleared", feed.masked,
                                    feed.masked == 1 ? " had" : "es had"));
    if (feed.skipped > 0) {
        observer.remark(
            fmt::format("{} malformed line{} skipped", feed.skipped, feed.skipped == 1 ? " was" : "s were"));
        for (const auto& reason : feed.skipped_first)
            (observer.malformed ? observer.malformed : observer.remark)(reason);
    }
    return feed;
}

Result<Feed> read_feeds(std::span<Input> inputs, std::uint32_t fields, const FeedOptions& options,
                        const Observer& observer) {
    return read_feeds(inputs, fields, options, observer,
                      [](std::span<Input> all, std::uint32_t of, const FeedOptions& chosen) {
                          return read_feed(all, of, chosen);
                      });
}

FeedOptions feed_options(const FeedSpec& spec) {
    return {.format = spec.format,
            .skip_invalid = spec.skip_invalid,
            .mask_host_bits = spec.mask_host_bits,
            .threads = spec.build.threads};
}

// Keys that went to disk because the list is too large for the memory limit; nothing: it is not.
using Spilled = std::optional<SpilledKeys>;

Result<BuiltSet> build_feed(Feed feed, BuildOptions options, const Observer& observer,
                            const Exceptions& exceptions = {}, Spilled spilled = {}) {
    options.skipped = feed.skipped;
    ListFacts facts = facts_of(feed.keys, feed.ranges, exceptions);
    facts.spilled = spilled.has_value();
    const KindChoice choice = chosen_kind(options, facts);
    options.kind.kind = choice.kind;
    const std::uint64_t entries = feed.overflowed + feed.entries();
    SIEVE_ASSIGN(BuiltSet built,
                 spilled ? build_set(std::move(*spilled), options, observer.progress, exceptions)
                         : build_set(members_of(std::move(feed)), options, observer.progress, exceptions));
    if (built.report.entries != entries)
        return bad_input(fmt::format("{}: {} entries were read and {} built; this is a bug, please report it",
                                     options.label, entries, built.report.entries));
    const FilterKind& kind = kind_of(built.image.lookup());
    if (!choice.reason.empty())
        observer.remark(fmt::format("{}: kind {}{}, since {}", options.label, kind.facts().name,
                                    kind.exact() != nullptr ? ", which is exact" : "", choice.reason));
    return built;
}

Result<BuiltSet> build_feed(Feed feed, std::span<const Input> inputs, BuildOptions options,
                            const Observer& observer, const Exceptions& exceptions = {},
                            Spilled spilled = {}) {
    std::vector<std::string> names;
    names.reserve(inputs.size());
    for (const Input& input : inputs) names.push_back(printable(short_path(input.path())));
    options.label = fmt::format("{}", fmt::join(names, " "));
    return build_feed(std::move(feed), std::move(options), observer, exceptions, std::move(spilled));
}

std::string names_of(std::span<const Input> inputs) {
    std::vector<std::string> names;
    for (const Input& input : inputs) names.push_back(input.name());
    return fmt::format("{}", fmt::join(names, ", "));
}

// The share of a family's addresses above which a list is more likely a mistake, such as a default route.
constexpr double widest_share = 0.5;

Status refuse_wide(const Feed& feed, const std::string& names) {
    std::vector<AddressRange> by_family[SIEVE_FAMILIES];
    for (const AddressRange& range : feed.ranges) by_family[family_of(range)].push_back(range);
    for (int family = 0; family < SIEVE_FAMILIES; family++) {
        double covered = 0;
        for (const AddressRange& range : merge_ranges(std::move(by_family[family])))
            covered += std::ldexp(static_cast<double>(range.last - range.first) + 1,
                                  family == SIEVE_FAMILY_V4 ? -32 : -128);
        if (covered > widest_share)
            return bad_input(fmt::format(
                "{}: the list covers {:.3g}% of all {} addresses, expected at most {:.0f}%; "
                "allow-wide takes such a list",
                names, 100 * covered, family == SIEVE_FAMILY_V4 ? "IPv4" : "IPv6", 100 * widest_share));
    }
    return {};
}

// What else a list is read for.
struct Purpose {
    Input* exceptions = nullptr;
    std::vector<sieve_key> spared{};
    const char* needs_all = nullptr; // what needs all keys in memory, if something does
};

// A list without its exceptions.
struct List {
    Feed feed;
    Exceptions exceptions{};
    Spilled spilled{}; // then `feed` has no keys
};

void remark_taken(const Subtracted& taken, const Observer& observer) {
    if (taken.keys > 0)
        observer.remark(fmt::format("{} exception{} on the list and {} taken out", taken.keys,
                                    taken.keys == 1 ? " was" : "s were", taken.keys == 1 ? "was" : "were"));
    if (taken.ranges > 0)
        observer.remark(fmt::format("{} prefix{} or range{} of the list held exceptions and {} split",
                                    taken.ranges, taken.ranges == 1 ? "" : "es", taken.ranges == 1 ? "" : "s",
                                    taken.ranges == 1 ? "was" : "were"));
}

tl::unexpected<Error> nothing_left(const std::string& name) {
    return bad_input(fmt::format("{}: every entry of the list is an exception", name));
}

// Takes a list that is too large for the memory limit, piece by piece.
class Spill {
  public:
    Spill(const FeedSpec& spec, const Purpose& purpose, const Observer& observer)
        : spec_(spec), purpose_(purpose), observer_(observer) {}

    // Takes the keys that were read since the last call.
    Status take(Feed& feed) {
        const std::uint64_t limit = spec_.build.memory_limit.value_or(0);
        if (purpose_.needs_all != nullptr || feed.has_ranges())
            return invalid_request(fmt::format(
                "the list takes more memory than the limit of {} bytes allows, and {} all of it at once",
                limit, purpose_.needs_all != nullptr ? purpose_.needs_all : "its prefixes or ranges need"));
        if (!keys_) SIEVE_TRY(begin());
        Members members(std::move(feed.keys), {});
        if (taken_) {
            SIEVE_ASSIGN(const Subtracted taken, subtract(members, *taken_));
            all_taken_.keys += taken.keys;
        }
        feed.keys = KeySet(spec_.fields);
        return keys_->add(members.keys);
    }

    [[nodiscard]] bool began() const { return keys_.has_value(); }

    // The whole list, after the last call of take().
    Result<List> finish(Feed feed) && {
        remark_taken(all_taken_, observer_);
        if (keys_->entries() == 0) return nothing_left(purpose_.exceptions->name());
        feed.overflowed -= all_taken_.keys;
        return List{std::move(feed), std::move(exceptions_), std::move(keys_)};
    }

  private:
    Status begin() {
        if (purpose_.exceptions != nullptr) {
            SIEVE_ASSIGN(Feed taken, read_exceptions(*purpose_.exceptions, spec_.fields, observer_));
            taken_ = members_of(std::move(taken));
            exceptions_.lines = prefixes_of(*taken_);
        }
        exceptions_.spared = purpose_.spared;
        SIEVE_ASSIGN(keys_, SpilledKeys::create(spec_.fields, spec_.build, exceptions_));
        return {};
    }

    const FeedSpec& spec_;
    const Purpose& purpose_;
    const Observer& observer_;
    Exceptions exceptions_{};
    std::optional<Members> taken_; // the keys of the exceptions
    Subtracted all_taken_{};
    Spilled keys_;
};

Result<List> read_whole_list(std::span<Input> feeds, const FeedSpec& spec, const Observer& observer,
                             const Purpose& purpose) {
    FeedOptions options = feed_options(spec);
    Spill spill(spec, purpose, observer);
    if (spec.build.memory_limit) {
        SIEVE_TRY(check_build_options(spec.build));
        options.most_entries = keys_at_once(spec.fields, *spec.build.memory_limit);
        options.overflow = [&](Feed& feed) { return spill.take(feed); };
    }
    SIEVE_ASSIGN(Feed feed, read_feeds(feeds, spec.fields, options, observer));
    if (spill.began()) {
        feed.overflowed += feed.keys.size();
        SIEVE_TRY(spill.take(feed));
        return std::move(spill).finish(std::move(feed));
    }
    if (!spec.allow_wide) SIEVE_TRY(refuse_wide(feed, names_of(feeds)));
    List list{std::move(feed), {}, {}};
    if (purpose.exceptions != nullptr) {
        const std::string name = purpose.exceptions->name();
        SIEVE_ASSIGN(Feed taken, read_exceptions(*purpose.exceptions, spec.fields, observer));
        SIEVE_TRY(take_out(list.feed, taken, name, observer));
        list.exceptions = exceptions_of(std::move(taken));
    }
    list.exceptions.spared = purpose.spared;
    return list;
}

// Whether keys would have nothing to verify, and says so.
bool is_superfluous(const SetSpec& spec, const Image& image, const Observer& observer) {
    const FilterKind& kind = kind_of(image.lookup());
    if (!spec.verify || kind.exact() == nullptr) return false;
    observer.remark(fmt::format("set {}: kind {} is exact, so its matches need no verification", spec.name,
                                kind.facts().name));
    return true;
}

// Opens an image. If it is to be verified, reads the keys from the feed that it was built from.
Result<OpenedSet> open_image(const SetSpec& spec, SetInputs inputs, const Observer& observer) {
    Input& source = inputs.sources.front();
    if (!spec.feed.chosen.empty())
        return invalid_request(
            fmt::format("set {}: {} is an image, which was built already; {} {} how a feed is "
                        "built",
                        spec.name, source.name(), fmt::join(spec.feed.chosen, " and "),
                        spec.feed.chosen.size() == 1 ? "says" : "say"));
    SIEVE_ASSIGN(Image image, Image::load(source));
    if (is_superfluous(spec, image, observer)) return OpenedSet{std::move(image), {}};
    const bool has_keys = spec.verify && spec.verify->keys != nullptr;
    if (spec.verify && !inputs.verify_feed && !has_keys)
        return failure(ErrorKind::needs_feed,
                       fmt::format("set {} is to be verified, and {} is an image, which cannot list its keys",
                                   spec.name, source.name()),
                       {.set = spec.name, .path = source.name()});
    OpenedSet set{std::move(image), {}};
    if (has_keys) set.exact = *spec.verify->keys;
    if (!spec.verify || has_keys) return set;
    SIEVE_ASSIGN(Feed feed, read_feeds({&*inputs.verify_feed, 1}, set.image.lookup().fields,
                                       {.format = ListFormat{}, .skip_invalid = set.image.file().skipped > 0},
                                       observer));
    SIEVE_ASSIGN(set.exact, exact_keys(members_of(std::move(feed)), set.image, inputs.verify_feed->name()));
    return set;
}

// Builds a set from its feeds.
Result<OpenedSet> open_feeds(const SetSpec& spec, SetInputs inputs, const Observer& observer,
                             const FindKeys& find_spared) {
    if (inputs.verify_feed)
        return invalid_request(
            fmt::format("set {}: a set built from feeds is verified with those feeds, not with {}", spec.name,
                        inputs.verify_feed->name()));
    std::vector<sieve_key> spared;
    if (find_spared && !spec.verify) {
        SIEVE_ASSIGN(spared, find_spared());
    }
    const Purpose purpose{.exceptions = inputs.exceptions ? &*inputs.exceptions : nullptr,
                          .spared = std::move(spared),
                          .needs_all = spec.verify      ? "verification needs"
                                       : spec.keep_keys ? "joining needs"
                                                        : nullptr};
    SIEVE_ASSIGN(List list, read_whole_list(inputs.sources, spec.feed, observer, purpose));
    list.exceptions.verified = spec.verify.has_value();
    std::optional<Members> kept;
    if (spec.verify) kept = members_of(list.feed);
    std::optional<KeySet> keys;
    if (spec.keep_keys && !list.feed.has_ranges()) keys = list.feed.keys;
    SIEVE_ASSIGN(BuiltSet built, build_feed(std::move(list.feed), inputs.sources, spec.feed.build, observer,
                                            list.exceptions, std::move(list.spilled)));
    if (built.report.spared > 0 && built.report.tries > 1)
        observer.remark(
            fmt::format("set {}: {} filters were built until none matched an address that this host "
                        "lives by",
                        spec.name, built.report.tries));
    OpenedSet set{std::move(built.image), {}, std::move(keys)};
    if (kept && !is_superfluous(spec, set.image, observer)) {
        SIEVE_ASSIGN(set.exact, exact_keys(std::move(*kept), set.image, names_of(inputs.sources)));
    }
    return set;
}

} // namespace

Result<Input> open_source(const SetSpec& set, const std::string& source) {
    return set.open_source ? set.open_source(source) : Input::of(source);
}

Result<std::vector<SetInputs>> find_inputs(std::span<const SetSpec> sets, const Input* other) {
    std::vector<SetInputs> all;
    for (const SetSpec& set : sets) {
        std::vector<Input> sources;
        for (const std::string& source : set.sources) {
            SIEVE_ASSIGN(Input input, open_source(set, source));
            sources.push_back(std::move(input));
        }
        SetInputs inputs{std::move(sources), {}};
        const std::string feed = set.verify ? set.verify->feed : std::string();
        if (!feed.empty() && set.sources != std::vector{feed}) {
            SIEVE_ASSIGN(inputs.verify_feed, open_source(set, feed));
        }
        if (!set.feed.except.empty()) {
            SIEVE_ASSIGN(inputs.exceptions, open_source(set, set.feed.except));
        }
        all.push_back(std::move(inputs));
    }
    std::vector<const Input*> inputs;
    for (const SetInputs& set : all) {
        for (const Input& source : set.sources) inputs.push_back(&source);
        if (set.verify_feed) inputs.push_back(&*set.verify_feed);
        if (set.exceptions) inputs.push_back(&*set.exceptions);
    }
    if (other != nullptr) inputs.push_back(other);
    SIEVE_TRY(check_repeated(inputs, Repeated::files));
    return all;
}

Result<Feed> read_list(std::span<Input> feeds, const FeedSpec& spec, const Observer& observer,
                       bool may_be_empty) {
    return may_be_empty ? read_feeds(feeds, spec.fields, feed_options(spec), observer, read_feed_if_any)
                        : read_feeds(feeds, spec.fields, feed_options(spec), observer);
}

Result<BuiltSet> build_list(Feed list, std::span<const Input> feeds, const FeedSpec& spec,
                            const Observer& observer) {
    return build_feed(std::move(list), feeds, spec.build, observer);
}

Result<BuiltSet> build_list(Feed list, const FeedSpec& spec, const Observer& observer,
                            const Exceptions& exceptions) {
    return build_feed(std::move(list), spec.build, observer, exceptions);
}

Result<Feed> read_exceptions(Input& input, std::uint32_t fields, const Observer& observer) {
    // A file without an entry means that there are no exceptions.
    return read_feeds({&input, 1}, fields, {.format = ListFormat{}}, observer, read_feed_if_any);
}

Status take_out(Feed& list, const Feed& exceptions, const std::string& name, const Observer& observer,
                bool may_be_empty) {
    Members members = members_of(std::move(list));
    SIEVE_ASSIGN(const Subtracted taken, subtract(members, members_of(exceptions)));
    remark_taken(taken, observer);
    if (members.empty() && !may_be_empty) return nothing_left(name);
    list.keys = std::move(members.keys);
    list.ranges = std::move(members.ranges);
    list.key_ranges = std::move(members.key_ranges);
    return {};
}

Exceptions exceptions_of(Feed exceptions) {
    return {.lines = prefixes_of(members_of(std::move(exceptions)))};
}

Result<BuiltSet> build_from_feeds(std::span<Input> feeds, const FeedSpec& spec, const Observer& observer,
                                  Input* exceptions) {
    SIEVE_ASSIGN(List list, read_whole_list(feeds, spec, observer, {.exceptions = exceptions}));
    return build_feed(std::move(list.feed), feeds, spec.build, observer, list.exceptions,
                      std::move(list.spilled));
}

Result<OpenedSet> open_set(const SetSpec& spec, SetInputs inputs, const Observer& observer,
                           const FindKeys& find_spared) {
    if (inputs.sources.empty())
        return invalid_request(fmt::format("set {}: expected an image or a feed", spec.name));
    for (Input& source : inputs.sources) {
        SIEVE_ASSIGN(const bool image, is_image(source));
        if (!image) continue;
        if (inputs.sources.size() == 1) return open_image(spec, std::move(inputs), observer);
        return invalid_request(
            fmt::format("set {}: {} is an image, which is a whole set; only feeds can be put "
                        "together",
                        spec.name, source.name()));
    }
    return open_feeds(spec, std::move(inputs), observer, find_spared);
}

Result<OpenedSet> open_set(const SetSpec& spec, const Observer& observer) {
    SIEVE_ASSIGN(std::vector<SetInputs> inputs, find_inputs({&spec, 1}));
    return open_set(spec, std::move(inputs.front()), observer);
}

} // namespace sieve::control
