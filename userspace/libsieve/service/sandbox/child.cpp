// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/sandbox/child.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>
#include <variant>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "libsieve/service/sandbox/child_messages.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "libsieve/util/system/write_all.hpp"
#include "libsieve/util/text/json_text.hpp"
#include "libsieve/util/text/printable.hpp"

namespace sieve::service {

namespace {

using Clock = std::chrono::steady_clock;

// Enough of standard error to find its last line in.
constexpr std::size_t kept_words = std::size_t{4} << 10;
constexpr char marked_as_child[] = "XDP_SIEVE_CHILD=1"; // child_variable
// More words on one line than this are cut.
constexpr std::size_t longest_words = 200;

tl::unexpected<Error> cannot_start(std::string_view what, int error) {
    return failure(error == ENOMEM ? ErrorKind::out_of_memory : ErrorKind::kernel_refused,
                   fmt::format("no child process: {}: {}", what, errno_text(error)));
}

struct Pipe {
    UniqueFd reading;
    UniqueFd writing;
};

Result<Pipe> make_pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return cannot_start("pipe2", errno);
    Pipe made{UniqueFd(ends[0]), UniqueFd(ends[1])};
    if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return cannot_start("fcntl", errno);
    return made;
}

// What the child reads as its order. A pipe does, if it holds all of it, and has no limit on files.
Result<UniqueFd> order_of(std::string_view content) {
    SIEVE_ASSIGN(Pipe pipe, make_pipe());
    if (::fcntl(pipe.writing.get(), F_SETFL, O_NONBLOCK) == 0 &&
        ::write(pipe.writing.get(), content.data(), content.size()) == static_cast<ssize_t>(content.size()))
        return std::move(pipe.reading);
    UniqueFd file(::memfd_create("sieve-order", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file) return cannot_start("memfd_create", errno);
    if (!write_all(file.get(), content)) return cannot_start("write", errno);
    if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0)
        return cannot_start("fcntl", errno);
    return file;
}

// Between fork and exec of a process that may have threads: system calls only, no memory is asked for.
class Launch {
  public:
    // `open` is what the child finds as descriptors 0, 1, 2 ... Through `report` it says why it cannot begin.
    Launch(std::vector<int> open, int report) : open_(std::move(open)), report_(report) {}

    [[noreturn]] void in_child() {
        ::setsid(); // a process group, which can be ended as a whole
        for (int signal = 1; signal < NSIG; signal++) ::signal(signal, SIG_DFL);
        sigset_t none;
        ::sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        // First out of each other's way, then to their places.
        const int count = static_cast<int>(open_.size());
        for (int& fd : open_)
            if ((fd = ::fcntl(fd, F_DUPFD, count)) < 0) fail("fcntl");
        for (int i = 0; i < count; i++)
            if (::dup2(open_[static_cast<std::size_t>(i)], i) != i) fail("dup2");
        report_ = child_descriptor::report;
        if (::syscall(SYS_close_range, count, std::numeric_limits<unsigned>::max(), 0) != 0)
            fail("close_range");
        if (::chdir("/") != 0) fail("chdir");
        ::execve("/proc/self/exe", const_cast<char**>(arguments_.data()),
                 const_cast<char**>(environment_.data()));
        fail("execve");
    }

  private:
    [[noreturn]] void fail(const char* what) {
        const int error = errno;
        std::array<char, 64> line{};
        char* end = line.data();
        const auto put = [&](std::string_view text) { end = std::ranges::copy(text, end).out; };
        put("{\"unstarted\":\"");
        put(what);
        put("\",\"error\":");
        end = std::to_chars(end, line.data() + line.size(), error).ptr;
        put("}\n");
        (void)!::write(report_, line.data(), static_cast<std::size_t>(end - line.data()));
        ::_exit(127);
    }

    std::vector<int> open_;
    int report_;
    std::array<const char*, 3> arguments_{"xdp-sieve: refresh", child_argument, nullptr};
    std::array<const char*, 4> environment_{
        marked_as_child, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
        nullptr};
};

// Sends SIGKILL to a process of the child, or for a negative number to its group. The child may be another
// user's by now, and this process need not have CAP_KILL: then this thread becomes that user for the call.
// The system calls themselves change one thread; the library's functions would change all.
void end_process(pid_t pid, const ChildOrder& order) {
    if (::kill(pid, SIGKILL) == 0 || errno != EPERM) return;
    const auto understood = read_order(order.message);
    if (!understood) return;
    if (::syscall(SYS_setresuid, -1, understood->confinement.user.uid, -1) != 0) return;
    ::kill(pid, SIGKILL);
    // The real user is still this process's, so this cannot be refused.
    ::syscall(SYS_setresuid, -1, ::getuid(), -1);
}

// One child from its start to its end.
class Child {
  public:
    explicit Child(const ChildOrder& order) : order_(order) {}
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() {
        if (pid_ > 0) reap();
    }

