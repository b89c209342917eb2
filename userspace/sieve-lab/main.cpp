// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// sieve-lab: reproduces the papers' tables and figures and compares them with the printed ones.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "front-end/console/exit_code.hpp"
#include "libsieve/util/results/result.hpp"
#include "libsieve/util/text/version.hpp"
#include "sieve-lab/experiment.hpp"
#include "sieve-lab/report.hpp"

namespace sieve::lab {
namespace {

constexpr std::uint64_t default_seed = 20060915; // any; the year in which most of the papers were written

struct Arguments {
    bool json = false;
    bool csv = false;
    bool full = false;
    bool quiet = false;
    std::optional<std::uint64_t> trials;
    std::uint64_t seed = default_seed;
    unsigned threads = 0;
    std::vector<std::string> names;
    std::filesystem::path output;
    std::filesystem::path results = "docs/results";
    std::filesystem::path docs = "docs";
    std::filesystem::path scripts = "build/figures";
};

/// "experiment: stage  [#####     ]  50%" on standard error, if that is a terminal.
Progress progress_bar(const Arguments& arguments, const std::string& name) {
    if (arguments.quiet || isatty(STDERR_FILENO) == 0) return {};
    using Clock = std::chrono::steady_clock;
    return [name, start = Clock::now(), last = Clock::time_point{}](std::string_view stage,
                                                                    double share) mutable {
        using namespace std::chrono_literals;
        const auto now = Clock::now();
        if (now - start < 1s || now - last < 100ms) return;
        last = now;
        constexpr int width = 30;
        fmt::print(stderr, "\r\033[K{}: {} [{:<{}}] {:3.0f}%", name, stage,
                   std::string(static_cast<std::size_t>(share * width), '#'), width, share * 100);
        std::fflush(stderr);
    };
}

void clear_bar(const Arguments& arguments) {
    if (!arguments.quiet && isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);
}

Outcome run_one(const Experiment& experiment, const Arguments& arguments) {
    const Outcome outcome = run(experiment, arguments.trials, arguments.full,
                                {.seed = arguments.seed,
                                 .threads = arguments.threads,
                                 .progress = progress_bar(arguments, experiment.name)});
    clear_bar(arguments);
    return outcome;
}

Status write_file(const std::filesystem::path& path, const std::string& text) {
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    std::ofstream file(path, std::ios::binary);
    if (!(file << text) || !file.flush())
        return bad_input(fmt::format("{}: cannot be written: {}", path.string(), errno_text(errno)));
    return {};
}

Result<std::vector<const Experiment*>> chosen(const std::vector<std::string>& names) {
    std::vector<const Experiment*> list;
    for (const auto& name : names) {
        const std::size_t before = list.size();
        for (const auto& experiment : all_experiments())
            if (name == "all" || name == experiment.name) list.push_back(&experiment);
        if (list.size() == before)
            return invalid_request(
                fmt::format("{}: no such experiment; `sieve-lab list` names all of them", name));
    }
    return list;
}

Result<Exit> run_list(const Arguments& arguments) {
    if (arguments.json) {
        nlohmann::json list = nlohmann::json::array();
        for (const auto& e : all_experiments())
            list.push_back({{"name", e.name},
                            {"title", e.title},
                            {"source", e.source},
                            {"trials", e.trials},
                            {"full_trials", e.full_trials}});
        fmt::print("{}\n", list.dump(2));
        return Exit::done;
    }
    for (const auto& e : all_experiments()) {
        fmt::print("{:<24} {}; {}", e.name, e.title, e.source);
        if (e.trials > 0) fmt::print("; {} trials, --full {}", e.trials, e.full_trials);
        fmt::print("\n");
    }
    return Exit::done;
}

Result<Exit> run_run(const Arguments& arguments) {
    SIEVE_ASSIGN(const auto experiments, chosen(arguments.names));
    if (arguments.csv) fmt::print("{}", csv_header());
    nlohmann::json all = nlohmann::json::array();
    bool fine = true;
    for (const Experiment* experiment : experiments) {
        const auto start = std::chrono::steady_clock::now();
        const Outcome outcome = run_one(*experiment, arguments);
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        fine = fine && stands(outcome);
        if (!arguments.output.empty()) {
            SIEVE_TRY(
                write_file(arguments.output / (experiment->name + ".json"), to_json(outcome).dump(1) + "\n"));
        }
        if (arguments.json)
            all.push_back(to_json(outcome));
        else if (arguments.csv)
            fmt::print("{}", to_csv(outcome));
        else if (arguments.output.empty())
            fmt::print("{}{:.1f} s\n\n", to_table(*experiment, outcome), seconds);
        else
            fmt::print("{:<24} {:>8.1f} s  {}\n", experiment->name, seconds,
                       stands(outcome) ? "stands" : "DIFFERS");
        std::fflush(stdout);
    }
    // One experiment is one object, several are a list.
    if (arguments.json) fmt::print("{}\n", (all.size() == 1 ? all[0] : all).dump(2));
    return fine ? Exit::done : Exit::no;
}

/// The stored outcome of an experiment, or that of a new run with the default number of trials.
Result<Outcome> stored_or_run(const Experiment& experiment, const Arguments& arguments) {
    const auto path = arguments.results / (experiment.name + ".json");
    if (!std::filesystem::exists(path)) {
        if (!arguments.quiet)
            fmt::print(stderr, "sieve-lab: {}: no stored result, running it\n", experiment.name);
        return run_one(experiment, arguments);
    }
    std::ifstream file(path, std::ios::binary);
    const auto json = nlohmann::json::parse(file, nullptr, false);
    if (json.is_discarded()) return bad_input(fmt::format("{}: not JSON", path.string()));
    auto outcome = from_json(json);
    if (!outcome) return bad_input(fmt::format("{}: {}", path.string(), outcome.error().message));
    if (outcome->name != experiment.name)
        return bad_input(fmt::format("{}: the result of {}", path.string(), outcome->name));
    return outcome;
}

Result<Exit> run_report(const Arguments& arguments) {
    std::vector<std::pair<const Experiment*, Outcome>> all;
    for (const auto& experiment : all_experiments()) {
        SIEVE_ASSIGN(Outcome outcome, stored_or_run(experiment, arguments));
        all.emplace_back(&experiment, std::move(outcome));
    }
    SIEVE_TRY(write_file(arguments.docs / "reproduction.md", to_markdown(Subject::papers, all)));
    SIEVE_TRY(write_file(arguments.docs / "attacks.md", to_markdown(Subject::attacks, all)));
    for (const auto& [experiment, outcome] : all)
        for (const auto& plot : outcome.plots) {
            const auto svg = arguments.docs / "figures" / (plot.name + ".svg");
            SIEVE_TRY(write_file(arguments.scripts / (plot.name + ".gp"), to_gnuplot(plot, svg.string())));
        }
    return Exit::done;
}

int main_of(int argc, char** argv) {
    Arguments arguments;
    Exit exit = Exit::done;
    CLI::App app{"Makes the papers' tables and figures anew, beside what was printed.\n"
                 "Exit codes: 0 all agree or are explained, 1 something differs, 2 usage, 3 bad input."};
    app.name("sieve-lab");
    app.set_version_flag("--version", std::string("sieve-lab ") + version);
    app.require_subcommand(1);
    const auto add = [&](const char* name, const char* what, auto action) {
        CLI::App* command = app.add_subcommand(name, what);
        command->callback([&, action] {
            const Result<Exit> result = action(arguments);
            exit = result ? *result : exit_code(result.error().kind);
            if (!result) fmt::print(stderr, "sieve-lab: {}\n", result.error().message);
        });
        return command;
    };
    const auto add_run_options = [&](CLI::App* command) {
        command->add_option("--seed", arguments.seed, "of all random numbers")->capture_default_str();
        command->add_option("--threads", arguments.threads,
                            "threads; as many as processors if not given. The results do not depend on it");
        command->add_flag("-q,--quiet", arguments.quiet, "no progress bar");
    };

    CLI::App* list = add("list", "name all experiments", run_list);
    list->add_flag("--json", arguments.json, "print JSON, for machines");

    CLI::App* run = add("run", "run experiments", run_run);
    add_run_options(run);
    auto* trials =
        run->add_option("--trials", arguments.trials, "number of trials")->check(CLI::PositiveNumber);
    run->add_flag("--full", arguments.full, "as many trials as the paper made")->excludes(trials);
    auto* json = run->add_flag("--json", arguments.json, "print JSON, for machines");
    run->add_flag("--csv", arguments.csv, "print CSV, points of figures included")->excludes(json);
    run->add_option("-o,--output", arguments.output, "write NAME.json into this directory, too");
    run->add_option("NAME", arguments.names, "experiments, or all")->required();

    CLI::App* report = add(
        "report", "write docs/reproduction.md, docs/attacks.md and the plots' gnuplot programs", run_report);
    add_run_options(report);
    report->add_option("--results", arguments.results, "directory of stored results")->capture_default_str();
    report->add_option("--docs", arguments.docs, "directory to write the pages into")->capture_default_str();
    report->add_option("--scripts", arguments.scripts, "directory to write the gnuplot programs into")
        ->capture_default_str();

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        // CLI11 prints help and versions as "errors" of code 0; all others are usage.
        return app.exit(error) == 0 ? 0 : static_cast<int>(Exit::usage);
    }
    if (std::fflush(stdout) != 0) {
        fmt::print(stderr, "sieve-lab: standard output could not be written\n");
        return static_cast<int>(Exit::bad_input);
    }
    return static_cast<int>(exit);
}

} // namespace
} // namespace sieve::lab

int main(int argc, char** argv) try {
    return sieve::lab::main_of(argc, argv);
} catch (const std::exception& error) {
    fmt::print(stderr, "sieve-lab: internal error, please report it: {}\n", error.what());
    return static_cast<int>(sieve::Exit::kernel_refused);
}
