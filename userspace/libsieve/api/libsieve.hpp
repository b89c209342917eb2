// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// libsieve for C++: the interface of libsieve.h with owners, strings, and errors as values.
//
// Header only, so that no C++ type crosses the library's boundary. A program may use another compiler,
// another standard library or another version of the standard than libsieve was built with. Needs C++20. No
// function throws, except for std::bad_alloc from the standard library's own strings.
//
//     auto keys = libsieve::Keys::of(SIEVE_FIELD_SRC);
//     if (auto added = keys->add_feed("list.txt"); !added) return complain(added.error());
//     auto image = libsieve::build(std::move(*keys), {.bits_per_key = 16});
//     if (!image) return complain(image.error());
//     if (image->contains(key)) ...
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <libsieve/libsieve.h>

namespace libsieve {

struct Error {
    int kind = 0; // enum libsieve_error_kind
    std::string message;
};

// A value, or the reason why there is none.
template <class T>
class [[nodiscard]] Result {
  public:
    Result(T value) : content_(std::move(value)) {}     // NOLINT(google-explicit-constructor)
    Result(Error error) : content_(std::move(error)) {} // NOLINT(google-explicit-constructor)

    [[nodiscard]] bool has_value() const { return content_.index() == 0; }
    explicit operator bool() const { return has_value(); }

    // Precondition: there is a value.
    [[nodiscard]] T& operator*() & { return *std::get_if<0>(&content_); }
    [[nodiscard]] const T& operator*() const& { return *std::get_if<0>(&content_); }
    [[nodiscard]] T&& operator*() && { return std::move(*std::get_if<0>(&content_)); }
    [[nodiscard]] T* operator->() { return std::get_if<0>(&content_); }
    [[nodiscard]] const T* operator->() const { return std::get_if<0>(&content_); }

    // Precondition: there is no value.
    [[nodiscard]] const Error& error() const { return *std::get_if<1>(&content_); }

  private:
    std::variant<T, Error> content_;
};

using Status = Result<std::monostate>;

namespace detail {

inline Error take(libsieve_error* raw) {
    Error error{libsieve_error_kind(raw), libsieve_error_message(raw)};
    libsieve_error_free(raw);
    return error;
}

template <auto free>
struct Free {
    template <class T>
    void operator()(T* object) const {
        free(object);
    }
};

template <class T, auto free>
using Owner = std::unique_ptr<T, Free<free>>;

inline const char* text_or_null(const std::string& text) {
    return text.empty() ? nullptr : text.c_str();
}

} // namespace detail

// The fields of a comma list such as "src,dport,proto".
inline Result<std::uint32_t> parse_fields(const std::string& text) {
    std::uint32_t fields = 0;
    libsieve_error* error = nullptr;
    if (!libsieve_parse_fields(text.c_str(), &fields, &error)) return detail::take(error);
    return fields;
}

// One key as people write it, with its fields in their order.
inline Result<sieve_key> parse_key(const std::string& text, std::uint32_t fields) {
    sieve_key key{};
    libsieve_error* error = nullptr;
    if (!libsieve_parse_key(text.c_str(), fields, &key, &error)) return detail::take(error);
    return key;
}

class Keys {
  public:
    // An empty list of keys made of these fields (enum sieve_field bits).
    static Result<Keys> of(std::uint32_t fields) {
        libsieve_keys* raw = nullptr;
        libsieve_error* error = nullptr;
        if (!libsieve_keys_new(fields, &raw, &error)) return detail::take(error);
        return Keys(raw);
    }

    Status add(const sieve_key& key) {
        libsieve_error* error = nullptr;
        if (!libsieve_keys_add(keys_.get(), &key, &error)) return detail::take(error);
        return std::monostate{};
    }
    // A key, or one with prefixes or ranges of addresses, and among several fields with * for any value.
    Status add(const std::string& text) {
        libsieve_error* error = nullptr;
        if (!libsieve_keys_add_text(keys_.get(), text.c_str(), &error)) return detail::take(error);
        return std::monostate{};
    }
    // All entries of a feed, or none.
    Status add_feed(const std::string& path) {
        libsieve_error* error = nullptr;
        if (!libsieve_keys_add_feed(keys_.get(), path.c_str(), &error)) return detail::take(error);
        return std::monostate{};
    }

