// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sandbox/child_work.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "libsieve/control/spec/source.hpp"
#include "libsieve/feeds/list_reader.hpp"
#include "libsieve/service/lists/list_digest.hpp"
#include "libsieve/service/lists/list_file.hpp"
#include "libsieve/service/lists/list_stream.hpp"
#include "libsieve/service/lists/question_file.hpp"
#include "libsieve/util/files/digest.hpp"
#include "libsieve/util/system/write_all.hpp"

namespace sieve::service {

namespace {

// That many keys leave a child before it parses on.
constexpr std::size_t keys_at_once = std::size_t{1} << 16;

// The list as text.
Result<Input> open_list(const ReadOrder& order, std::size_t number, int content,
                        const TellProgress& tell_progress) {
    const std::string& name = order.lists[number];
    struct stat info {};
    if (::fstat(content, &info) != 0 || (S_ISREG(info.st_mode) && ::lseek(content, 0, SEEK_SET) != 0))
        return bad_input(fmt::format("{}: cannot be read: {}", name, errno_text(errno)));
    tell_progress("reading " + name);
    SIEVE_ASSIGN(Input input, Input::of(UniqueFd(::fcntl(content, F_DUPFD_CLOEXEC, 0)), name));
    SIEVE_ASSIGN(const bool packed, input.unpack(order.limits));
    if (packed) tell_progress("unpacking " + name);
    return input;
}

control::Observer observer_of(std::vector<std::string>& remarks, const Progress& progress) {
    control::Observer observer;
    observer.remark = [&remarks](const std::string& remark) { remarks.push_back(remark); };
    if (progress) observer.progress = progress;
    return observer;
}

Status write_image(Image& image, int to) {
    image.seal();
    const std::span<const sieve_line> lines = image.lines();
    return write_all(to, {reinterpret_cast<const char*>(lines.data()), lines.size_bytes()});
}

// An image that is the only list, and as it is, never comes here.
Status refuse_image(Input& input) {
    SIEVE_ASSIGN(const bool image, is_image(input));
    if (!image) return {};
    return bad_input(fmt::format("{}: a filter image, expected a list: an image is a whole set, so it is the "
                                 "only source, comes without exceptions, and is not packed",
                                 input.name()));
}

// An error of the list with that number.
tl::unexpected<Error> blame(Error error, std::size_t number) {
    error.facts.input = number;
    return tl::unexpected(std::move(error));
}

} // namespace

Result<ListDone> stream_lists(const ListOrder& order, std::span<const int> lists, int to,
                              const Progress& progress) {
    std::vector<Input> inputs;
    inputs.reserve(order.inputs.size());
    for (std::size_t i = 0; i < order.inputs.size(); i++) {
        SIEVE_ASSIGN(Input input, Input::of(UniqueFd(lists[i]),
                                            std::string(order.inputs[i].begin(), order.inputs[i].end())));
        inputs.push_back(std::move(input));
    }
    std::vector<sieve_key> sought(order.sought.size());
    for (std::size_t i = 0; i < sought.size(); i++)
        std::ranges::copy(order.sought[i], std::begin(sought[i].word));
    const ListSender sender(to);
    FeedOptions options = order.options;
    options.progress = progress;
    options.most_entries = keys_at_once;
    options.overflow = [&sender](const Feed& feed) { return sender.send_keys(feed.keys); };
    SIEVE_ASSIGN(
        const FoundList list,
        read_here(inputs,
                  {.fields = order.fields, .options = options, .sought = sought, .may_be_empty = true}));
    const Feed& feed = list.feed;
    SIEVE_TRY(sender.send_keys(feed.keys));
    SIEVE_TRY(sender.send_rest(list));
    return ListDone{feed.lines, feed.comments, feed.skipped, feed.masked, feed.bytes};
}

Result<ReadDone> read_lists(const ReadOrder& order, std::span<const int> descriptors,
                            const TellProgress& tell_progress, const Progress& progress) {
    const int list_file = descriptors[0];
    const int exceptions_file = descriptors[1];
    std::vector<Input> inputs;
    inputs.reserve(order.lists.size());
    for (std::size_t i = 0; i < order.lists.size(); i++) {
        Result<Input> input = open_list(order, i, descriptors[read_descriptors + i], tell_progress);
        if (!input) return blame(std::move(input.error()), i);
        inputs.push_back(std::move(*input));
        if (Status list = refuse_image(inputs.back()); !list) return blame(std::move(list.error()), i);
    }
    std::optional<Input> exceptions;
    if (!order.feed.except.empty()) {
        exceptions = std::move(inputs.back());
        inputs.pop_back();
    }
    ReadDone done;
    const control::Observer observer = observer_of(done.remarks, progress);
    tell_progress("reading the lists");
    SIEVE_ASSIGN(Feed list, control::read_list(inputs, order.feed, observer, true));
    std::optional<Feed> taken;
    if (exceptions) {
        Result<Feed> read = control::read_exceptions(*exceptions, order.feed.fields, observer);
        if (!read) return blame(std::move(read.error()), inputs.size());
        taken = std::move(*read);
        SIEVE_TRY(control::take_out(list, *taken, exceptions->name(), observer, true));
    }
    done.digest = digest_of_list(list);
    if (taken) done.digest = digest_of(done.digest + digest_of_list(*taken));
    done.known = !order.known_digest.empty() && done.digest == order.known_digest;
    if (done.known) return done;
    SIEVE_TRY(write_list_file(list, list_file));
    if (taken) SIEVE_TRY(write_list_file(*taken, exceptions_file));
    return done;
}

Result<WorkDone> build_filter(const BuildOrder& order, std::span<const int> descriptors,
                              const TellProgress& tell_progress, const Progress& progress) {
    const int list_file = descriptors[0];
    const int exceptions_file = descriptors[1];
    const int image_file = descriptors[2];
    WorkDone done;
    const control::Observer observer = observer_of(done.remarks, progress);
    tell_progress("building the filter");
    SIEVE_ASSIGN(Feed list, read_list_file(list_file, order.feed.fields));
    Exceptions exceptions;
    if (!order.feed.except.empty()) {
        SIEVE_ASSIGN(Feed taken, read_list_file(exceptions_file, order.feed.fields));
        exceptions = control::exceptions_of(std::move(taken));
        exceptions.verified = order.verified;
    }
    SIEVE_ASSIGN(BuiltSet built, control::build_list(std::move(list), order.feed, observer, exceptions));
    SIEVE_TRY(write_image(built.image, image_file));
    return done;
}

Result<WorkDone> join_lists(const JoinOrder& order, std::span<const int> descriptors,
                            const TellProgress& tell_progress, const Progress& progress) {
    const int questions_file = descriptors[0];
    const int joint_file = descriptors[1];
    WorkDone done;
    const control::Observer observer = observer_of(done.remarks, progress);
    tell_progress("joining the sets");
    control::JointTask task = order.task;
    SIEVE_TRY(read_question_file(questions_file, task));
    std::vector<KeySet> lists;
    for (std::size_t i = 0; i < task.sets.size(); i++) {
        SIEVE_ASSIGN(Feed list, read_list_file(descriptors[join_descriptors + i], task.sets[i].fields));
        if (list.has_ranges())
            return bad_input(fmt::format("set {}: its list has prefixes or ranges", task.sets[i].name));
        SIEVE_TRY(control::check_list(task.sets[i], list.keys));
        lists.push_back(std::move(list.keys));
    }
    std::vector<const KeySet*> keys;
    for (const KeySet& list : lists) keys.push_back(&list);
    SIEVE_ASSIGN(const JointFilter joint, control::build_joint(task, keys, observer));
    SIEVE_TRY(write_all(joint_file,
                        {reinterpret_cast<const char*>(joint.lines().data()), joint.lines().size_bytes()}));
    return done;
}

} // namespace sieve::service
