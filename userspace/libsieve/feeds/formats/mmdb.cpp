// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// MaxMind's DB format, version 2: a binary tree whose nodes are two records for the next bit of an address,
// then values, then a map of metadata behind a marker (https://maxmind.github.io/MaxMind-DB/).
//
// libmaxminddb opens a path and maps it. The child that reads lists can open nothing, and has the file as
// bytes, maybe unpacked ones; so it is read here. The bytes are hostile: each node is visited once at most,
// values are skipped without recursion, and all values together cost a number of steps that the file's size
// allows.
#include <array>
#include <cstring>
#include <ctime>
#include <initializer_list>
#include <optional>
#include <unordered_map>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/core.h>

#include "libsieve/feeds/formats/geo.hpp"
#include "libsieve/feeds/text/geo_code.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::formats {

namespace {

constexpr std::string_view marker = "\xab\xcd\xefMaxMind.com";
constexpr std::size_t marker_within = std::size_t{128} << 10; // of the end
constexpr std::uint64_t gap = 16;                             // zero bytes between tree and values
constexpr std::uint64_t steps_per_byte = 64; // an honest file takes less than one for most of its bytes

std::uint64_t big_endian(std::string_view bytes) {
    std::uint64_t number = 0;
    for (const char c : bytes) number = number << 8 | static_cast<unsigned char>(c);
    return number;
}

enum class Type : std::uint8_t {
    extended,
    pointer,
    text,
    real,
    bytes,
    uint16,
    uint32,
    map,
    int32,
    uint64,
    uint128,
    array,
    cache,
    end,
    boolean,
    real32,
};

struct Value {
    Type type{};
    std::uint64_t size = 0;  // of a pointer: where it leads; of a map or an array: its elements
    std::string_view data{}; // of all others
    std::size_t at = 0;      // where it begins, behind its head
};

// A run of values. Positions are relative to it.
class Values {
  public:
    explicit Values(std::string_view bytes) : bytes_(bytes), steps_(steps_per_byte * (bytes.size() + 1)) {}

    // Whether a position led out of the file, or the values were too entangled.
    [[nodiscard]] bool damaged() const { return damaged_; }

    // The value there, or where a pointer there leads.
    std::optional<Value> value(std::size_t at) {
        std::optional<Value> one = next(at);
        if (!one || one->type != Type::pointer) return one;
        at = one->size;
        one = next(at);
        if (one && one->type == Type::pointer) return damage();
        return one;
    }
    // The value of a map's key; nothing, too, if it is no map.
    std::optional<Value> member(const std::optional<Value>& map, std::string_view key) {
        if (!map || map->type != Type::map) return std::nullopt;
        std::size_t at = map->at;
        for (std::uint64_t left = map->size; left > 0; left--) {
            const std::optional<Value> name = value(at);
            if (!name || !skip(at)) return std::nullopt;
            if (name->type == Type::text && name->data == key) return value(at);
            if (!skip(at)) return std::nullopt;
        }
        return std::nullopt;
    }
    // The first of these keys that the map has as a text, or as a map that has `inner` as a text.
    std::string_view text(const std::optional<Value>& map, std::initializer_list<std::string_view> keys,
                          std::string_view inner = {}) {
        for (const std::string_view key : keys) {
            std::optional<Value> found = member(map, key);
            if (found && found->type == Type::map && !inner.empty()) found = member(found, inner);
            if (found && found->type == Type::text) return found->data;
        }
        return {};
    }
    // 0: the map has no such number.
    std::uint64_t number(const std::optional<Value>& map, std::string_view key) {
        const std::optional<Value> found = member(map, key);
        const bool is_number = found &&
                               (found->type == Type::uint16 || found->type == Type::uint32 ||
                                found->type == Type::uint64 || found->type == Type::int32) &&
                               found->data.size() <= sizeof(std::uint64_t);
        return is_number ? big_endian(found->data) : 0;
    }

  private:
    std::nullopt_t damage() {
        damaged_ = true;
        return std::nullopt;
    }
    std::optional<std::uint64_t> take_number(std::size_t& at, std::size_t bytes) {
        if (bytes > bytes_.size() - at) return damage();
        at += bytes;
        return big_endian(bytes_.substr(at - bytes, bytes));
    }