    [[nodiscard]] std::uint64_t count() const { return libsieve_keys_count(keys_.get()); }
    [[nodiscard]] libsieve_keys* get() const { return keys_.get(); }

  private:
    explicit Keys(libsieve_keys* raw) : keys_(raw) {}

    detail::Owner<libsieve_keys, libsieve_keys_free> keys_;
};

class Image {
  public:
    explicit Image(libsieve_image* raw) : image_(raw) {}

    static Result<Image> open(const std::string& path) {
        libsieve_image* raw = nullptr;
        libsieve_error* error = nullptr;
        if (!libsieve_image_open(path.c_str(), &raw, &error)) return detail::take(error);
        return Image(raw);
    }

    Status save(const std::string& path) {
        libsieve_error* error = nullptr;
        if (!libsieve_image_save(image_.get(), path.c_str(), &error)) return detail::take(error);
        return std::monostate{};
    }

    [[nodiscard]] libsieve_image_info info() const {
        libsieve_image_info info{};
        info.size = sizeof(info);
        libsieve_image_describe(image_.get(), &info);
        return info;
    }

    // Whether the set may hold the key. The answer false is certain.
    [[nodiscard]] bool contains(const sieve_key& key) const {
        return libsieve_image_contains(image_.get(), &key);
    }

    // The same for a key as people write it.
    [[nodiscard]] Result<bool> contains(const std::string& text) const {
        const Result<sieve_key> key = parse_key(text, info().fields);
        if (!key) return key.error();
        return contains(*key);
    }

    // The bytes that fill a BPF array map (value size 64).
    [[nodiscard]] const void* lines(std::uint32_t& count) const {
        return libsieve_image_lines(image_.get(), &count);
    }

    [[nodiscard]] libsieve_image* get() const { return image_.get(); }

  private:
    detail::Owner<libsieve_image, libsieve_image_free> image_;
};

// Options that are not set take the default.
struct BuildOptions {
    std::string kind{};
    double bits_per_key = 0;
    double fpr = 0;
    std::uint64_t memory = 0;
    std::string effort{};
    std::uint32_t choices = 0;
    std::uint32_t threads = 0;
    std::string label{};
    const Keys* exceptions = nullptr; // what the image must not match
};

// Builds an image of the keys.
inline Result<Image> build(Keys keys, const BuildOptions& chosen = {}) {
    libsieve_build_options options{};
    options.size = sizeof(options);
    options.kind = detail::text_or_null(chosen.kind);
    options.bits_per_key = chosen.bits_per_key;
    options.fpr = chosen.fpr;
    options.memory = chosen.memory;
    options.effort = detail::text_or_null(chosen.effort);
    options.choices = chosen.choices;
    options.threads = chosen.threads;
    options.label = detail::text_or_null(chosen.label);
    options.exceptions = chosen.exceptions != nullptr ? chosen.exceptions->get() : nullptr;
    libsieve_image* raw = nullptr;
    libsieve_error* error = nullptr;
    if (!libsieve_build(keys.get(), &options, &raw, &error)) return detail::take(error);
    return Image(raw);
}

// One way to hold the keys.
struct Candidate {
    std::string kind;
    std::string parameters;
    std::string infeasible; // why the candidate is impossible; empty if it is possible
    bool recommended = false;
    std::uint64_t bytes = 0;
    double bits_per_key = 0;
    double predicted_fpr = 0;
    double lines_miss = 0;
    double lines_hit = 0;
};

// Every kind for that many keys. Give either a rate to stay below, or the bytes of the whole image, or
// neither: then each kind has its own size, and the recommended one is that of single addresses.
inline Result<std::vector<Candidate>> plan(std::uint64_t keys, double fpr = 0, std::uint64_t memory = 0) {
    libsieve_plan* raw = nullptr;
    libsieve_error* error = nullptr;
    if (!libsieve_plan_new(keys, fpr, memory, &raw, &error)) return detail::take(error);
    const detail::Owner<libsieve_plan, libsieve_plan_free> plan(raw);
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < libsieve_plan_count(raw); i++) {
        libsieve_candidate from{};
        from.size = sizeof(from);
        libsieve_plan_candidate(raw, i, &from);
        candidates.push_back({from.kind, from.parameters, from.infeasible != nullptr ? from.infeasible : "",
                              from.recommended, from.bytes, from.bits_per_key, from.predicted_fpr,
                              from.lines_miss, from.lines_hit});
    }
    return candidates;
}

