// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/filters/exact_kind.hpp"

#include <fmt/core.h>

namespace sieve {

Result<std::unique_ptr<KindBuilder>> ExactKind::builder(const KindOptions&) const {
    return invalid_request(fmt::format("kind {} is exact and not built from hashes", facts().name));
}

Status ExactKind::for_each_range(const sieve_lookup&, std::span<const sieve_line>,
                                 const std::function<void(const AddressRange&)>&) const {
    return bad_input(fmt::format("kind {} does not list its addresses", facts().name));
}

Result<std::unique_ptr<ExactFilter>> ExactKind::work_out(const AddressSet&) const {
    return invalid_request(fmt::format("kind {} holds no ranges", facts().name));
}

Result<std::unique_ptr<ExactFilter>> ExactKind::work_out(const KeySet&, const Spare&,
                                                         std::span<const __u64, SIEVE_HASH_KEY_WORDS>) const {
    return invalid_request(fmt::format("kind {} holds ranges and no single keys", facts().name));
}

std::uint64_t ExactKind::lines_for(std::uint64_t, std::uint64_t) const {
    return 0;
}

Result<KeySet> ExactKind::list(const sieve_lookup&, std::span<const sieve_line>) const {
    return invalid_request(fmt::format("kind {} does not list its keys", facts().name));
}

Status ExactKind::for_each_entry(const sieve_lookup&, std::span<const sieve_line>, std::uint64_t,
                                 const VisitEntry&) const {
    return invalid_request(fmt::format("kind {} does not list its keys", facts().name));
}

Result<KeySum> ExactKind::add_up(const sieve_lookup&, std::span<const sieve_line>) const {
    return invalid_request(fmt::format("kind {} does not list its keys", facts().name));
}

Result<std::unique_ptr<ChangeableTable>> ExactKind::open_table(const sieve_lookup&, sieve_file&,
                                                               std::span<sieve_line>) const {
    return invalid_request(fmt::format("keys of kind {} cannot be changed one by one", facts().name));
}

} // namespace sieve
