// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/timed_entry_record.hpp"

#include <cstring>
#include <type_traits>

namespace sieve::service::live {

namespace {

struct EntryRecord {
    std::uint64_t upper;
    std::uint64_t lower;
    std::uint64_t id;
    std::int64_t until;
    std::uint64_t length;
};
static_assert(sizeof(EntryRecord) == timed_entry_record_bytes &&
              std::has_unique_object_representations_v<EntryRecord>);

} // namespace

void append_entries(std::string& to, const std::vector<TimedEntry>& timed_entries) {
    to.reserve(to.size() + timed_entries.size() * timed_entry_record_bytes);
    for (const TimedEntry& timed_entry : timed_entries) {
        const EntryRecord record{static_cast<std::uint64_t>(timed_entry.prefix.address >> 64),
                                 static_cast<std::uint64_t>(timed_entry.prefix.address), timed_entry.id,
                                 timed_entry.until.time_since_epoch().count(), timed_entry.prefix.length};
        to.append(reinterpret_cast<const char*>(&record), sizeof(record));
    }
}

bool take_entries(std::string_view& from, std::uint64_t count, std::vector<TimedEntry>& to) {
    to.reserve(to.size() + count);
    for (std::uint64_t i = 0; i < count; i++) {
        EntryRecord record;
        std::memcpy(&record, from.data(), sizeof(record));
        from.remove_prefix(sizeof(record));
        if (record.length == 0 || record.length > 128) return false;
        const Prefix prefix{address_number(record.upper, record.lower),
                            static_cast<std::uint8_t>(record.length)};
        if ((prefix.address & prefix.host_bits()) != 0) return false;
        to.push_back({prefix, record.id, Time(std::chrono::milliseconds(record.until))});
    }
    return true;
}

} // namespace sieve::service::live