    // The value there as it is. `at` moves behind it; of a map or an array, to its first element.
    std::optional<Value> next(std::size_t& at) {
        if (steps_ == 0 || at >= bytes_.size()) return damage();
        --steps_;
        const auto control = static_cast<unsigned char>(bytes_[at++]);
        Value one{.type = static_cast<Type>(control >> 5)};
        if (one.type == Type::pointer) {
            constexpr std::array<std::uint64_t, 4> offsets{0, 2048, 526336, 0};
            const unsigned bytes = (control >> 3 & 3U) + 1;
            const auto number = take_number(at, bytes);
            if (!number) return std::nullopt;
            const std::uint64_t high = bytes == 4 ? 0 : std::uint64_t{control & 7U} << (8 * bytes);
            one.size = (high | *number) + offsets[bytes - 1];
            return one;
        }
        if (one.type == Type::extended) {
            const auto type = take_number(at, 1);
            if (!type) return std::nullopt;
            constexpr auto most = static_cast<std::uint64_t>(Type::real32) - 7;
            if (*type == 0 || *type > most) return damage();
            one.type = static_cast<Type>(*type + 7);
        }
        one.size = control & 31U;
        if (one.size > 28) {
            constexpr std::array<std::uint64_t, 3> offsets{29, 285, 65821};
            const std::size_t bytes = one.size - 28;
            const auto number = take_number(at, bytes);
            if (!number) return std::nullopt;
            one.size = *number + offsets[bytes - 1];
        }
        one.at = at;
        switch (one.type) {
        case Type::map:
        case Type::array:
        case Type::boolean: // its size is its value
            return one;
        case Type::cache:
        case Type::end:
            return damage();
        default:
            if (one.size > bytes_.size() - at) return damage();
            one.data = bytes_.substr(at, one.size);
            at += one.size;
            return one;
        }
    }
    // Moves behind a value and all that is in it.
    bool skip(std::size_t& at) {
        for (std::uint64_t left = 1; left > 0; left--) {
            const std::optional<Value> one = next(at);
            if (!one) return false;
            if (one->type == Type::map) left += 2 * one->size;
            if (one->type == Type::array) left += one->size;
        }
        return true;
    }

    std::string_view bytes_;
    std::uint64_t steps_; // that are left
    bool damaged_ = false;
};

GeoRecord record_of(Values& values, std::size_t at) {
    const std::optional<Value> map = values.value(at);
    GeoRecord record;
    // Where the addresses are used; or else where their holder is.
    for (const std::string_view key : {"country", "registered_country", "country_code"})
        if (record.country.empty())
            record.country = country_code(values.text(map, {key}, "iso_code")).value_or("");
    const std::uint64_t number = values.number(map, "autonomous_system_number");
    record.network = number != 0 && number <= UINT32_MAX
                         ? static_cast<std::uint32_t>(number)
                         : network_number(values.text(map, {"asn"})).value_or(0);
    if (record.network != 0) record.name = values.text(map, {"autonomous_system_organization", "as_name"});
    return record;
}

class Tree {
  public:
    static Result<Tree> of(std::string_view document) {
        const std::size_t end = document.rfind(marker);
        Values metadata(document.substr(end + marker.size()));
        const auto map = metadata.value(0);
        Tree tree;
        tree.nodes_ = metadata.number(map, "node_count");
        tree.record_bits_ = metadata.number(map, "record_size");
        const std::uint64_t version = metadata.number(map, "ip_version");
        tree.bits_ = version == 4 ? 32 : 128;
        const std::uint64_t major = metadata.number(map, "binary_format_major_version");
        const std::uint64_t size = tree.record_bits_;
        if ((version != 4 && version != 6) || major != 2 || (size != 24 && size != 28 && size != 32))
            return bad_input("its metadata are not those of an MMDB file of version 2");
        const std::uint64_t bytes = tree.nodes_ * (size / 4);
        if (tree.nodes_ > UINT32_MAX || bytes + gap > end)
            return bad_input(fmt::format("found an MMDB file of {} bytes, expected a tree of {} nodes in it",
                                         document.size(), tree.nodes_));
        tree.tree_ = document.substr(0, bytes);
        tree.values_ = document.substr(bytes + gap, end - bytes - gap);
        const auto built = static_cast<std::time_t>(metadata.number(map, "build_epoch"));
        tree.about_ = printable(metadata.text(map, {"database_type"}), 64);
        if (tree.about_.empty()) tree.about_ = "MMDB";
        if (built > 0 && built < 0x7fffffffffff)
            tree.about_ += fmt::format(" of {:%Y-%m-%d}", fmt::gmtime(built));
        return tree;
    }

    [[nodiscard]] const std::string& about() const { return about_; }