    [[nodiscard]] Status start() {
        // A program that does not call run_as_child() would start itself again and again.
        if (std::getenv(child_variable) != nullptr) // NOLINT(concurrency-mt-unsafe)
            return invalid_request(
                "a child of a refresh starts no refresh: this program's main() does not call "
                "run_as_child() first");
        SIEVE_ASSIGN(const UniqueFd message, order_of(order_.message));
        SIEVE_ASSIGN(Pipe report, make_pipe());
        SIEVE_ASSIGN(Pipe errors, make_pipe());
        SIEVE_ASSIGN(Pipe output, make_pipe());
        const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
        if (!null) return cannot_start("/dev/null", errno);
        // A list may come through it, and its writer should not wait for each few keys.
        if (order_.output) ::fcntl(output.writing.get(), F_SETPIPE_SZ, 1 << 20);
        const int standard_output = order_.output ? output.writing.get() : null.get();
        std::vector<int> open{null.get(), standard_output, errors.writing.get(), message.get(),
                              report.writing.get()};
        open.insert(open.end(), order_.descriptors.begin(), order_.descriptors.end());
        Launch launch(std::move(open), report.writing.get());

        // A handler of ours must not run in the child.
        sigset_t all;
        sigset_t before;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before);
        pid_ = ::fork();
        const int error = errno;
        if (pid_ == 0) launch.in_child();
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        if (pid_ < 0) return cannot_start("fork", error);
        ended_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
        if (!ended_) return cannot_start("pidfd_open", errno);
        report_ = std::move(report.reading);
        errors_ = std::move(errors.reading);
        if (order_.output) output_ = std::move(output.reading);
        return {};
    }

    // Until it has ended, or must be. Error: it could not begin.
    [[nodiscard]] Result<ChildEnd> listen() {
        const Clock::time_point deadline = Clock::now() + order_.time_limit;
        if (order_.started) order_.started(order_.role, pid_);
        bool over = false;
        while (!over && !given_up_) {
            auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
            if (order_.time_limit.count() == 0) {
                left = -1;
            } else if (left <= 0) {
                read_pipes(); // what it was at
                give_up(ChildEnd::Way::time_limit);
                break;
            }
            std::array<pollfd, 5> waiting{{{ended_.get(), POLLIN, 0},
                                           {report_.get(), POLLIN, 0},
                                           {errors_.get(), POLLIN, 0},
                                           {output_.get(), POLLIN, 0},
                                           {order_.cancel, POLLIN, 0}}};
            const int most = std::numeric_limits<int>::max();
            const int ready =
                ::poll(waiting.data(), waiting.size(), static_cast<int>(std::min<long>(left, most)));
            if (ready < 0) continue; // a signal
            over = waiting[0].revents != 0;
            // What was there when it ended is read below.
            if (!over) read_pipes();
            if (waiting[4].revents != 0) give_up(ChildEnd::Way::cancelled);
        }
        // Its processes with it; then nothing more is written.
        end_process(-pid_, order_);
        if (!given_up_) read_pipes();
        ChildEnd end = finish();
        SIEVE_TRY(unstarted_);
        return end;
    }

  private:
    void give_up(ChildEnd::Way way, int number = 0) {
        if (given_up_) return;
        given_up_ = true;
        end_.way = way;
        end_.number = number;
    }