// The sets that packets on one hook of an interface meet, in their order. Needs root.
class Table {
  public:
    // `hook`: "xdp", "ingress" or "egress".
    static Result<Table> on(const std::string& interface, const std::string& hook = "xdp") {
        libsieve_table* raw = nullptr;
        libsieve_error* error = nullptr;
        if (!libsieve_table_new(interface.c_str(), hook.c_str(), &raw, &error)) return detail::take(error);
        return Table(raw);
    }

    // What becomes of packets that no set decides: "pass" or "drop".
    Status set_default(const std::string& action) {
        libsieve_error* error = nullptr;
        if (!libsieve_table_set_default(table_.get(), action.c_str(), &error)) return detail::take(error);
        return std::monostate{};
    }

    // What becomes of packets that the program cannot read to their end: "drop", which is the default, or
    // "pass".
    Status set_unreadable(const std::string& action) {
        libsieve_error* error = nullptr;
        if (!libsieve_table_set_unreadable(table_.get(), action.c_str(), &error)) return detail::take(error);
        return std::monostate{};
    }

    // What becomes of a packet that would be dropped, if it answers a flow that this host began: "pass" or
    // "drop". `max_flows` are remembered; 0: by the machine's memory.
    Status set_replies(const std::string& action, std::uint64_t max_flows = 0) {
        libsieve_error* error = nullptr;
        if (!libsieve_table_set_replies(table_.get(), action.c_str(), max_flows, &error))
            return detail::take(error);
        return std::monostate{};
    }

    // Adds a set behind the others, from an image or a feed. Without an action, the set does the opposite of
    // the default.
    Status add(const std::string& name, const std::string& path, const std::string& action = {}) {
        libsieve_error* error = nullptr;
        if (!libsieve_table_add(table_.get(), name.c_str(), path.c_str(), detail::text_or_null(action),
                                &error))
            return detail::take(error);
        return std::monostate{};
    }

    // What this set of the table drops stays dropped, even if it answers a flow of this host.
    Status keep_replies_out(const std::string& set) {
        libsieve_error* error = nullptr;
        if (!libsieve_table_keep_replies_out(table_.get(), set.c_str(), &error)) return detail::take(error);
        return std::monostate{};
    }

    // Only packets match this set whose field ("dport", "sport" or "proto") is one of the values.
    Status set_condition(const std::string& set, const std::string& field, const std::string& values) {
        libsieve_error* error = nullptr;
        if (!libsieve_table_set_condition(table_.get(), set.c_str(), field.c_str(), values.c_str(), &error))
            return detail::take(error);
        return std::monostate{};
    }

    // Applies the table even if it drops an address that this host lives by.
    Status allow_lockout() {
        libsieve_error* error = nullptr;
        if (!libsieve_table_allow_lockout(table_.get(), &error)) return detail::take(error);
        return std::monostate{};
    }

    // Protects the addresses of a list like those that this host lives by.
    Status protect_list(const std::string& path) {
        libsieve_error* error = nullptr;
        if (!libsieve_table_protect_list(table_.get(), path.c_str(), &error)) return detail::take(error);
        return std::monostate{};
    }

    // Applies the table even where that needs force.
    Status set_force() {
        libsieve_error* error = nullptr;
        if (!libsieve_table_set_force(table_.get(), &error)) return detail::take(error);
        return std::monostate{};
    }

    // Sets whose names are in force go on with their counters.
    Status keep_counters() {
        libsieve_error* error = nullptr;
        if (!libsieve_table_keep_counters(table_.get(), &error)) return detail::take(error);
        return std::monostate{};
    }

    // Puts the table on probation for so many seconds when it is applied; libsieve_confirm() keeps it.
    Status set_probation(std::uint32_t seconds) {
        libsieve_error* error = nullptr;
        if (!libsieve_table_set_probation(table_.get(), seconds, &error)) return detail::take(error);
        return std::monostate{};
    }

