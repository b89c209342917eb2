// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/reconcile/refresh.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/image/header.hpp"
#include "libsieve/image/image.hpp"
#include "libsieve/keys/address_key.hpp"
#include "libsieve/service/config/configuration_text.hpp"
#include "libsieve/service/lists/list_digest.hpp"
#include "libsieve/service/lists/list_file.hpp"
#include "libsieve/service/live/live_image.hpp"
#include "libsieve/service/reconcile/list_owner.hpp"
#include "libsieve/service/reconcile/together.hpp"
#include "libsieve/service/safety/acceptance.hpp"
#include "libsieve/service/sources/kept_sources.hpp"
#include "libsieve/service/sources/origin.hpp"
#include "libsieve/util/files/digest.hpp"
#include "libsieve/util/random/secret.hpp"
#include "libsieve/util/text/name_some.hpp"

namespace sieve::service {

namespace {

// Builds after which a false positive on an address that this host lives by is more than bad luck.
constexpr int most_builds = 4;

// Whether two visits found the sources alike, at whatever time.
bool same_sources(std::vector<SourceProvenance> a, std::vector<SourceProvenance> b) {
    for (auto* sources : {&a, &b})
        for (SourceProvenance& source : *sources) source.asked = source.read = 0;
    return a == b;
}

// Whether the last good image takes an address that it must not take: since it was built, this host has got
// another address, say. The list is then read and judged again, and another filter built of it.
bool last_good_is_doubtful(const SetConfiguration& set, const SetRecord& record, const StateDirectory& state,
                           const Protection& protection) {
    const std::vector<uint128> addresses = protected_addresses(set, protection);
    if (record.exact || addresses.empty()) return false;
    const auto image = Image::load(std::filesystem::path(state.image_path(set.name, record.identity)));
    return image && matches_any(*image, addresses);
}

// Whether this host no longer needs something that was left out of the last good list. The list is then read
// again, since it says that this is a member.
bool lacks_a_member(const SetConfiguration& set, const SetRecord& record, const Protection& protection) {
    std::set<std::string> now;
    for (const ProtectedRange& one : protected_ranges(set, protection)) now.insert(one.text);
    return std::ranges::any_of(record.left_out, [&](const std::string& text) { return !now.contains(text); });
}

// Leaves out of a new list what this host lives by, if the operator wants that, and says so.
Status leave_out(const SetConfiguration& set, const Protection& protection, Examined& examined,
                 const control::Observer& observer) {
    ReadList& read = *examined.read;
    if (!set.guards.skip_own || !guards_addresses(set) || !read.list) return {};
    SIEVE_ASSIGN(const std::vector<ProtectedRange> met, leave_out_protected(set, *read.list, protection));
    if (met.empty()) return {};
    SIEVE_ASSIGN(ReadList own, own_list(*read.list, read.label));
    read.records = std::move(own.records);
    std::vector<std::string> names;
    for (const ProtectedRange& one : met) {
        examined.left_out.push_back(one.text);
        names.push_back(fmt::format("{}, {}", one.text, one.what));
    }
    observer.remark(fmt::format("set {}: {} left out, since this host depends on {}: {}", set.name,
                                met.size() == 1 ? "one address or range was"
                                                : fmt::format("{} addresses or ranges were", met.size()),
                                met.size() == 1 ? "it" : "them", name_some(names)));
    return {};
}

// How large the last good list is.
ListSize size_of_last_good(const SetConfiguration& set, const SetRecord& record,
                           const StateDirectory& state) {
    ListSize size{.entries = record.entries, .image = record.list_digest.empty()};
    if (!guards_addresses(set)) return size;
    const auto image = Image::load(std::filesystem::path(state.image_path(set.name, record.identity)));
    if (!image) return size;
    if (size.image) return size_of(*image);
    // The filter lists its addresses, or else the list is read.
    size.extent = extent_of(*image);
    if (size.extent) return size;
    if (const Result<Feed> list = last_good_list(set, record, state))
        size.extent = extent_of(addresses_of(*list));
    return size;
}

// Of an image, that of its bytes.
std::string digest_of_what_was_read(const ReadList& read) {
    if (!read.known.digest.empty()) return read.known.digest;
    std::string all;
    for (const SourceProvenance& source : read.known.sources) all += source.digest;
    return digest_of(all);
}

// Asks the guards about the list that was read, and whether a person has answered them.
void check(const SetConfiguration& set, Examined& examined, const StateDirectory& state,
           const Protection& protection, const control::Observer& observer) {
    const ReadList& read = *examined.read;
    const std::optional<SetRecord>& last_good = examined.before;
    const std::optional<ListSize> before = last_good && !is_known_to_fleet(set, state.path())
                                               ? std::optional(size_of_last_good(set, *last_good, state))
                                               : std::nullopt;
    SetConfiguration guarded = set;
    if (last_good && has_first_answer(last_good->sources, read.known.sources))
        guarded.guards.most_growth = std::numeric_limits<double>::infinity();
    const auto ask = [&](Accepted accepted) {
        return read.list ? check_list(guarded, *read.list, before, protection, accepted)
                         : check_image(guarded, *read.image, before, protection,
                                       is_published(set, state.path()), accepted);
    };
    examined.refusal = ask(Accepted::no);
    if (!examined.refusal) return;
    const ListSize now = read.list ? size_of(set, *read.list) : size_of(*read.image);
    examined.refusal->list = refused_list(*examined.refusal, digest_of_what_was_read(read), now, before);
    const auto& list = examined.refusal->list;
    if (!list) return;
    // What is in force was accepted when it came.
    const bool in_force =
        last_good && last_good->accepted == list->digest && last_good->entries == list->entries;
    if (!in_force && !state.is_accepted(set.name, *list)) return;
    if (!in_force)
        observer.remark(fmt::format("set {}: its list is taken, since it was accepted by hand; guard {} had "
                                    "refused it",
                                    set.name, list->guard));
    examined.accepted = true;
    examined.refusal = ask(Accepted::yes);
}

// Adds those of which something is there. Why the list is not yet what it is to be; nothing if none is.
std::optional<GatherFailure> add_moved(const SetConfiguration& set, const SetRecord& record,
                                       const MovedOrigins& moved, const StateDirectory& state,
                                       std::vector<Origin>& origins) {
    std::optional<GatherFailure> behind;
    for (const auto& [identity, holder] : moved) {
        const auto source = std::ranges::find(record.sources, identity, &SourceProvenance::source);
        if (kept_content(set.name, record.identity, record.sources, state, identity))
            origins.emplace_back(MovedOrigin{identity});
        else if (source != record.sources.end() && source->stamp != FileStamp{})
            origins.emplace_back(FileOrigin{identity});
        else
            continue;
        behind = Error{ErrorKind::bad_input,
                       fmt::format("set {}: {} stays on its list until set {} has it in force", set.name,
                                   identity, holder),
                       {.set = set.name}};
    }
    return behind;
}

} // namespace

std::uint64_t Examined::entries() const {
    if (!read) return 0;
    return read->list ? read->list->entries() : read->image->file().keys;
}

tl::expected<Examined, GatherFailure> examine(const SetConfiguration& set, const StateDirectory& state,
                                              const Protection& protection, const SandboxSettings& sandbox,
                                              const control::Observer& observer,
                                              const std::function<bool()>& in_force,
                                              const MovedOrigins& moved, bool files_only) {
    const auto start = std::chrono::steady_clock::now();
    Examined examined;
    examined.before = state.read(set.name, observer.remark);
    examined.of_other_sources = examined.before && is_of_other_sources(*examined.before, set);
    examined.build = digest_of(build_text(set));
    auto origins = origins_of(set.sources);
    if (!origins) {
        origins.error().message = fmt::format("set {}: {}", set.name, origins.error().message);
        return tl::unexpected(std::move(origins.error()));
    }
    if (examined.before) examined.behind = add_moved(set, *examined.before, moved, state, *origins);
    examined.waits_to_give_up = examined.behind.has_value();
    const auto note_behind = [&](std::optional<GatherFailure>& behind) {
        if (!behind) return;
        examined.behind = std::move(behind);
        examined.waits_to_give_up = false;
    };
    if (origins->empty()) { // such as a folder without a file
        Feed none(set.feed.fields);
        std::string digest = digest_of_list(none);
        if (examined.before && examined.before->build == examined.build &&
            examined.before->list_digest == digest) {
            examined.before->sources.clear();
            return examined;
        }
        SIEVE_ASSIGN(examined.read, own_list(std::move(none), {}));
        examined.read->known.digest = std::move(digest);
        check(set, examined, state, protection, observer);
        return examined;
    }
    ReadRequest request{.set = set.name,
                        .origins = std::move(*origins),
                        .feed = set.feed,
                        .sandbox = sandbox,
                        .files_only = files_only};
    if (examined.before && examined.before->build == examined.build &&
        !last_good_is_doubtful(set, *examined.before, state, protection) &&
        !lacks_a_member(set, *examined.before, protection))
        request.known = KnownList{examined.before->sources, examined.before->list_digest};
    const std::optional<SetRecord>& before = examined.before;
    if (before)
        request.kept = [&](const std::string& origin) {
            return kept_content(set.name, before->identity, before->sources, state, origin);
        };
    if (!protection.passes_packets && !examined.of_other_sources)
        request.may_lack = [&](const std::string& origin) {
            if (!before) return in_force && !in_force();
            return !has_said(before->sources, origin);
        };
    SIEVE_ASSIGN(auto done, read_in_sandbox(request));
    examined.asking =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
    if (auto* unchanged = std::get_if<UnchangedList>(&done)) {
        examined.provenance_changed = !same_sources(examined.before->sources, unchanged->known.sources);
        examined.before->sources = std::move(unchanged->known.sources);
        note_behind(unchanged->visit.behind);
        keep_contents(set.name, examined.before->identity, unchanged->visit, examined.before->sources, state);
        examined.before->exceptions = exceptions_identity(set.feed.except);
        return examined;
    }
    examined.read = std::move(std::get<ReadList>(done));
    note_behind(examined.read->visit.behind);
    for (const std::string& remark : examined.read->remarks) observer.remark(remark);
    SIEVE_TRY(leave_out(set, protection, examined, observer));
    check(set, examined, state, protection, observer);
    return examined;
}

Result<SetRecord> build_image(const SetConfiguration& set, const Examined& examined,
                              const StateDirectory& state, const Protection& protection,
                              const SandboxSettings& sandbox, const control::Observer& observer) {
    const ReadList& read = *examined.read;
    // Verification has no false positives, and an image is not ours to build.
    const std::vector<uint128> strangers =
        set.verify || !read.list ? std::vector<uint128>() : protected_addresses(set, protection);
    // An exact set in force holds an address. That of an empty list holds one that no packet has: routers
    // discard its prefix, and the rest is a secret, so nobody forges it to get into a set that passes.
    const bool is_empty = read.list && read.list->entries() == 0;
    BuildRequest request{set.name, set.feed, set.verify, sandbox};
    std::optional<ReadList> stand_in;
    if (is_empty) {
        request.feed = control::FeedSpec();
        request.feed.fields = set.feed.fields;
        request.feed.build.kind.kind = SIEVE_KIND_EXACT;
        request.feed.build.spare.hits = set.feed.build.spare.hits;
        request.exact = false;
        std::uint64_t secret = 0;
        SIEVE_TRY(draw_secret(std::nullopt, {&secret, 1}));
        Feed nobody(set.feed.fields);
        nobody.keys.add(key_of_address(live::placeholder.address >> 64 << 64 | secret, set.feed.fields));
        SIEVE_ASSIGN(stand_in, own_list(std::move(nobody), read.label));
    }
    std::optional<BuiltList> built;
    for (int builds = 1; !built; builds++) {
        SIEVE_ASSIGN(built, build_in_sandbox(request, stand_in ? *stand_in : read));
        for (const std::string& remark : built->remarks) observer.remark(remark);
        if (builds == most_builds || !matches_any(built->image, strangers)) break;
        observer.remark(fmt::format("set {}: built again, since the filter mistook an address that is to be "
                                    "protected for a member",
                                    set.name));
        built.reset();
    }
    if (const FilterKind& kind = kind_of(built->image.lookup()); set.verify && kind.exact() != nullptr)
        observer.remark(fmt::format("set {}: kind {} is exact, so its matches need no verification", set.name,
                                    kind.facts().name));
    const sieve_file& file = built->image.file();
    SetRecord record;
    record.identity = identity_text(file);
    record.build = examined.build;
    record.list_digest = read.known.digest;
    record.entries = examined.entries();
    record.keys = is_empty ? 0 : file.keys;
    record.skipped = read.list ? read.list->skipped : file.skipped;
    record.bytes = built->image.bytes();
    record.expected_fpr = rate_from_bits(file.expected_fpr);
    record.built_at = std::time(nullptr);
    record.exact = !built->exact.empty();
    record.left_out = examined.left_out;
    if (examined.accepted) record.accepted = digest_of_what_was_read(read);
    record.sources = read.known.sources;
    record.exceptions = exceptions_identity(set.feed.except);
    SIEVE_TRY(state.stage(set.name, built->image, read.list ? read.records.get() : -1, built->exact));
    keep_contents(set.name, record.identity, read.visit, record.sources, state);
    return record;
}

Result<Feed> last_good_list(const SetConfiguration& set, const SetRecord& record,
                            const StateDirectory& state) {
    SIEVE_ASSIGN(const UniqueFd file, state.open_list(set.name, record.identity));
    return read_list_file(file.get(), set.feed.fields);
}

} // namespace sieve::service
