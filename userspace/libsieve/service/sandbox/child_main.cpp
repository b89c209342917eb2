// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sandbox/child_main.hpp"

#include <curl/curl.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include <fmt/core.h>

#include "libsieve/service/download/url.hpp"
#include "libsieve/service/lists/decision_file.hpp"
#include "libsieve/service/lists/decisions.hpp"
#include "libsieve/service/sandbox/child.hpp"
#include "libsieve/service/sandbox/child_messages.hpp"
#include "libsieve/service/sandbox/child_work.hpp"
#include "libsieve/util/files/secret_file.hpp"
#include "libsieve/util/results/out_of_memory.hpp"
#include "libsieve/util/system/libarchive_on_demand.hpp"
#include "libsieve/util/system/write_all.hpp"

namespace sieve::service {

namespace {

// malloc reserves 64 MiB of addresses for each of its arenas, which the limit on addresses counts.
constexpr int most_arenas = 4;
// What is read whole.
constexpr std::size_t longest_order = std::size_t{16} << 20;

void say(std::string line) {
    line += '\n';
    // A parent that does not listen any more has ended, or ends this child.
    (void)write_all(child_descriptor::report, line);
}

void tell_progress(const std::string& at) {
    say(write_progress(at));
}

// Tells the parent about each whole percent. What a child may report is limited, so this is, too.
class Shares {
  public:
    void tell(std::string_view stage, double share) {
        constexpr int most_told = 400; // of at most 80 bytes
        const int percent = static_cast<int>(share * 100);
        if (told_ == most_told || (percent == percent_ && stage == stage_)) return;
        told_++;
        percent_ = percent;
        stage_ = stage;
        say(write_share(stage, share));
    }

