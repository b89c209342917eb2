// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieved/daemon_program.hpp"

#include <malloc.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "front-end/completion.hpp"
#include "front-end/console/exit_code.hpp"
#include "front-end/console/output.hpp"
#include "front-end/console/program.hpp"
#include "front-end/console/remedy.hpp"
#include "front-end/with_fleet.hpp"
#include "libsieve/control/real_kernel.hpp"
#include "libsieve/kernel/host/libbpf_log.hpp"
#include "libsieve/service/config/configuration_reader.hpp"
#include "libsieve/service/contact/ban_talk.hpp"
#include "libsieve/service/daemon/daemon.hpp"
#include "libsieve/service/daemon/public_face.hpp"
#include "libsieve/service/live/range_set_configuration.hpp"
#include "libsieve/service/monitor/timed_kernel.hpp"
#include "libsieve/service/reconcile/together.hpp"
#include "libsieve/service/sandbox/child_main.hpp"
#include "libsieve/util/system/descriptor_limit.hpp"
#include "libsieve/util/text/version.hpp"

namespace sieve::cli {

namespace {

struct Options {
    std::string configuration = service::standard_configuration;
    std::string named{}; // the same without --config
    bool check = false;
    std::string log = "auto";
};

// sd-event takes them from here on, on whichever thread they would have come.
void block_signals() {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int signal : {SIGHUP, SIGTERM, SIGINT}) ::sigaddset(&signals, signal);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

// A refresh of a million entries takes blocks of some ten megabytes for a moment.
void give_memory_back() {
    // Each refresh has a thread of its own, and would leave memory behind in an arena of its own.
    ::mallopt(M_ARENA_MAX, 2);
    // Once a block of up to 32 MiB has been freed, glibc takes all of that size from the heap, and keeps up
    // to twice as much there. A fixed threshold turns that off.
    ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
}

// A reload reads the file that the start has read.
Result<std::string> absolute(const std::string& path) {
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::absolute(path, error);
    if (error) return bad_input(fmt::format("{}: {}", path, error.message()));
    return whole.lexically_normal().string();
}

// Why this program follows no fleet.
std::string no_fleet() {
    return fmt::format("xdp-sieved runs without the package {}; install it and restart xdp-sieved",
                       fleet_package);
}

Result<Exit> check(const Options& options, const FleetSupport& support) {
    SIEVE_ASSIGN(service::Configuration configuration,
                 service::load_configuration(options.configuration, service::From::files));
    if (configuration.fleet && support.follow == nullptr)
        return bad_input(fmt::format("{}: [fleet]: {}", options.configuration, no_fleet()));
    for (const service::SetConfiguration& set : configuration.sets)
        if (const auto fault = service::parts_with_its_manifest(set, configuration.state_directory);
            fault && configuration.fleet)
            return bad_input(fmt::format("{}: {}", options.configuration, *fault));
    SIEVE_TRY(service::live::with_range_sets(std::move(configuration)));
    print_out("{} is correct\n", options.configuration);
    return Exit::done;
}

// Follows the fleet of the configuration, if it names one.
class FleetPart {
  public:
    FleetPart(const FleetSupport& support, service::RealHostAddresses& host,
              service::watching::Statistics& statistics, service::Log& log)
        : support_(support), host_(host), statistics_(statistics), log_(log) {}

    // Filtering goes on without the fleet, whatever is wrong with it.
    void follow(const service::Configuration& configuration) {
        if (followed_ == configuration.fleet && (!followed_ || (fleet_ && !fleet_->is_outdated()))) {
            if (fleet_) fleet_->look_again();
            return;
        }
        fleet_.reset();
        host_.depend_on({});
        followed_ = configuration.fleet;
        statistics_.note_fleet(std::nullopt);
        if (!followed_) return;
        if (Status started = start(*followed_, configuration.state_directory + "/fleet"); !started)
            log_.error(fmt::format("fleet {} is not followed: {}", followed_->name, started.error().message));
    }

    void look_again() {
        if (fleet_) fleet_->look_again();
    }

  private:
    Status start(const service::FleetConfiguration& configuration, const std::string& folder) {
        if (support_.follow == nullptr) return bad_input(no_fleet());
        SIEVE_ASSIGN(fleet_, support_.follow(configuration, folder, host_, statistics_, log_));
        return {};
    }

