// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/refresh.hpp"

#include <ctime>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "libsieve/control/source.hpp"
#include "libsieve/image/header.hpp"
#include "libsieve/service/configuration_text.hpp"
#include "libsieve/util/digest.hpp"

namespace sieve::service {

namespace {

// Builds after which a false positive on an address that this host lives by is more than bad luck.
constexpr int most_builds = 4;

Result<std::vector<Input>> open_all(const Pieces& pieces) {
    std::vector<Input> inputs;
    inputs.reserve(pieces.size());
    for (const std::unique_ptr<Piece>& piece : pieces) {
        SIEVE_ASSIGN(Input input, piece->open());
        inputs.push_back(std::move(input));
    }
    return inputs;
}

std::uint64_t total_bytes(const Pieces& pieces) {
    std::uint64_t total = 0;
    for (const std::unique_ptr<Piece>& piece : pieces) total += piece->record().bytes;
    return total;
}

Status confirm_all(const Pieces& pieces) {
    for (const std::unique_ptr<Piece>& piece : pieces) SIEVE_TRY(piece->confirm());
    return {};
}

} // namespace

Result<Examined> examine(const SetConfiguration& set, const StateDirectory& state,
                         const Protection& protection, const control::Observer& observer) {
    Examined examined;
    examined.before = state.read(set.name, observer.remark);
    examined.build = digest_of(build_text(set));
    const std::vector<PieceRecord> none;
    const std::vector<PieceRecord>& before = examined.before ? examined.before->pieces : none;
    SIEVE_ASSIGN(examined.pieces, fetch_all(set.sources, before));
    if (examined.before && examined.before->build == examined.build && same_content(examined.pieces, before))
        return examined;
    if (total_bytes(examined.pieces) == 0) {
        examined.list.emplace(set.feed.fields);
        examined.refusal = empty_list(set);
        return examined;
    }
    SIEVE_ASSIGN(std::vector<Input> inputs, open_all(examined.pieces));
    SIEVE_ASSIGN(examined.list, control::read_list(inputs, set.feed, observer));
    SIEVE_TRY(confirm_all(examined.pieces));
    const std::optional<std::uint64_t> entries =
        examined.before ? std::optional(examined.before->entries) : std::nullopt;
    examined.refusal = check_list(set, *examined.list, entries, protection);
    return examined;
}

Result<SetRecord> build_image(const SetConfiguration& set, Examined examined, const StateDirectory& state,
                              const Protection& protection, const control::Observer& observer) {
    SetRecord record;
    record.build = examined.build;
    record.entries = examined.list->keys.size() + examined.list->ranges.size();
    record.skipped = examined.list->skipped;
    SIEVE_ASSIGN(const std::vector<Input> inputs, open_all(examined.pieces)); // named, not read again
    const bool guarded = protection.takes_packets && set.guards.protect_host && !set.verify &&
                         guards_addresses(set) && !protection.host.empty();
    std::optional<BuiltSet> built;
    for (int builds = 1; !built; builds++) {
        Feed list = guarded ? *examined.list : std::move(*examined.list);
        SIEVE_ASSIGN(built, control::build_list(std::move(list), inputs, set.feed, observer));
        if (!guarded || builds == most_builds || !mistakes_any(built->image, protection.host)) break;
        observer.remark(fmt::format("set {}: built again, since the filter mistook an address that this host "
                                    "lives by for a member",
                                    set.name));
        built.reset();
    }
    const sieve_file& file = built->image.file();
    record.identity = identity_text(file);
    record.keys = file.keys;
    record.bytes = built->image.bytes();
    record.expected_fpr = rate_from_bits(file.expected_fpr);
    record.built_at = std::time(nullptr);
    for (const std::unique_ptr<Piece>& piece : examined.pieces) record.pieces.push_back(piece->record());
    SIEVE_TRY(state.stage(set.name, built->image, examined.pieces));
    if (Status same = confirm_all(examined.pieces); !same) {
        state.discard_staged(set.name);
        return tl::unexpected(std::move(same.error()));
    }
    return record;
}

Result<Feed> last_good_list(const SetConfiguration& set, const SetRecord& record,
                            const StateDirectory& state) {
    SIEVE_ASSIGN(std::vector<Input> inputs, Input::of_all({state.list_path(set.name, record.identity)}));
    return read_feed(inputs, set.feed.fields,
                     {.skip_invalid = true, .ranges = true, .threads = set.feed.build.threads});
}

} // namespace sieve::service