    void read_pipes() {
        read_pipe(report_, [this](std::string_view bytes) { take_report(bytes); });
        read_pipe(errors_, [this](std::string_view bytes) { take_words(bytes); });
        read_pipe(output_, [this](std::string_view bytes) { take_output(bytes); });
    }
    // Takes all that is there.
    template <class Take>
    void read_pipe(UniqueFd& pipe, Take take) {
        std::array<char, 65536> buffer;
        while (pipe && !given_up_) {
            const ssize_t got = ::read(pipe.get(), buffer.data(), buffer.size());
            if (got < 0 && errno == EINTR) continue;
            if (got < 0 && errno == EAGAIN) return;
            if (got <= 0) {
                pipe = UniqueFd();
                return;
            }
            take(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
        }
    }
    void take_report(std::string_view bytes) {
        reported_ += bytes.size();
        if (reported_ > longest_report + order_.descriptors.size() * longest_report_of_one)
            return give_up(ChildEnd::Way::report_limit);
        line_ += bytes;
        for (std::size_t end = 0; (end = line_.find('\n')) != std::string::npos; line_.erase(0, end + 1)) {
            const std::string line = line_.substr(0, end);
            const nlohmann::json json = parse_json(line);
            if (json.is_object() && json.contains("at") && json["at"].is_string())
                end_.at = printable(json["at"].get<std::string>(), longest_words);
            else if (json.is_object() && json.contains("share"))
                tell_share(json);
            else if (json.is_object() && json.contains("unstarted"))
                note_unstarted(json);
            else
                end_.report = line;
        }
        if (line_.size() > longest_report) give_up(ChildEnd::Way::report_limit);
    }
    void note_unstarted(const nlohmann::json& json) {
        if (!json["unstarted"].is_string() || !json.contains("error") || !json["error"].is_number_integer())
            return;
        unstarted_ = cannot_start(printable(json["unstarted"].get<std::string>(), longest_words),
                                  json["error"].get<int>());
    }
    void tell_share(const nlohmann::json& json) const {
        if (!order_.progress || !json["share"].is_number() || !json.contains("stage") ||
            !json["stage"].is_string())
            return;
        constexpr std::size_t longest_stage = 14; // what a progress bar has room for
        order_.progress(printable(json["stage"].get<std::string>(), longest_stage),
                        std::clamp(json["share"].get<double>(), 0.0, 1.0));
    }
    void take_words(std::string_view bytes) {
        words_ += bytes;
        if (words_.size() > kept_words) words_.erase(0, words_.size() - kept_words);
    }
    void take_output(std::string_view bytes) {
        end_.printed += bytes.size();
        if (end_.printed > order_.output_limit) return give_up(ChildEnd::Way::output_limit);
        if (const int error = order_.output(bytes); error != 0) give_up(ChildEnd::Way::output_error, error);
    }

    // Ends what is left of the child; its wait status.
    int reap() {
        end_process(-pid_, order_);
        end_process(pid_, order_); // it may not lead a group yet
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        pid_ = -1;
        return status;
    }
    ChildEnd finish() {
        const int status = reap();
        if (!given_up_) {
            end_.way = WIFSIGNALED(status) ? ChildEnd::Way::signalled : ChildEnd::Way::exited;
            end_.number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
        }
        while (!words_.empty() && (words_.back() == '\n' || words_.back() == '\r')) words_.pop_back();
        end_.last_words = printable(std::string_view(words_).substr(words_.rfind('\n') + 1), longest_words);
        return std::move(end_);
    }

    const ChildOrder& order_;
    pid_t pid_ = -1;
    UniqueFd ended_;
    UniqueFd report_;
    UniqueFd errors_;
    UniqueFd output_;
    std::size_t reported_ = 0;
    std::string line_;
    std::string words_;
    bool given_up_ = false;
    Status unstarted_;
    ChildEnd end_;
};

std::string describe_signal(int signal, const SandboxLimits& limits) {
    switch (signal) {
    case SIGXCPU:
        return fmt::format("used more than {} s of processor time and was ended", limits.processor.count());
    case SIGXFSZ:
        return "wrote more than its limit and was ended";
    case SIGSYS:
        return "was ended because it made a system call that it has no business with";
    default:
        const char* name = ::sigabbrev_np(signal);
        return fmt::format("was ended by signal {} (SIG{})", signal, name != nullptr ? name : "?");
    }
}

} // namespace

Result<ChildEnd> run_child(const ChildOrder& order) {
    Child child(order);
    SIEVE_TRY(child.start());
    return child.listen();
}

std::string describe(const ChildEnd& end, const ChildOrder& order, const SandboxLimits& limits) {
    std::string text;
    switch (end.way) {
    case ChildEnd::Way::exited:
        text = fmt::format("ended with status {}", end.number);
        break;
    case ChildEnd::Way::signalled:
        text = describe_signal(end.number, limits);
        break;
    case ChildEnd::Way::time_limit:
        text = fmt::format("took longer than {:g} s and was ended",
                           static_cast<double>(order.time_limit.count()) / 1000);
        break;
    case ChildEnd::Way::output_limit:
        text = fmt::format("printed more than {} bytes, the limit, and was ended", order.output_limit);
        break;
    case ChildEnd::Way::report_limit:
        text = "reported more than it may and was ended";
        break;
    case ChildEnd::Way::output_error:
        text = fmt::format("printed what cannot be kept: {}", errno_text(end.number));
        break;
    case ChildEnd::Way::cancelled:
        text = "was ended because the refresh was called off";
        break;
    }
    if (!end.at.empty()) text += fmt::format(" while {}", end.at);
    if (!end.last_words.empty()) text += fmt::format(" ({})", end.last_words);
    return text;
}

} // namespace sieve::service
