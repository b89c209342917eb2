// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/source.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "libsieve/service/file_source.hpp"

namespace sieve::service {

std::unique_ptr<Source> make_source(const SourceSpec& spec) {
    return make_file_source(spec);
}

Result<Pieces> fetch_all(const std::vector<SourceSpec>& sources, std::span<const PieceRecord> before) {
    Pieces all;
    std::set<std::pair<std::uint64_t, std::uint64_t>> files;
    for (const SourceSpec& spec : sources) {
        SIEVE_ASSIGN(Pieces pieces, make_source(spec)->fetch(before));
        for (std::unique_ptr<Piece>& piece : pieces) {
            const PieceRecord& record = piece->record();
            if (record.inode != 0 && !files.emplace(record.device, record.inode).second) continue;
            all.push_back(std::move(piece));
        }
    }
    return all;
}

bool same_content(const Pieces& pieces, std::span<const PieceRecord> records) {
    return std::equal(pieces.begin(), pieces.end(), records.begin(), records.end(),
                      [](const std::unique_ptr<Piece>& piece, const PieceRecord& record) {
                          return piece->record().digest == record.digest;
                      });
}

} // namespace sieve::service
