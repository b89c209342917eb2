// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/fleet/blob_source.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "libsieve/control/spec/source.hpp"
#include "libsieve/filters/kinds/registry.hpp"
#include "libsieve/fleet/servers/sha256.hpp"
#include "libsieve/image/header.hpp"
#include "libsieve/service/download/sandbox_limits.hpp"
#include "libsieve/service/state/state_directory.hpp"
#include "libsieve/util/files/input.hpp"
#include "libsieve/util/system/write_all.hpp"

namespace sieve::fleet {

namespace {

// Options of a feed that say how to read it. All others say how to build its filter.
constexpr std::array<std::string_view, 3> reading_options = {"key", "format", "skip-invalid"};

Result<std::string> action_of(const control::SetSpec& spec) {
    if (spec.condition.fields != 0)
        return invalid_request(
            fmt::format("set {}: {} is a node's configuration, expected neither ports nor protocols",
                        spec.name, control::describe_condition(spec.condition)));
    if (!spec.action) return std::string();
    const std::string name = control::action_name(spec.action->action);
    if (!control::is_action_name(name))
        return invalid_request(
            fmt::format("set {}: a limit or a redirection is a node's configuration, expected action={}",
                        spec.name, control::action_names()));
    return name;
}

// Names the blob by what the file holds.
Result<BlobSource> finish(BlobSource blob) {
    struct stat info {};
    if (::fstat(blob.content.get(), &info) != 0) return bad_input("cannot be read: " + errno_text(errno));
    blob.set.bytes = static_cast<std::uint64_t>(info.st_size);
    SIEVE_ASSIGN(blob.set.digest, sha256_of_file(blob.content.get()));
    return blob;
}

Result<BlobSource> image_blob(const control::SetSpec& spec, control::SetInputs inputs, BlobSource blob,
                              const control::Observer& observer) {
    SIEVE_ASSIGN(control::OpenedSet opened, control::open_set(spec, std::move(inputs), observer));
    if (opened.image.lookup().kind == SIEVE_KIND_DDLCBF)
        return invalid_request(fmt::format(
            "set {}: a filter of kind {} changes in place, node by node, and the next manifest would undo "
            "each change unseen; expected another kind (docs/fleet.md)",
            spec.name, kind_name(SIEVE_KIND_DDLCBF)));
    opened.image.seal();
    const auto lines = opened.image.lines();
    SIEVE_TRY(
        write_all(blob.content.get(), {reinterpret_cast<const char*>(lines.data()), lines.size_bytes()}));
    const sieve_file& file = opened.image.file();
    blob.set.as = BlobKind::image;
    blob.set.entries = file.keys;
    blob.set.rate = rate_from_bits(file.expected_fpr);
    blob.set.identity = service::identity_text(file);
    return finish(std::move(blob));
}

Result<BlobSource> feed_blob(const control::SetSpec& spec, Input& input, BlobSource blob,
                             const control::Observer& observer) {
    for (const std::string& option : spec.feed.chosen)
        if (std::ranges::find(reading_options, option) == reading_options.end())
            return invalid_request(
                fmt::format("set {}: {} says how a feed is built, which is each node's configuration; "
                            "--as image builds it here",
                            spec.name, option));
    std::vector<char> block(std::size_t{1} << 18);
    std::uint64_t bytes = 0;
    for (;;) {
        SIEVE_ASSIGN(const std::size_t got, input.read(block.data(), block.size()));
        if (got == 0) break;
        bytes += got;
        if (constexpr std::uint64_t most = service::SandboxLimits().unpacked_bytes; bytes > most)
            return bad_input(
                fmt::format("{}: more than {} bytes, which is all that a node reads", input.name(), most));
        SIEVE_TRY(write_all(blob.content.get(), {block.data(), got}));
    }
    UniqueFd copy(::dup(blob.content.get()));
    if (!copy || ::lseek(copy.get(), 0, SEEK_SET) != 0)
        return bad_input(fmt::format("{}: {}", input.name(), errno_text(errno)));
    SIEVE_ASSIGN(Input again, Input::of(std::move(copy), input.name()));
    SIEVE_ASSIGN(const Feed list, control::read_list({&again, 1}, spec.feed, observer));
    blob.set.as = BlobKind::feed;
    blob.set.entries = list.entries();
    if (blob.set.entries == 0) return bad_input(fmt::format("{}: no entries", input.name()));
    return finish(std::move(blob));
}

} // namespace

Result<UniqueFd> memory_file() {
    UniqueFd file(::memfd_create("blob", MFD_CLOEXEC));
    if (!file) return failure(ErrorKind::out_of_memory, "no file in memory: " + errno_text(errno));
    return file;
}

Result<BlobSource> make_blob(const control::SetSpec& spec, std::optional<BlobKind> as,
                             const control::Observer& observer) {
    if (spec.verify)
        return invalid_request(fmt::format(
            "set {}: whether matches are verified is each node's configuration (verify = true)", spec.name));
    BlobSource blob;
    blob.set.name = spec.name;
    SIEVE_ASSIGN(blob.set.action, action_of(spec));
    SIEVE_ASSIGN(blob.content, memory_file());
    SIEVE_ASSIGN(std::vector<control::SetInputs> inputs, control::find_inputs({&spec, 1}));
    std::vector<Input>& sources = inputs.front().sources;
    SIEVE_ASSIGN(const bool image, is_image(sources.front()));
    if (image && as == BlobKind::feed)
        return invalid_request(
            fmt::format("set {}: {} is an image, which cannot list its keys; --as feed needs "
                        "the feed",
                        spec.name, sources.front().name()));
    if (image || as == BlobKind::image)
        return image_blob(spec, std::move(inputs.front()), std::move(blob), observer);
    if (sources.size() > 1 || inputs.front().exceptions)
        return invalid_request(
            fmt::format("set {}: one feed is one blob; --as image makes one image of several "
                        "feeds and exceptions",
                        spec.name));
    return feed_blob(spec, sources.front(), std::move(blob), observer);
}

} // namespace sieve::fleet