    // Puts the table in force between two packets.
    Status apply() const {
        libsieve_error* error = nullptr;
        if (!libsieve_table_apply(table_.get(), &error)) return detail::take(error);
        return std::monostate{};
    }

  private:
    explicit Table(libsieve_table* raw) : table_(raw) {}

    detail::Owner<libsieve_table, libsieve_table_free> table_;
};

// The functions from here on change one thing that is in force; everything else stays. Without a hook, they
// mean the one that has the program, or the set.

// How a change is made, as in libsieve_change_options. Empty texts mean that nothing is given.
struct ChangeOptions {
    std::string action{};
    std::string before{};
    std::string after{};
    bool first = false;
    bool last = false;
    bool keep_counters = false;
    bool force = false;
    bool allow_lockout = false;
    std::uint32_t probation = 0;
};

namespace detail {

// Valid as long as `chosen` is.
inline libsieve_change_options options_of(const ChangeOptions& chosen) {
    libsieve_change_options options{};
    options.size = sizeof(options);
    options.action = text_or_null(chosen.action);
    options.before = text_or_null(chosen.before);
    options.after = text_or_null(chosen.after);
    options.first = chosen.first;
    options.last = chosen.last;
    options.keep_counters = chosen.keep_counters;
    options.force = chosen.force;
    options.allow_lockout = chosen.allow_lockout;
    options.probation = chosen.probation;
    return options;
}

} // namespace detail

// Another action, another place in the order, or both.
inline Status edit_set(const std::string& interface, const std::string& name, const ChangeOptions& chosen,
                       const std::string& hook = {}) {
    const libsieve_change_options options = detail::options_of(chosen);
    libsieve_error* error = nullptr;
    if (!libsieve_edit_set(interface.c_str(), detail::text_or_null(hook), name.c_str(), &options, &error))
        return detail::take(error);
    return std::monostate{};
}

// One more set, from an image or a feed.
inline Status add_set(const std::string& interface, const std::string& name, const std::string& path,
                      const ChangeOptions& chosen = {}, const std::string& hook = {}) {
    const libsieve_change_options options = detail::options_of(chosen);
    libsieve_error* error = nullptr;
    if (!libsieve_add_set(interface.c_str(), detail::text_or_null(hook), name.c_str(), path.c_str(), &options,
                          &error))
        return detail::take(error);
    return std::monostate{};
}

// Another filter for a set, from an image or a feed.
inline Status swap_set(const std::string& interface, const std::string& name, const std::string& path,
                       const ChangeOptions& chosen = {}, const std::string& hook = {}) {
    const libsieve_change_options options = detail::options_of(chosen);
    libsieve_error* error = nullptr;
    if (!libsieve_swap_set(interface.c_str(), detail::text_or_null(hook), name.c_str(), path.c_str(),
                           &options, &error))
        return detail::take(error);
    return std::monostate{};
}

// One set less.
inline Status remove_set(const std::string& interface, const std::string& name,
                         const ChangeOptions& chosen = {}, const std::string& hook = {}) {
    const libsieve_change_options options = detail::options_of(chosen);
    libsieve_error* error = nullptr;
    if (!libsieve_remove_set(interface.c_str(), detail::text_or_null(hook), name.c_str(), &options, &error))
        return detail::take(error);
    return std::monostate{};
}

// What becomes of packets that no set decides: "pass" or "drop".
inline Status edit_default(const std::string& interface, const std::string& action,
                           const ChangeOptions& chosen = {}, const std::string& hook = {}) {
    const libsieve_change_options options = detail::options_of(chosen);
    libsieve_error* error = nullptr;
    if (!libsieve_edit_default(interface.c_str(), detail::text_or_null(hook), action.c_str(), &options,
                               &error))
        return detail::take(error);
    return std::monostate{};
}

// Whether answers to this host pass: "pass" or "drop".
inline Status edit_replies(const std::string& interface, const std::string& action,
                           std::uint64_t max_flows = 0, const ChangeOptions& chosen = {},
                           const std::string& hook = {}) {
    const libsieve_change_options options = detail::options_of(chosen);
    libsieve_error* error = nullptr;
    if (!libsieve_edit_replies(interface.c_str(), detail::text_or_null(hook), action.c_str(), max_flows,
                               &options, &error))
        return detail::take(error);
    return std::monostate{};
}

