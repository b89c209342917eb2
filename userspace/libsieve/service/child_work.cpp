// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/child_work.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "libsieve/build/exact_keys.hpp"
#include "libsieve/control/source.hpp"
#include "libsieve/service/list_digest.hpp"
#include "libsieve/service/list_file.hpp"
#include "libsieve/util/write_all.hpp"

namespace sieve::service {

namespace {

// A list's content, and the file that takes what it unpacks to.
struct ListFiles {
    int content;
    int unpacked;
};

Status refuse_html(const Input& input, std::string_view begin) {
    if (!looks_like_html(begin)) return {};
    return bad_input(
        fmt::format("{}: found an HTML page, expected a list; look at it in a browser: it may be "
                    "a notice, a login, or the page about the list",
                    input.name()));
}

// The list as text.
Result<Input> open_list(const ReadOrder& order, std::size_t number, const ListFiles& files,
                        const TellProgress& tell_progress) {
    const std::string& name = order.lists[number];
    struct stat info {};
    if (::fstat(files.content, &info) != 0)
        return bad_input(fmt::format("{}: cannot be read: {}", name, errno_text(errno)));
    int text = files.content;
    if (S_ISREG(info.st_mode)) {
        std::array<char, first_bytes> begin{};
        const ssize_t got = ::pread(files.content, begin.data(), begin.size(), 0);
        if (got < 0) return bad_input(fmt::format("{}: cannot be read: {}", name, errno_text(errno)));
        const Packing packing = packing_of({begin.data(), static_cast<std::size_t>(got)});
        if (packing != Packing::none) {
            tell_progress("unpacking " + name);
            SIEVE_TRY(unpack(packing, files.content, files.unpacked, name, order.limits));
            text = files.unpacked;
        }
        if (::lseek(text, 0, SEEK_SET) != 0)
            return bad_input(fmt::format("{}: cannot be read: {}", name, errno_text(errno)));
    }
    tell_progress("reading " + name);
    SIEVE_ASSIGN(Input input, Input::of(UniqueFd(::fcntl(text, F_DUPFD_CLOEXEC, 0)), name));
    SIEVE_ASSIGN(const std::string_view begin, input.peek(first_bytes));
    SIEVE_TRY(refuse_html(input, begin));
    return input;
}

Status write_image(Image& image, int to) {
    image.seal();
    const std::span<const sieve_line> lines = image.lines();
    return write_all(to, {reinterpret_cast<const char*>(lines.data()), lines.size_bytes()});
}

Result<ReadDone> pass_image_on(const ReadOrder& order, Input& input, int to) {
    if (!order.feed.chosen.empty())
        return invalid_request(
            fmt::format("{}: an image was built already and takes no option of a feed ({})", input.name(),
                        order.feed.chosen.front()));
    SIEVE_ASSIGN(Image image, Image::load(input));
    SIEVE_TRY(write_image(image, to));
    return ReadDone{.image = true};
}

} // namespace

Result<ReadDone> read_lists(const ReadOrder& order, std::span<const int> descriptors,
                            const TellProgress& tell_progress, const Progress& progress) {
    const int list_file = descriptors[0];
    const int image_file = descriptors[1];
    std::vector<Input> inputs;
    inputs.reserve(order.lists.size());
    for (std::size_t i = 0; i < order.lists.size(); i++) {
        const ListFiles files{descriptors[2 + 2 * i], descriptors[3 + 2 * i]};
        SIEVE_ASSIGN(Input input, open_list(order, i, files, tell_progress));
        inputs.push_back(std::move(input));
        SIEVE_ASSIGN(const bool image, is_image(inputs.back()));
        if (image && order.lists.size() == 1) return pass_image_on(order, inputs.back(), image_file);
    }
    ReadDone done;
    control::Observer observer;
    observer.remark = [&](const std::string& remark) { done.remarks.push_back(remark); };
    if (progress) observer.progress = progress;
    tell_progress("reading the lists");
    SIEVE_ASSIGN(const Feed list, control::read_list(inputs, order.feed, observer));
    done.digest = digest_of_list(list);
    done.known = !order.known_digest.empty() && done.digest == order.known_digest;
    if (!done.known) SIEVE_TRY(write_list_file(list, list_file));
    return done;
}

Result<BuildDone> build_filter(const BuildOrder& order, std::span<const int> descriptors,
                               const TellProgress& tell_progress, const Progress& progress) {
    const int list_file = descriptors[0];
    const int image_file = descriptors[1];
    const int exact_file = descriptors[2];
    BuildDone done;
    control::Observer observer;
    observer.remark = [&](const std::string& remark) { done.remarks.push_back(remark); };
    if (progress) observer.progress = progress;
    tell_progress("building the filter");
    SIEVE_ASSIGN(Feed list, read_list_file(list_file, order.feed.fields));
    std::optional<Feed> kept;
    if (order.exact) kept = list;
    SIEVE_ASSIGN(BuiltSet built, control::build_list(std::move(list), order.feed, observer));
    if (kept) {
        SIEVE_ASSIGN(const std::vector<sieve_key> exact,
                     exact_keys(kept->keys, kept->ranges, built.image, order.feed.build.label));
        SIEVE_TRY(write_all(exact_file,
                            {reinterpret_cast<const char*>(exact.data()), exact.size() * sizeof(sieve_key)}));
    }
    SIEVE_TRY(write_image(built.image, image_file));
    return done;
}

} // namespace sieve::service