    const FleetSupport& support_;
    service::RealHostAddresses& host_;
    service::watching::Statistics& statistics_;
    service::Log& log_;
    std::optional<service::FleetConfiguration> followed_;
    std::unique_ptr<FleetFollower> fleet_;
};

Result<Exit> serve(const Options& options, const FleetSupport& support, service::Log& log) {
    block_signals();
    kernel::set_verbose(false);
    service::RealHostAddresses host({}, {}, [&log](const std::string& text) { log.warning(text); });
    service::SystemdNotifier notifier;
    SIEVE_ASSIGN(const std::string path, absolute(options.configuration));
    SIEVE_ASSIGN(const service::Configuration configuration,
                 service::load_configuration(path, service::From::files));
    SIEVE_TRY(control::RealKernel().may_load_programs());
    // The server of the page reads the statistics until it ends with the face. The statistics keeps counters
    // in the state directory, so there is none before the claim.
    std::optional<service::watching::Statistics> statistics;
    // Before the state directory: this error says more.
    service::PublicFace face;
    SIEVE_TRY(face.claim(path, configuration, log));
    statistics.emplace(service::watching::Statistics::Settings{
        .version = version, .counters_file = configuration.state_directory + "/counters.json"});
    FleetPart fleet(support, host, *statistics, log);
    service::watching::TimedKernel kernel(*statistics);
    SIEVE_ASSIGN(service::EventLoop loop, service::EventLoop::make());
    const service::DaemonParts parts{.loop = loop,
                                     .kernel = kernel,
                                     .host = host,
                                     .log = log,
                                     .notifier = notifier,
                                     .statistics = *statistics,
                                     .adopted =
                                         [&](const service::Configuration& adopted) {
                                             face.follow(adopted, *statistics, log);
                                             fleet.follow(adopted);
                                         },
                                     .accepted = [&fleet] { fleet.look_again(); },
                                     .told = [&](const std::string& standing) { face.tell(standing, log); },
                                     .trouble_beside = [&face] { return face.trouble(); }};
    SIEVE_ASSIGN(const std::string ban_socket, service::ban_socket_path());
    SIEVE_ASSIGN(const std::unique_ptr<service::Daemon> daemon,
                 service::Daemon::start(parts, {.configuration = path, .ban_socket = ban_socket}));
    log.info(fmt::format("xdp-sieved {} runs with {}", version, path));
    SIEVE_TRY(daemon->run());
    return Exit::done;
}

Exit run(int argc, char** argv, const FleetSupport& support) {
    Options options;
    Program program(
        "xdp-sieved",
        "Keeps a configuration in force: follows lists, interfaces and the configuration itself.\n"
        "Exit codes: 0 stopped as asked, 2 usage, 3 bad configuration, 4 the kernel refused or another "
        "daemon is at work, 5 stopped, but something could not be unloaded.");
    Arguments command = program.arguments();
    const Argument option =
        command.add("--config", options.configuration, "the configuration").called("CONFIG").show_default();
    command.add("CONFIG", options.named, "likewise, as `xdp-sieve apply` takes it").called("");
    command.add_flag("--check", options.check, "only say whether the configuration is correct");
    command.add("--log", options.log, "where to").called("auto|journal|stderr").show_default();
    // What the shells' completion scripts run, as for xdp-sieve.
    if (argc > 1 && std::string_view(argv[1]) == "complete") {
        print_candidates(describe(program.app()), {argv + 2, argv + argc});
        return Exit::done;
    }
    if (const std::optional<Exit> done = program.parse(argc, argv)) return *done;
    if (!options.named.empty()) {
        if (option.given() && options.named != options.configuration) {
            print_error("xdp-sieved: {} and --config {}: expected one configuration\n", options.named,
                        options.configuration);
            return Exit::usage;
        }
        options.configuration = options.named;
    }
    const auto choice = service::parse_log_choice(options.log);
    if (!choice) {
        print_error("xdp-sieved: {}\n", choice.error().message);
        return Exit::usage;
    }
    const std::unique_ptr<service::Log> log = service::make_log(*choice);
    const Result<Exit> result = options.check ? check(options, support) : serve(options, support, *log);
    if (result) return *result;
    if (options.check)
        print_error("xdp-sieved: {}\n", error_text(result.error()));
    else
        log->error(error_text(result.error()));
    return exit_code(result.error().kind);
}

} // namespace

int run_daemon_program(int argc, char** argv, const FleetSupport& support) {
    // The sandbox executes this program anew for each child.
    if (const std::optional<int> status = service::run_as_child(argc, argv, support.tasks)) return *status;
    raise_descriptor_limit();
    give_memory_back();
    return run_main("xdp-sieved", "the lists are", [&] { return run(argc, argv, support); });
}

} // namespace sieve::cli
