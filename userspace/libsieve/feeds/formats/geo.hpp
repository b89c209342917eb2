// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Data of countries and networks: which addresses lie in which country, or belong to which network. One file
// reads each layout, record by record:
//
//     mmdb.cpp           MaxMind's DB format, as MaxMind, DB-IP and IPinfo publish it
//     delegations.cpp    a regional registry's "delegated" statistics
//     geo_table.cpp      rows with a range or a prefix
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "libsieve/feeds/formats/translator.hpp"
#include "libsieve/feeds/text/list_format.hpp"
#include "libsieve/keys/address_range.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::formats {

// What was in the data, whatever was wanted.
struct GeoContents {
    std::set<std::string> countries{}; // that it has addresses of
    bool networks = false;             // it has addresses of networks
    std::set<std::string> found{};     // of the wanted codes, those that it has addresses of
    std::string about{};               // the data's name and date, if it says so

    void add(GeoContents other);
};

// What the data says about some addresses.
struct GeoRecord {
    std::string country{};     // its code; empty: nothing
    std::uint32_t network = 0; // its number; 0: none
    std::string name{};        // of the network, as the data has it
};

// Takes what a reader finds, and passes on what is wanted.
class GeoSink {
  public:
    // Wanted are the codes of the format or, if there are any, records that hold one of these addresses.
    GeoSink(const ListFormat& format, std::span<const uint128> addresses, const EntrySink& entries,
            GeoContents& contents);

    // Whether records that say so are wanted.
    [[nodiscard]] bool wants(const GeoRecord& record);
    // Whether such a record may be wanted for its addresses.
    [[nodiscard]] bool concerns(const AddressRange& range) const;
    // A record that is. `line`: where it stands, from 1; 0 in data without lines.
    void take(const GeoRecord& record, const AddressRange& range, std::uint64_t line) const;
    // A line that cannot be read.
    void refuse(std::uint64_t line, std::string why) const;
    void say(std::string about) { contents_.about = std::move(about); }

  private:
    std::set<std::string, std::less<>> codes_;
    std::span<const uint128> addresses_;
    const EntrySink& entries_;
    GeoContents& contents_;
};

// Passes the wanted entries of a document to the sink. The error says why it cannot be read at all.
[[nodiscard]] Status translate_geo(const ListFormat& format, std::span<const uint128> addresses,
                                   std::string_view document, const EntrySink& entries,
                                   GeoContents& contents);

// Why data with these contents has no entry of the code, behind "no addresses of CODE in DATA".
[[nodiscard]] std::string why_without(const std::string& code, const GeoContents& contents);

// --- one reader for each layout ---

[[nodiscard]] bool is_mmdb(std::string_view document);
[[nodiscard]] Status read_mmdb(std::string_view document, GeoSink& sink);

// A row of such statistics, or their first line.
[[nodiscard]] bool is_delegation(std::string_view line);
// An error: a file among them has other numbers of rows than its first lines say.
[[nodiscard]] Status read_delegations(std::string_view document, GeoSink& sink);

[[nodiscard]] Status read_geo_table(std::string_view document, GeoSink& sink);

} // namespace sieve::formats