// What became of keys, as in libsieve_keys_changed.
struct KeysChanged {
    std::uint64_t done = 0;
    std::uint64_t unchanged = 0;
    std::uint64_t full = 0;
    std::uint64_t other_end = 0;
    std::uint64_t expired = 0;
    std::uint64_t keys = 0;
    double expected_fpr = 0;
    std::uint32_t grown = 0;
};

struct InsertOptions {
    std::uint64_t seconds = 0; // the keys end after so many; 0: never
    bool again = false;
    bool grow = false;
    bool allow_lockout = false;
};

namespace detail {

inline KeysChanged changed_of(const libsieve_keys_changed& raw) {
    return {raw.done,    raw.unchanged, raw.full,         raw.other_end,
            raw.expired, raw.keys,      raw.expected_fpr, raw.grown};
}

} // namespace detail

// Single keys of a set of kind ddlcbf come.
inline Result<KeysChanged> insert(const std::string& interface, const std::string& name, const Keys& keys,
                                  const InsertOptions& chosen = {}, const std::string& hook = {}) {
    libsieve_insert_options options{};
    options.size = sizeof(options);
    options.seconds = chosen.seconds;
    options.again = chosen.again;
    options.grow = chosen.grow;
    options.allow_lockout = chosen.allow_lockout;
    libsieve_keys_changed changed{};
    changed.size = sizeof(changed);
    libsieve_error* error = nullptr;
    if (!libsieve_insert(interface.c_str(), detail::text_or_null(hook), name.c_str(), keys.get(), &options,
                         &changed, &error))
        return detail::take(error);
    return detail::changed_of(changed);
}

// They go.
inline Result<KeysChanged> erase(const std::string& interface, const std::string& name, const Keys& keys,
                                 const ChangeOptions& chosen = {}, const std::string& hook = {}) {
    const libsieve_change_options options = detail::options_of(chosen);
    libsieve_keys_changed changed{};
    changed.size = sizeof(changed);
    libsieve_error* error = nullptr;
    if (!libsieve_delete(interface.c_str(), detail::text_or_null(hook), name.c_str(), keys.get(), &options,
                         &changed, &error))
        return detail::take(error);
    return detail::changed_of(changed);
}

// Takes the keys out whose time is over; the result is their number. Without an interface, everywhere.
inline Result<std::uint64_t> expire(const std::string& interface = {}, const std::string& hook = {}) {
    std::uint64_t taken_out = 0;
    libsieve_error* error = nullptr;
    if (!libsieve_expire(detail::text_or_null(interface), detail::text_or_null(hook), &taken_out, &error))
        return detail::take(error);
    return taken_out;
}

struct ListedKey {
    std::string text;
    std::optional<std::chrono::nanoseconds> ends_in; // negative: so long ago
};

struct KeyList {
    std::vector<ListedKey> keys{};
    std::uint64_t unlisted = 0; // keys of the set that nobody knows
};

// The keys of a set in force, as far as the kernel knows them.
inline Result<KeyList> list_keys(const std::string& interface, const std::string& name,
                                 const std::string& hook = {}) {
    libsieve_key_list* raw = nullptr;
    libsieve_error* error = nullptr;
    if (!libsieve_list(interface.c_str(), detail::text_or_null(hook), name.c_str(), &raw, &error))
        return detail::take(error);
    const detail::Owner<libsieve_key_list, libsieve_key_list_free> owner(raw);
    KeyList list;
    list.unlisted = libsieve_key_list_unlisted(raw);
    for (std::size_t i = 0; i < libsieve_key_list_count(raw); i++) {
        libsieve_listed_key key{};
        key.size = sizeof(key);
        libsieve_key_list_get(raw, i, &key);
        ListedKey one{key.text, std::nullopt};
        if (key.ends) one.ends_in = std::chrono::nanoseconds(key.ends_in);
        list.keys.push_back(std::move(one));
    }
    return list;
}

} // namespace libsieve
