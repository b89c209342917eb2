// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/node/node_store.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/fleet/servers/sha256.hpp"
#include "libsieve/service/state/source_provenance.hpp"
#include "libsieve/util/files/output.hpp"
#include "libsieve/util/system/small_file.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "libsieve/util/text/number.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::fleet {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_record = 64 << 10;
constexpr std::size_t most_known = 256; // 16 manifests of as many sets

const OutputKind accepted_output{.name = "record of xdp-sieve", .beginnings = {"{"}, .mode = 0600};

Status fault(const std::string& path, int error) {
    return bad_input(fmt::format("{}: {}", printable(path), errno_text(error)));
}

Status make_folder(const std::string& path) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return fault(path, errno);
    return {};
}

Status sync(const std::string& folder) {
    const UniqueFd file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!file || ::fsync(file.get()) != 0) return fault(folder, errno);
    return {};
}

Status replace_link(const std::string& target, const std::string& path) {
    const std::string fresh = path + ".new";
    (void)::unlink(fresh.c_str());
    if (::symlink(target.c_str(), fresh.c_str()) != 0) return fault(fresh, errno);
    if (::rename(fresh.c_str(), path.c_str()) != 0) return fault(path, errno);
    return {};
}

} // namespace

Result<NodeStore> NodeStore::open(const std::string& folder) {
    for (const char* part : {"", "/blobs", "/manifests", "/serials", "/known"})
        SIEVE_TRY(make_folder(folder + part));
    return NodeStore(folder);
}

Result<std::optional<AcceptedManifest>> NodeStore::accepted() const {
    SIEVE_ASSIGN(const std::optional<std::string> text,
                 read_small_file(folder_ + "/accepted.json", longest_record));
    const auto value = parse_json(text.value_or(""));
    if (!value.is_object() || !value.contains("serial") || !value["serial"].is_number_unsigned() ||
        !value.contains("digest") || !value["digest"].is_string())
        return std::nullopt;
    AcceptedManifest accepted{value["serial"].get<std::uint64_t>(), value["digest"].get<std::string>()};
    if (const auto found = value.find("previous"); found != value.end() && found->is_string())
        accepted.previous = found->get<std::string>();
    if (const auto found = value.find("may_go_back"); found != value.end() && found->is_boolean())
        accepted.may_go_back = found->get<bool>();
    if (const auto found = value.find("by_key"); found != value.end() && found->is_object())
        for (const auto& [key, serial] : found->items())
            if (serial.is_number_unsigned()) accepted.by_key[key] = serial.get<std::uint64_t>();
    if (const auto found = value.find("fleet"); found != value.end() && found->is_string())
        accepted.fleet = found->get<std::string>();
    return accepted;
}

Status NodeStore::accept(const AcceptedManifest& accepted) const {
    const nlohmann::json value = {{"by_key", accepted.by_key},     {"digest", accepted.digest},
                                  {"fleet", accepted.fleet},       {"may_go_back", accepted.may_go_back},
                                  {"previous", accepted.previous}, {"serial", accepted.serial}};
    return write_output(folder_ + "/accepted.json", json_text(value, json_one_line) + "\n", accepted_output,
                        Replace::own);
}

std::string NodeStore::leads_to(const char* link) const {
    std::error_code error;
    const fs::path path = fs::path(folder_) / link;
    const std::string digest = fs::read_symlink(path, error).filename().string();
    return is_sha256(digest) && fs::is_directory(path, error) ? digest : std::string();
}

std::string NodeStore::current() const {
    return leads_to("current");
}

std::string NodeStore::held() const {
    return leads_to("held");
}

Status NodeStore::hold(const std::string& digest) const {
    SIEVE_TRY(replace_link("manifests/" + digest, folder_ + "/held"));
    return sync(folder_);
}

Status NodeStore::refuse(const std::string& digest) const {
    const std::string link = folder_ + "/refused";
    if (!digest.empty()) return replace_link("manifests/" + digest, link);
    if (::unlink(link.c_str()) != 0 && errno != ENOENT) return fault(link, errno);
    return {};
}

std::string NodeStore::refused() const {
    return leads_to("refused");
}

Status NodeStore::know(const std::map<std::string, std::string>& blobs) const {
    for (const auto& [set, digest] : blobs)
        SIEVE_TRY(replace_link("in-force-before", folder_ + "/known/" + digest));
    std::vector<std::pair<std::int64_t, std::string>> by_age;
    std::error_code error;
    for (const auto& link : fs::directory_iterator(folder_ + "/known", error)) {
        struct stat info {};
        if (::lstat(link.path().c_str(), &info) == 0)
            by_age.emplace_back(service::stamp_of(info).status_changed, link.path().string());
    }
    std::ranges::sort(by_age);
    for (std::size_t i = 0; i + most_known < by_age.size(); i++) (void)::unlink(by_age[i].second.c_str());
    return {};
}

std::map<std::string, std::string> NodeStore::sets_of(const std::string& digest) const {
    std::map<std::string, std::string> sets;
    if (digest.empty()) return sets;
    std::error_code error;
    for (const auto& link : fs::directory_iterator(folder_ + "/manifests/" + digest, error))
        sets[link.path().filename().string()] = fs::read_symlink(link.path(), error).filename().string();
    return sets;
}

Status NodeStore::switch_to(const SignedManifest& manifest) const {
    const std::string folder = folder_ + "/manifests/" + manifest.digest;
    SIEVE_TRY(make_folder(folder));
    for (const ManifestSet& set : manifest.manifest.sets)
        SIEVE_TRY(replace_link("../../blobs/" + set.digest, folder + "/" + set.name));
    SIEVE_TRY(
        replace_link(std::to_string(manifest.manifest.serial), folder_ + "/serials/" + manifest.digest));
    SIEVE_TRY(sync(folder));
    return switch_back(manifest.digest);
}

std::uint64_t NodeStore::serial_of(const std::string& digest) const {
    if (digest.empty()) return 0;
    std::error_code error;
    const std::string text = fs::read_symlink(folder_ + "/serials/" + digest, error).string();
    return parse_whole(text).value_or(0);
}

Status NodeStore::switch_back(const std::string& digest) const {
    SIEVE_TRY(replace_link("manifests/" + digest, folder_ + "/current"));
    return sync(folder_);
}

std::string NodeStore::blob_path(const std::string& digest) const {
    return folder_ + "/blobs/" + digest;
}

void NodeStore::keep_only(const std::vector<std::string>& manifests, std::set<std::string> named) const {
    std::error_code error;
    std::vector<fs::path> gone;
    for (const auto& manifest : fs::directory_iterator(folder_ + "/manifests", error)) {
        if (std::ranges::find(manifests, manifest.path().filename().string()) == manifests.end()) {
            gone.push_back(manifest.path());
            continue;
        }
        for (const auto& link : fs::directory_iterator(manifest.path(), error))
            named.insert(fs::read_symlink(link.path(), error).filename().string());
    }
    for (const auto& serial : fs::directory_iterator(folder_ + "/serials", error))
        if (std::ranges::find(manifests, serial.path().filename().string()) == manifests.end())
            gone.push_back(serial.path());
    for (const auto& blob : fs::directory_iterator(folder_ + "/blobs", error))
        if (!named.contains(blob.path().stem().string())) gone.push_back(blob.path());
    for (const fs::path& path : gone) fs::remove_all(path, error);
}

} // namespace sieve::fleet
