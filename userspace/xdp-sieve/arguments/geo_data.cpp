// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/arguments/geo_data.hpp"

#include <optional>
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "libsieve/feeds/find_origin.hpp"
#include "libsieve/feeds/text/geo_code.hpp"
#include "libsieve/service/config/values/configuration.hpp"
#include "libsieve/service/sources/origin.hpp"
#include "libsieve/util/files/input.hpp"
#include "xdp-sieve/arguments/list_sources.hpp"
#include "xdp-sieve/arguments/managed_hook.hpp"

namespace sieve::cli {

namespace {

// The files of the data. A command fetches nothing.
Result<std::vector<std::string>> data_files() {
    const auto configuration = configuration_at(service::standard_configuration);
    std::vector<std::string> files;
    if (!configuration) return files;
    SIEVE_ASSIGN(const std::vector<service::Origin> origins, service::origins_of(configuration->geo));
    for (const service::Origin& origin : origins) {
        const auto* file = std::get_if<service::FileOrigin>(&origin);
        if (file == nullptr)
            return invalid_request(
                fmt::format("{}: a command takes data of countries and networks from files only",
                            service::origin_name(origin)));
        files.push_back(file->path);
    }
    return files;
}

} // namespace

Status find_geo_data(std::vector<std::string>& sources, ListFormat& format) {
    std::vector<std::string> codes;
    for (const std::string& source : sources) {
        SIEVE_ASSIGN(std::optional<std::string> code, geo_code_of_source(source));
        if (code) codes.push_back(*std::move(code));
    }
    if (codes.empty()) return {};
    if (codes.size() != sources.size() || format != ListFormat{})
        return invalid_request(fmt::format(
            "{}: a set of countries and networks has no other source, and no format", codes.front()));
    SIEVE_ASSIGN(sources, data_files());
    if (sources.empty())
        return invalid_request(fmt::format("{0}: there is no data to find it in: expected geo = [\"FILE\", "
                                           "...] in [service] of {1}; or name the "
                                           "file, with the format geo:{0}",
                                           codes.front(), service::standard_configuration));
    format = {ListSyntax::geo, std::move(codes)};
    return {};
}

Result<control::SetSpec> parse_set(const std::string& text, const Context& context) {
    SIEVE_ASSIGN(control::SetSpec set,
                 read_set_argument(text, progress_bars(context),
                                   [&context](const std::string& exposed) { remark(context, exposed); }));
    SIEVE_TRY(find_geo_data(set.sources, set.feed.format));
    return set;
}

std::vector<std::string> origin_of(const sieve_key& key, std::uint32_t fields, const Context& context) {
    if ((fields & SIEVE_FIELD_ADDRESSES) == 0) return {};
    const int word = (fields & SIEVE_FIELD_SRC) != 0 ? 0 : 2;
    const auto files = data_files();
    if (!files) return {};
    Result<std::vector<std::string>> origin = [&]() -> Result<std::vector<std::string>> {
        SIEVE_ASSIGN(std::vector<Input> data, Input::of_all(*files));
        return find_origin(data, address_number(key.word[word], key.word[word + 1]));
    }();
    if (origin) return *std::move(origin);
    remark(context, origin.error().message);
    return {};
}

} // namespace sieve::cli
