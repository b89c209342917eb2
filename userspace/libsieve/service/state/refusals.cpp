// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/state/refusals.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/util/files/output.hpp"
#include "libsieve/util/system/deferred_signals.hpp"
#include "libsieve/util/system/small_file.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RefusedList, guard, why, digest, entries, entries_before,
                                                addresses, addresses_before, refused_at, accepted)

namespace {

using nlohmann::json;

constexpr std::string_view name_ends = ".refused";
constexpr std::size_t longest_file = std::size_t{1} << 20;
const OutputKind refusal_output{.name = "refused list of xdp-sieve", .beginnings = {"{"}, .mode = 0600};

std::string path_of(const std::string& folder, const std::string& set) {
    return folder + '/' + set + std::string(name_ends);
}

std::string text_of(const RefusedList& list) {
    return json_text(json(list)) + "\n";
}

// Returns 0 or the error number; ENOENT if there is no second file.
int exchange(const std::string& one, const std::string& other) {
    if (::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
    // the file system has no RENAME_EXCHANGE
    if (::access(other.c_str(), F_OK) != 0) return errno;
    return ::rename(one.c_str(), other.c_str()) != 0 ? errno : 0;
}

} // namespace

std::optional<std::string> refused_set_of(std::string_view file_name) {
    if (!file_name.ends_with(name_ends) || file_name.size() == name_ends.size()) return std::nullopt;
    return std::string(file_name.substr(0, file_name.size() - name_ends.size()));
}

std::optional<RefusedList> read_refusal(const std::string& folder, const std::string& set) {
    const auto text = read_small_file(path_of(folder, set), longest_file);
    if (!text || !*text) return std::nullopt;
    try {
        RefusedList list = parse_json(**text).get<RefusedList>();
        return list.digest.empty() ? std::nullopt : std::optional(std::move(list));
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

Status write_refusal(const std::string& folder, const std::string& set, const RefusedList& list) {
    return write_output(path_of(folder, set), text_of(list), refusal_output, Replace::own);
}

Result<bool> replace_refusal(const std::string& folder, const std::string& set, const RefusedList& list) {
    const std::string path = path_of(folder, set);
    const std::string next = fmt::format("{}.{}", path, ::getpid());
    const DeferredSignals signals; // no signal ends the process while the second name exists
    SIEVE_TRY(write_output(next, text_of(list), refusal_output, Replace::own));
    const int error = exchange(next, path);
    (void)::unlink(next.c_str());
    if (error == ENOENT) return false;
    if (error != 0)
        return bad_input(fmt::format("{}: cannot be written: {}", printable(path), errno_text(error)));
    return true;
}

void remove_refusal(const std::string& folder, const std::string& set) {
    (void)::unlink(path_of(folder, set).c_str());
}

std::vector<std::string> refused_sets(const std::string& folder) {
    std::vector<std::string> sets;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error))
        if (const auto set = refused_set_of(entry.path().filename().string());
            set && read_refusal(folder, *set))
            sets.push_back(*set);
    return sets;
}

} // namespace sieve::service
