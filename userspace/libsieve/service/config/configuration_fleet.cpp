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

// One table of the fleet's.
class FleetTable {
  public:
    FleetTable(Mistakes& mistakes, const toml::table& table, std::string key,
               const std::filesystem::path& folder)
        : section_(mistakes, table, std::move(key)), table_(table), folder_(folder) {}

    void name(std::string_view key, std::string& into) {
        const std::optional<std::string> text = section_.text(key, name_form);
        if (!text) return;
        if (!is_name(*text)) section_.expected(*table_.get(key), key, name_form);
        into = *text;
    }
    void words(std::string_view key, std::vector<std::string>& into) {
        section_.texts(key, name_form, [&](const toml::node& node, const std::string& text) {
            if (!is_name(text)) return section_.expected(node, key, name_form);
            into.push_back(text);
        });
    }
    void path(std::string_view key, std::string_view what, std::string& into) {
        read_path(section_, folder_, key, what, into);
    }
    void paths(std::string_view key, std::string_view what, std::vector<std::string>& into) {
        section_.texts(key, what, [&](const toml::node& node, const std::string& text) {
            if (text.empty() || text.find('\0') != std::string::npos)
                return section_.expected(node, key, what);
            into.push_back((folder_ / text).lexically_normal().string());
        });
    }
    void servers(std::string_view key, std::vector<std::string>& into) {
        section_.texts(key, url_form, [&](const toml::node& node, const std::string& text) {
            if (!is_server(text)) return expected_url(section_, node, key);
            into.push_back(without_slash(text));
        });
    }
    void server(std::string_view key, std::string& into) {
        read_url(section_, key, into);
        into = without_slash(std::move(into));
    }
    void access(ServerAccess& into) { read_server_access(section_, folder_, into); }
    // What must be there.
    void require(std::string_view key, bool there, std::string_view what) {
        if (!there && table_.get(key) == nullptr)
            section_.mistake(fmt::format("no {}: expected {}", key, what));
        else if (!there && table_.get(key)->is_array() && table_.get(key)->as_array()->empty())
            section_.mistake(*table_.get(key), key, fmt::format("empty, expected {}", what));
    }
    Section& section() { return section_; }

  private:
    static std::string without_slash(std::string url) {
        while (url.ends_with('/')) url.pop_back();
        return url;
    }

    Section section_;
    const toml::table& table_;
    const std::filesystem::path& folder_;
};

void read_etcd(FleetTable& table, FleetEtcd& etcd) {
    table.servers("endpoints", etcd.endpoints);
    table.require("endpoints", !etcd.endpoints.empty(), "[\"https://HOST:2379\"]");
    table.access(etcd.access);
    if (const auto user = table.section().text("user", "a user of etcd")) etcd.user = *user;
    table.path("password-file", "a file with the user's password", etcd.password_file);
    if (etcd.user.empty() != etcd.password_file.empty())
        table.section().mistake("expected user and password-file together, or neither");
    table.section().finish();
}

void read_store(FleetTable& table, FleetStore& store) {
    table.server("url", store.url);
    table.require("url", !store.url.empty(), "the URL of the store's folder or bucket");
    table.access(store.access);
    table.path("credentials-file", "a file with USER:PASSWORD", store.credentials_file);
    table.name("region", store.region);
    if (!store.region.empty() && store.credentials_file.empty())
        table.section().mistake("region is of S3, which also needs a credentials-file");
    table.section().bytes("rate", store.rate);
    table.section().finish();
}

} // namespace

FleetConfiguration read_fleet(Mistakes& mistakes, const toml::table& table,
                              const std::filesystem::path& folder) {
    FleetConfiguration fleet;
    FleetTable top(mistakes, table, "fleet", folder);
    top.name("name", fleet.name);
    top.require("name", !fleet.name.empty(), "the fleet's name");
    top.paths("trusted-keys", "files of public keys", fleet.trusted_keys);
    top.require("trusted-keys", !fleet.trusted_keys.empty(),
                "the file of a public key that `xdp-sieve fleet keygen` made");
    top.name("node", fleet.node);
    top.words("labels", fleet.labels);
    top.section().duration("report", longest_report_interval, fleet.report);
    const auto part = [&](const char* name, const auto& read, auto& into) {
        const toml::table* own = top.section().table(name);
        if (own == nullptr)
            return table.get(name) == nullptr
                       ? top.section().mistake(fmt::format("expected [fleet.{}]", name))
                       : void();
        FleetTable inner(mistakes, *own, std::string("fleet.") + name, folder);
        read(inner, into);
    };
    part("etcd", read_etcd, fleet.etcd);
    part("store", read_store, fleet.store);
    top.section().finish();
    return fleet;
}

} // namespace sieve::service
