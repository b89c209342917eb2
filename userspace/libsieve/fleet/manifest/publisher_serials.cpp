// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/manifest/publisher_serials.hpp"

#include <optional>

#include <nlohmann/json.hpp>

#include "libsieve/util/files/output.hpp"
#include "libsieve/util/system/small_file.hpp"
#include "libsieve/util/text/json_text.hpp"

namespace sieve::fleet {

namespace {

constexpr std::size_t longest_record = std::size_t{64} << 10;
const OutputKind serials_output{.name = "record of xdp-sieve", .beginnings = {"{"}, .mode = 0600};

std::string path_of(const std::string& key_file) {
    return key_file + ".serials";
}

Result<nlohmann::json> read(const std::string& key_file) {
    SIEVE_ASSIGN(const std::optional<std::string> text, read_small_file(path_of(key_file), longest_record));
    nlohmann::json all = parse_json(text.value_or(""));
    return all.is_object() ? all : nlohmann::json::object();
}

} // namespace

Result<std::uint64_t> last_serial(const std::string& key_file, const std::string& fleet) {
    SIEVE_ASSIGN(const nlohmann::json all, read(key_file));
    const auto found = all.find(fleet);
    return found != all.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

Status keep_serial(const std::string& key_file, const std::string& fleet, std::uint64_t serial) {
    SIEVE_ASSIGN(nlohmann::json all, read(key_file));
    all[fleet] = serial;
    return write_output(path_of(key_file), json_text(all, json_one_line) + "\n", serials_output,
                        Replace::own);
}

} // namespace sieve::fleet
