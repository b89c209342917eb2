// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/config/configuration_fleet.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "libsieve/service/config/configuration_access.hpp"
#include "libsieve/service/download/url.hpp"

namespace sieve::service {

namespace {

constexpr std::chrono::hours longest_report_interval{1};

// Names become parts of keys in etcd.
bool is_name(std::string_view text) {
    constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    return !text.empty() && text.size() <= 64 && text.find_first_not_of(allowed) == std::string_view::npos;
}
constexpr std::string_view name_form = "1 to 64 of A-Z a-z 0-9 . _ -";

bool is_server(const std::string& text) {
    return text.find('\0') == std::string::npos && check_url(text);
}

std::string without_slash(std::string url) {
    while (url.ends_with('/')) url.pop_back();
    return url;
}

// A name. `meaning`: what an empty one means.
template <class Table>
ConfigurationKey<Table> name_key(const char* name, const char* form, const char* help,
                                 std::string Table::*member, const char* meaning = "") {
    return {name, form, help,
            [=](Section& section, const KeyContext&, Table& into) {
                const std::optional<std::string> text = section.text(name, name_form);
                if (!text) return;
                if (!is_name(*text)) section.expected(*section.find(name), name, name_form);
                into.*member = *text;
            },
            [=](TomlText& text, const Table& table) {
                if ((table.*member).empty() && *meaning != '\0')
                    text.none(name, meaning);
                else
                    text.word(name, table.*member);
            }};
}

template <class Table>
ConfigurationKey<Table> list_key(const char* name, const char* form, const char* help,
                                 void (*read)(Section&, const KeyContext&, std::vector<std::string>&),
                                 std::vector<std::string> Table::*member) {
    return {name, form, help,
            [=](Section& section, const KeyContext& context, Table& into) {
                read(section, context, into.*member);
            },
            [=](TomlText& text, const Table& table) { text.key(name, list_of(table.*member)); }};
}

void read_trusted_keys(Section& section, const KeyContext& context, std::vector<std::string>& into) {
    constexpr std::string_view key = "trusted-keys";
    constexpr std::string_view what = "files of public keys";
    section.texts(key, what, [&](const toml::node& node, const std::string& text) {
        if (text.empty() || text.find('\0') != std::string::npos) return section.expected(node, key, what);
        into.push_back((context.folder / text).lexically_normal().string());
    });
}

void read_labels(Section& section, const KeyContext&, std::vector<std::string>& into) {
    section.texts("labels", name_form, [&](const toml::node& node, const std::string& text) {
        if (!is_name(text)) return section.expected(node, "labels", name_form);
        into.push_back(text);
    });
}

void read_endpoints(Section& section, const KeyContext&, std::vector<std::string>& into) {
    section.texts("endpoints", url_form, [&](const toml::node& node, const std::string& text) {
        if (!is_server(text)) return expected_url(section, node, "endpoints");
        into.push_back(without_slash(text));
    });
}

void read_store_url(Section& section, const KeyContext&, FleetStore& into) {
    read_url(section, "url", into.url);
    into.url = without_slash(std::move(into.url));
}

void write_rate(TomlText& text, const FleetStore& store) {
    if (store.rate == 0)
        text.none("rate", "no limit");
    else
        text.key("rate", whole_of(store.rate));
}

// What must be there.
void require(Section& section, std::string_view key, bool there, std::string_view what) {
    if (there) return;
    const toml::node* node = section.find(key);
    if (node == nullptr)
        section.mistake(fmt::format("no {}: expected {}", key, what));
    else if (node->is_array() && node->as_array()->empty())
        section.mistake(*node, key, fmt::format("empty, expected {}", what));
}

void read_etcd(Section& section, const KeyContext& context, FleetEtcd& etcd) {
    read_keys(etcd_keys(), section, context, etcd);
    require(section, "endpoints", !etcd.endpoints.empty(), "[\"https://HOST:2379\"]");
    check_access(section, etcd.access);
    if (etcd.user.empty() != etcd.password_file.empty())
        section.mistake("expected user and password-file together, or neither");
}

void read_store(Section& section, const KeyContext& context, FleetStore& store) {
    read_keys(store_keys(), section, context, store);
    require(section, "url", !store.url.empty(), "the URL of the store's folder or bucket");
    check_access(section, store.access);
    if (!store.region.empty() && store.credentials_file.empty())
        section.mistake("region is of S3, which also needs a credentials-file");
}

} // namespace

const ConfigurationKeys<FleetConfiguration>& fleet_keys() {
    using Fleet = FleetConfiguration;
    static const ConfigurationKeys<Fleet> keys = {
        name_key("name", "fleet", "the fleet that this host belongs to; required", &Fleet::name),
        list_key("trusted-keys", "[file, ...]",
                 "public keys; what none of them has signed is refused; required", read_trusted_keys,
                 &Fleet::trusted_keys),
        name_key("node", "name", "the name of this host in the fleet", &Fleet::node, "the host name"),
        list_key("labels", "[label, ...]", "labels of this host, for the stages of a rollout", read_labels,
                 &Fleet::labels),
        time_key("report", "how often this host reports at the latest", longest_report_interval,
                 &Fleet::report),
    };
    return keys;
}

const ConfigurationKeys<FleetEtcd>& etcd_keys() {
    static const ConfigurationKeys<FleetEtcd> keys = joined<FleetEtcd>({
        {list_key("endpoints", "[URL, ...]",
                  "the members of etcd; where one does not answer, the next one is asked; required",
                  read_endpoints, &FleetEtcd::endpoints)},
        keys_of_part(&FleetEtcd::access, server_access_keys()),
        {text_key("user", "name", "the user of etcd", "a user of etcd", &FleetEtcd::user),
         path_key("password-file", "a file with the password of that user in one line",
                  "a file with the user's password", &FleetEtcd::password_file)},
    });
    return keys;
}

const ConfigurationKeys<FleetStore>& store_keys() {
    static const ConfigurationKeys<FleetStore> keys = joined<FleetStore>({
        {{"url", "URL",
          "the folder or bucket of the blobs: an HTTP server that takes PUT and serves ranges, or S3; "
          "required",
          read_store_url, [](TomlText& text, const FleetStore& store) { text.word("url", store.url); }}},
        keys_of_part(&FleetStore::access, server_access_keys()),
        {name_key("region", "region", "the region of S3", &FleetStore::region,
                  "of S3; the store is a plain HTTP server"),
         path_key("credentials-file", "a file with `USER:PASSWORD`; of S3 the access key and the secret key",
                  "a file with USER:PASSWORD", &FleetStore::credentials_file),
         {"rate", "bytes", "bytes per second that uploads and downloads keep to",
          [](Section& section, const KeyContext&, FleetStore& store) { section.bytes("rate", store.rate); },
          write_rate}},
    });
    return keys;
}

FleetConfiguration read_fleet(Mistakes& mistakes, const toml::table& table, const KeyContext& context) {
    FleetConfiguration fleet;
    Section section(mistakes, table, "fleet");
    read_keys(fleet_keys(), section, context, fleet);
    require(section, "name", !fleet.name.empty(), "the fleet's name");
    require(section, "trusted-keys", !fleet.trusted_keys.empty(),
            "the file of a public key that `xdp-sieve fleet keygen` made");
    const auto part = [&](const char* name, const auto& read, auto& into) {
        const toml::table* own = section.table(name);
        if (own == nullptr)
            return table.get(name) == nullptr ? section.mistake(fmt::format("expected [fleet.{}]", name))
                                              : void();
        Section inner(mistakes, *own, section.key(name));
        read(inner, context, into);
        inner.finish();
    };
    part("etcd", read_etcd, fleet.etcd);
    part("store", read_store, fleet.store);
    section.finish();
    return fleet;
}

} // namespace sieve::service