    // Visits the nodes whose addresses concern the sink.
    Status walk(GeoSink& sink) const {
        const std::uint64_t ipv4 = find_ipv4();
        Records records(values_, sink);
        struct Step {
            std::uint64_t node;
            uint128 prefix;
            unsigned length;
        };
        std::vector<Step> steps;
        if (nodes_ > 0) steps.push_back({0, 0, 0});
        for (std::uint64_t visited = 0; !steps.empty(); visited++) {
            const Step step = steps.back();
            steps.pop_back();
            const unsigned length = step.length + 1;
            if (visited == nodes_ || length > bits_) return bad_input("found a loop in its tree");
            for (const unsigned side : {0U, 1U}) {
                const uint128 prefix = step.prefix | uint128{side} << (bits_ - length);
                const std::uint64_t next = record(step.node, side);
                if (next == nodes_) continue;
                // IPv4 once more, in IPv6 addresses that hold one.
                if (next == ipv4 && (length != ipv4_depth || prefix != 0)) continue;
                const AddressRange range = range_of(prefix, length);
                const bool around_ipv4 = bits_ == 128 && prefix == 0 && length < ipv4_depth;
                if (next < nodes_) {
                    if (around_ipv4 || sink.concerns(range)) steps.push_back({next, prefix, length});
                    continue;
                }
                if (next < nodes_ + gap) return bad_input("a record of its tree leads nowhere");
                const GeoRecord* const record = records.wanted(next - nodes_ - gap);
                if (record == nullptr) continue;
                sink.take(*record, range, 0);
                if (around_ipv4) sink.take(*record, all_ipv4, 0);
            }
            if (records.damaged()) return bad_input("its values are damaged");
        }
        return {};
    }

  private:
    static constexpr unsigned ipv4_depth = 96; // IPv4 is ::/96

    // Each record once, however many networks have it.
    class Records {
      public:
        Records(std::string_view values, GeoSink& sink) : values_(values), sink_(sink) {}

        // Null: it is not.
        const GeoRecord* wanted(std::size_t at) {
            const auto [known, is_new] = index_.try_emplace(at, SIZE_MAX);
            if (is_new) {
                GeoRecord record = record_of(values_, at);
                if (sink_.wants(record)) {
                    known->second = wanted_.size();
                    wanted_.push_back(std::move(record));
                }
            }
            return known->second == SIZE_MAX ? nullptr : &wanted_[known->second];
        }
        [[nodiscard]] bool damaged() const { return values_.damaged(); }

      private:
        Values values_;
        GeoSink& sink_;
        std::unordered_map<std::size_t, std::size_t> index_;
        std::vector<GeoRecord> wanted_;
    };

    [[nodiscard]] std::uint64_t record(std::uint64_t node, unsigned side) const {
        const std::size_t bytes = record_bits_ / 8; // whole ones
        const std::size_t half = record_bits_ % 8 == 0 ? 0 : 1;
        const std::string_view pair = tree_.substr(node * (2 * bytes + half), 2 * bytes + half);
        const std::uint64_t low = big_endian(pair.substr(side * (bytes + half), bytes));
        if (half == 0) return low;
        const auto middle = static_cast<unsigned char>(pair[bytes]);
        return std::uint64_t{side == 0 ? middle >> 4 : middle & 15U} << (8 * bytes) | low;
    }
    // The node of ::/96; the number of nodes, which is no node, if there is none.
    [[nodiscard]] std::uint64_t find_ipv4() const {
        std::uint64_t node = bits_ == 128 ? 0 : nodes_;
        for (unsigned depth = 0; depth < ipv4_depth && node < nodes_; depth++) node = record(node, 0);
        return node < nodes_ ? node : nodes_;
    }
    [[nodiscard]] AddressRange range_of(uint128 prefix, unsigned length) const {
        const uint128 last = prefix | (length == 128 ? 0 : ~uint128{0} >> length >> (128 - bits_));
        const bool v4 = bits_ == 32 || (length >= ipv4_depth && prefix >> 32 == 0);
        const uint128 from = v4 ? all_ipv4.first : 0;
        return {from + prefix, from + last};
    }

    std::string_view tree_;
    std::string_view values_;
    std::uint64_t nodes_ = 0;
    std::uint64_t record_bits_ = 0;
    unsigned bits_ = 0; // of an address
    std::string about_;
};

} // namespace

bool is_mmdb(std::string_view document) {
    const std::size_t found = document.rfind(marker);
    return found != std::string_view::npos && document.size() - found <= marker_within;
}

Status read_mmdb(std::string_view document, GeoSink& sink) {
    SIEVE_ASSIGN(const Tree tree, Tree::of(document));
    sink.say(tree.about());
    return tree.walk(sink);
}

} // namespace sieve::formats