  private:
    int told_ = 0;
    int percent_ = -1;
    std::string stage_;
};

Progress tell_shares() {
    return [shares = std::make_shared<Shares>()](std::string_view stage, double share) {
        shares->tell(stage, share);
    };
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

// What the servers get from us, while the child may still read it.
Result<Credentials> credentials_of(const FetchOrder& order) {
    SIEVE_ASSIGN(Credentials credentials, read_credentials(order.request.access));
    if (order.key_file.empty()) return credentials;
    SIEVE_ASSIGN(
        const std::string key,
        read_secret_line(order.key_file, "a key in one line, as `cscli bouncers add NAME` prints it"));
    credentials.headers.push_back("X-Api-Key: " + key);
    return credentials;
}

// At most twice a second, and as long as a report may be.
Progress tell_download() {
    using Clock = std::chrono::steady_clock;
    return [last = Clock::now(), told = 0](std::string_view stage, double share) mutable {
        constexpr int most_told = 600; // of at most 80 bytes
        if (told == most_told || Clock::now() - last < std::chrono::milliseconds(500)) return;
        last = Clock::now();
        told++;
        say(write_share(stage, share));
    };
}

// The body that was downloaded, as decisions.
Status read_decisions(const FetchOrder& order) {
    constexpr int body = child_descriptor::first;
    if (::lseek(body, 0, SEEK_SET) != 0) return bad_input(errno_text(errno));
    SIEVE_ASSIGN(const std::string text, read_whole(body, order.request.limits.source_bytes));
    SIEVE_ASSIGN(const live::Decisions decisions,
                 live::parse_decisions(text, order.decisions->filter,
                                       live::Time(std::chrono::milliseconds(order.decisions->now))));
    return live::write_decision_file(decisions, body + 1);
}

// What the API means by its refusal.
std::string explain(const FetchOrder& order, const HttpFailure& failure) {
    constexpr long forbidden = 403;
    constexpr long not_found = 404;
    const bool tells = !order.request.post.empty();
    if (!order.decisions && !tells) return failure.message;
    if (failure.status == forbidden)
        return failure.message + (order.key_file.empty()
                                      ? ": it does not take the client certificate"
                                      : ": it does not know the key; `cscli bouncers add NAME` makes one");
    if (failure.status == not_found && tells)
        return failure.message + ": CrowdSec takes usage metrics from version 1.6.3 on";
    return failure.message;
}

using Outcome = tl::expected<std::string, GatherFailure>; // a report

Status start_libcurl() { // reads the configuration of the TLS library
    if (::curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) return {};
    return failure(ErrorKind::out_of_memory, "libcurl cannot be started");
}

Outcome work(const FetchOrder& order, const Confinement& confinement) {
    const auto named = [&](Error error) {
        error.message = fmt::format("{}: {}", displayed_url(order.request.url), error.message);
        return tl::unexpected(std::move(error));
    };
    const Result<Credentials> credentials = credentials_of(order);
    if (!credentials) return named(credentials.error());
    SIEVE_TRY(start_libcurl());
    SIEVE_TRY(confine(confinement));
    auto answer = fetch_http(order.request, *credentials, child_descriptor::first, tell_download());
    if (!answer)
        return tl::unexpected(GatherFailure({ErrorKind::bad_input, explain(order, answer.error()), {}},
                                            answer.error().retry_after));
    if (order.decisions)
        if (const Status read = read_decisions(order); !read) return named(read.error());
    return write_report(*answer);
}

// --- command
// --------------------------------------------------------------------------------------------------

Outcome work(const CommandOrder& order, const Confinement& confinement) {
    ::fcntl(child_descriptor::report, F_SETFD, FD_CLOEXEC);
    ::fcntl(child_descriptor::order, F_SETFD, FD_CLOEXEC);
    SIEVE_TRY(confine(confinement));
    std::vector<char*> arguments;
    arguments.reserve(order.arguments.size() + 1);
    for (const std::string& argument : order.arguments)
        arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    return bad_input(fmt::format("cannot be started: {}", errno_text(errno)));
}

// --- lists
// ----------------------------------------------------------------------------------------------------

// The descriptors that the parent gave to the child.
std::vector<int> descriptors(std::size_t count) {
    std::vector<int> all(count);
    std::iota(all.begin(), all.end(), child_descriptor::first);
    return all;
}
// A list may be packed, and a confined child opens nothing. Without the library, such a list ends the child.
void expect_packed_lists() {
    static_cast<void>(libarchive.open());
}

Outcome work(const ListOrder& order, const Confinement& confinement) {
    expect_packed_lists();
    SIEVE_TRY(confine(confinement));
    SIEVE_ASSIGN(const ListDone done,
                 stream_lists(order, descriptors(order.inputs.size()), STDOUT_FILENO, tell_shares()));
    return write_report(done);
}
Outcome work(const ReadOrder& order, const Confinement& confinement) {
    expect_packed_lists();
    SIEVE_TRY(confine(confinement));
    SIEVE_ASSIGN(const ReadDone done, read_lists(order, descriptors(read_descriptors + order.lists.size()),
                                                 &tell_progress, tell_shares()));
    return write_report(done);
}
Outcome work(const BuildOrder& order, const Confinement& confinement) {
    SIEVE_TRY(confine(confinement));
    SIEVE_ASSIGN(const WorkDone done,
                 build_filter(order, descriptors(build_descriptors), &tell_progress, tell_shares()));
    return write_report(done);
}
Outcome work(const JoinOrder& order, const Confinement& confinement) {
    SIEVE_TRY(confine(confinement));
    SIEVE_ASSIGN(const WorkDone done,
                 join_lists(order, descriptors(join_descriptors + order.task.sets.size()), &tell_progress,
                            tell_shares()));
    return write_report(done);
}

Outcome work_at(const TaskOrder& order, const Confinement& confinement, std::span<const ChildTask> tasks) {
    const auto task =
        std::ranges::find_if(tasks, [&](const ChildTask& one) { return order.task == one.name; });
    if (task == tasks.end()) return bad_input("a task that this program does not have");
    SIEVE_TRY(start_libcurl());
    SIEVE_TRY(confine(confinement));
    SIEVE_TRY(task->work(order.message));
    return write_report(WorkDone{});
}

Outcome follow_order(std::span<const ChildTask> tasks) {
    SIEVE_ASSIGN(const std::string text, read_whole(child_descriptor::order, longest_order));
    SIEVE_ASSIGN(const ConfinedOrder confined, read_order(text));
    return std::visit(
        [&](const auto& one) {
            if constexpr (std::is_same_v<std::decay_t<decltype(one)>, TaskOrder>)
                return work_at(one, confined.confinement, tasks);
            else
                return work(one, confined.confinement);
        },
        confined.order);
}

// Without asking for memory.
void report_out_of_memory() {
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
        if (is_out_of_memory(error)) {
            report_out_of_memory();
            ::_exit(0);
        }
        // The last words of a child that has a bug.
        (void)write_all(STDERR_FILENO, error.what());
    } catch (...) {
    }
    std::abort();
}

bool was_ordered() {
    const bool has_order = ::fcntl(child_descriptor::order, F_GETPIPE_SZ) > 0 ||
                           ::fcntl(child_descriptor::order, F_GET_SEALS) > 0;
    return has_order && ::fcntl(child_descriptor::report, F_GETFD) >= 0;
}

} // namespace

std::optional<int> run_as_child(int argc, char** argv, std::span<const ChildTask> tasks) {
    if (argc != 2 || std::string_view(argv[1]) != child_argument) return std::nullopt;
    constexpr int usage = 2;
    if (!was_ordered()) {
        (void)std::fputs("this is for the program's own use\n", stderr);
        return usage;
    }
    ::unsetenv(child_variable); // NOLINT(concurrency-mt-unsafe): there is one thread
    ::mallopt(M_ARENA_MAX, most_arenas);
    ::lseek(child_descriptor::order, 0, SEEK_SET);
    std::set_terminate(&end_without_memory);
    try {
        auto done = follow_order(tasks);
        say(done ? std::move(*done) : write_failure(done.error()));
    } catch (const std::exception& error) {
        if (!is_out_of_memory(error)) throw;
        report_out_of_memory();
    }
    // Static objects and threads of libraries need no orderly end, and the image is written.
    ::_exit(0);
}

} // namespace sieve::service
