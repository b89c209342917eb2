// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/child_main.hpp"

#include <curl/curl.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include <fmt/core.h>

#include "libsieve/build/exact_keys.hpp"
#include "libsieve/control/source.hpp"
#include "libsieve/service/child.hpp"
#include "libsieve/service/child_messages.hpp"
#include "libsieve/service/list_digest.hpp"
#include "libsieve/service/list_file.hpp"
#include "libsieve/service/live/claim_file.hpp"
#include "libsieve/service/live/decisions.hpp"
#include "libsieve/service/url.hpp"
#include "libsieve/util/shortage.hpp"

namespace sieve::service {

namespace {

// malloc reserves 64 MiB of addresses for each of its arenas, which the limit on addresses counts.
constexpr int most_arenas = 4;
// An order holds an authority's certificates at most.
constexpr std::size_t longest_order = std::size_t{16} << 20;

Status write_all(int to, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(to, bytes.data(), bytes.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return bad_input(fmt::format("cannot be written: {}", errno_text(errno)));
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return {};
}

void say(std::string line) {
    line += '\n';
    // A parent that does not listen any more has ended, or ends this child.
    (void)write_all(child_descriptor::report, line);
}

void tell_progress(const std::string& at) {
    say(write_progress(at));
}

// The whole file from where the descriptor stands.
Result<std::string> read_whole(int from, std::size_t most) {
    std::string text;
    std::array<char, 4096> buffer;
    for (;;) {
        const ssize_t got = ::read(from, buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return bad_input(errno_text(errno));
        if (got == 0) return text;
        text.append(buffer.data(), static_cast<std::size_t>(got));
        if (text.size() > most) return bad_input(fmt::format("more than {} bytes", most));
    }
}

// --- fetch
// ----------------------------------------------------------------------------------------------------

// What the child is told to trust, while it may still read it.
Status read_certificates(FetchOrder& order) {
    if (order.certificates_path.empty()) return {};
    const UniqueFd file(
        ::open(order.certificates_path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    Result<std::string> text = file ? read_whole(file.get(), longest_order) : bad_input(errno_text(errno));
    if (text && text->find("-----BEGIN") == std::string::npos)
        text = bad_input("expected certificates (PEM)");
    if (!text)
        return bad_input(
            fmt::format("{}: cannot be read: {}", order.certificates_path, text.error().message));
    order.request.certificates = std::move(*text);
    return {};
}

// The body that was downloaded, as decisions.
Status read_decisions(const FetchOrder& order) {
    constexpr int body = child_descriptor::first;
    if (::lseek(body, 0, SEEK_SET) != 0) return bad_input(errno_text(errno));
    SIEVE_ASSIGN(const std::string text, read_whole(body, order.request.limits.source_bytes));
    SIEVE_ASSIGN(const live::Decisions decisions,
                 live::parse_decisions(text, order.decisions->filter,
                                       live::Time(std::chrono::milliseconds(order.decisions->now))));
    return live::write_claim_file(decisions, body + 1);
}

// What the API means by its refusal.
std::string explain(const FetchOrder& order, const HttpFailure& failure) {
    constexpr long forbidden = 403;
    if (!order.decisions || failure.status != forbidden) return failure.message;
    return failure.message + ": it does not know the key; `cscli bouncers add NAME` makes one";
}

tl::expected<std::string, ChildFailure> work(FetchOrder order) {
    const auto failed = [](Error error) { return tl::unexpected(ChildFailure{std::move(error), {}}); };
    if (auto read = read_certificates(order); !read) return failed(std::move(read.error()));
    // Reads the configuration of the TLS library.
    if (::curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return failed({ErrorKind::out_of_memory, "libcurl cannot be started"});
    if (auto confined = confine(order.confinement); !confined) return failed(std::move(confined.error()));
    auto answer = fetch_http(order.request, child_descriptor::first);
    if (!answer)
        return tl::unexpected(
            ChildFailure{{ErrorKind::bad_input, explain(order, answer.error())}, answer.error().retry_after});
    if (order.decisions)
        if (Status read = read_decisions(order); !read) {
            read.error().message =
                fmt::format("{}: {}", displayed_url(order.request.url), read.error().message);
            return failed(std::move(read.error()));
        }
    return write_report(*answer);
}

// --- command
// --------------------------------------------------------------------------------------------------

Result<std::string> run_command(const CommandOrder& order) {
    ::fcntl(child_descriptor::report, F_SETFD, FD_CLOEXEC);
    ::fcntl(child_descriptor::order, F_SETFD, FD_CLOEXEC);
    SIEVE_TRY(confine(order.confinement));
    std::vector<char*> arguments;
    arguments.reserve(order.arguments.size() + 1);
    for (const std::string& argument : order.arguments)
        arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    return bad_input(fmt::format("cannot be started: {}", errno_text(errno)));
}

// --- build
// ----------------------------------------------------------------------------------------------------

// A list's content, and the file that takes what it unpacks to.
struct ListFiles {
    int content;
    int unpacked;
};

constexpr int image_file = child_descriptor::first;
constexpr int exact_file = child_descriptor::first + 1;
constexpr int list_file = child_descriptor::first + 2;

ListFiles files_of(std::size_t list) {
    const int first = child_descriptor::first + 3 + 2 * static_cast<int>(list);
    return {first, first + 1};
}

Status refuse_html(const Input& input, std::string_view begin) {
    if (!looks_like_html(begin)) return {};
    return bad_input(
        fmt::format("{}: found an HTML page, expected a list; look at it in a browser: it may be "
                    "a notice, a login, or the page about the list",
                    input.name()));
}

// The list as text.
Result<Input> open_list(const BuildOrder& order, std::size_t number) {
    const ListFiles files = files_of(number);
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
    SIEVE_ASSIGN(Input input, Input::of(UniqueFd(text), name));
    SIEVE_ASSIGN(const std::string_view begin, input.peek(first_bytes));
    SIEVE_TRY(refuse_html(input, begin));
    return input;
}

Status write_image(Image& image) {
    image.seal();
    const std::span<const sieve_line> lines = image.lines();
    return write_all(image_file, {reinterpret_cast<const char*>(lines.data()), lines.size_bytes()});
}

Result<std::string> pass_image_on(const BuildOrder& order, Input& input) {
    if (order.exact)
        return failure(
            ErrorKind::needs_feed,
            fmt::format("{}: an image cannot list the keys to verify its matches with", input.name()));
    if (!order.feed.chosen.empty())
        return invalid_request(
            fmt::format("{}: an image was built already and takes no option of a feed ({})", input.name(),
                        order.feed.chosen.front()));
    SIEVE_ASSIGN(Image image, Image::load(input));
    SIEVE_TRY(write_image(image));
    return write_report(BuildDone{});
}

Result<std::string> build(const BuildOrder& order) {
    SIEVE_TRY(confine(order.confinement));
    std::vector<Input> inputs;
    inputs.reserve(order.lists.size());
    for (std::size_t i = 0; i < order.lists.size(); i++) {
        SIEVE_ASSIGN(Input input, open_list(order, i));
        inputs.push_back(std::move(input));
        SIEVE_ASSIGN(const bool image, is_image(inputs.back()));
        if (image && order.lists.size() == 1) return pass_image_on(order, inputs.back());
    }
    BuildDone done;
    control::Observer observer;
    observer.remark = [&](const std::string& remark) { done.remarks.push_back(remark); };
    tell_progress("reading the lists");
    SIEVE_ASSIGN(Feed list, control::read_list(inputs, order.feed, observer));
    done.digest = digest_of_list(list);
    done.known = !order.known_digest.empty() && done.digest == order.known_digest;
    if (done.known) return write_report(done);
    if (order.list) SIEVE_TRY(write_list_file(list, list_file));
    std::optional<Feed> kept;
    if (order.exact) kept = list;
    tell_progress("building the filter");
    SIEVE_ASSIGN(BuiltSet built, control::build_list(std::move(list), inputs, order.feed, observer));
    if (kept) {
        SIEVE_ASSIGN(const std::vector<sieve_key> exact,
                     exact_keys(kept->keys, kept->ranges, built.image, inputs.front().name()));
        SIEVE_TRY(write_all(exact_file,
                            {reinterpret_cast<const char*>(exact.data()), exact.size() * sizeof(sieve_key)}));
    }
    SIEVE_TRY(write_image(built.image));
    return write_report(done);
}

// --------------------------------------------------------------------------------------------------------------

tl::expected<std::string, ChildFailure> plainly(Result<std::string> result) {
    if (result) return std::move(*result);
    return tl::unexpected(ChildFailure{std::move(result.error()), {}});
}
tl::expected<std::string, ChildFailure> work(const CommandOrder& order) {
    return plainly(run_command(order));
}
tl::expected<std::string, ChildFailure> work(const BuildOrder& order) {
    return plainly(build(order));
}

tl::expected<std::string, ChildFailure> follow_order() {
    Result<std::string> text = read_whole(child_descriptor::order, longest_order);
    if (!text) return plainly(std::move(text));
    auto order = read_order(*text);
    if (!order) return tl::unexpected(ChildFailure{std::move(order.error()), {}});
    return std::visit([](auto& one) { return work(std::move(one)); }, *order);
}

// Without asking for memory.
void report_shortage() {
    constexpr std::string_view line =
        R"({"failed":{"kind":"out_of_memory","message":"there is not enough memory"}})"
        "\n";
    (void)write_all(child_descriptor::report, line);
}

// oneTBB's workers throw what nobody can catch where a thread cannot be had.
[[noreturn]] void end_without_memory() {
    try {
        if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
    } catch (const std::exception& error) {
        if (is_shortage(error)) {
            report_shortage();
            ::_exit(0);
        }
        // The last words of a child that has a bug.
        (void)write_all(STDERR_FILENO, error.what());
    } catch (...) {
    }
    std::abort();
}

bool was_ordered() {
    return ::fcntl(child_descriptor::order, F_GET_SEALS) > 0 &&
           ::fcntl(child_descriptor::report, F_GETFD) >= 0;
}

} // namespace

std::optional<int> run_as_child(int argc, char** argv) {
    if (argc != 2 || std::string_view(argv[1]) != child_argument) return std::nullopt;
    constexpr int usage = 2;
    if (!was_ordered()) {
        (void)std::fputs("this is for the program's own use\n", stderr);
        return usage;
    }
    ::mallopt(M_ARENA_MAX, most_arenas);
    ::lseek(child_descriptor::order, 0, SEEK_SET);
    std::set_terminate(&end_without_memory);
    try {
        auto done = follow_order();
        say(done ? std::move(*done) : write_report(done.error()));
    } catch (const std::exception& error) {
        if (!is_shortage(error)) throw;
        report_shortage();
    }
    // Static objects and threads of libraries need no orderly end, and the image is written.
    ::_exit(0);
}

} // namespace sieve::service
