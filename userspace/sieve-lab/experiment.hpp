// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// An experiment reproduces a table or figure of a paper and compares it with the printed one. Or it is an
// attack, compared with what the filter promises.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sieve-lab/simulations/statistics.hpp"
#include "sieve-lab/simulations/trials.hpp"

namespace sieve::lab {

/// How one of our numbers compares with the printed one.
enum class Verdict {
    agrees,    ///< within three standard errors and the rounding of the print
    explained, ///< not so, and the row says why
    differs,   ///< not so, and nobody knows why: the experiment has failed
    ours       ///< nothing was printed to compare with
};

/// A number that is further than this many standard errors beyond the rounding of the print does not agree.
inline constexpr double most_sigmas = 3;

/// One number of a table.
struct Row {
    std::string quantity{};
    std::string published{}; ///< as printed; empty if the paper has no such number
    double ours = 0;
    double standard_error = 0; ///< of ours; 0 for a formula
    double sigma = 0;          ///< distance beyond the rounding, in standard errors of the difference
    Verdict verdict = Verdict::ours;
    std::string explanation{};
};

/// A statement that a paper makes about a figure, and what we see.
struct Claim {
    std::string statement{};
    std::string observed{};
    bool holds = false;
    std::string explanation{}; ///< needed if it does not hold
};

struct Point {
    double x = 0;
    double y = 0;
    double error = 0; ///< standard error of y; 0 if it is exact
};

/// One curve of a figure: a line for formulas, points for simulations.
struct Curve {
    std::string name{};
    bool line = true;
    std::vector<Point> points{};
};

struct Plot {
    std::string name{}; ///< of the file, without its ending
    std::string title{};
    std::string x_label{};
    std::string y_label{};
    bool x_log = false;
    bool y_log = false;
    std::vector<Curve> curves{};
};

/// The results of a run. They hold nothing about the machine or the run's duration, so equal runs give equal
/// results.
struct Outcome {
    std::string name{};
    std::uint64_t trials = 0; ///< 0 if nothing was drawn at random
    std::uint64_t full_trials = 0;
    std::uint64_t seed = 0;
    std::vector<Row> rows{};
    std::vector<Claim> claims{};
    std::vector<Plot> plots{};
    std::vector<std::string> notes{}; ///< paragraphs
};

/// True if no row differs and every claim holds or has an explanation.
bool stands(const Outcome& outcome);

/// What an experiment is about, and so the page of docs/ that shows it.
enum class Subject {
    papers, ///< reproduction.md
    attacks ///< attacks.md
};

struct Experiment {
    std::string name{};
    std::string title{};
    std::string source{};          ///< paper and place in it
    std::uint64_t trials = 0;      ///< by default: two minutes at most on two cores; 0 if there are none
    std::uint64_t full_trials = 0; ///< the paper's number
    std::function<Outcome(const experiments::TrialPlan&)> run{};
    Subject subject = Subject::papers;
};

/// All experiments, in the order of the papers.
const std::vector<Experiment>& all_experiments();

/// Runs one experiment with its default number of trials, the paper's number, or `trials`.
Outcome run(const Experiment& experiment, std::optional<std::uint64_t> trials, bool full,
            experiments::TrialPlan plan);

// Rows. An explanation is given for numbers that are known to disagree; it is kept even if they should agree.

/// A formula's value beside a printed one.
Row computed(std::string quantity, std::string_view published, double ours, std::string explanation = {});

/// A simulation's mean beside a mean printed by a paper that made `published_trials` trials: its standard
/// error is taken from our spread. 0 trials: the printed number is exact.
Row measured(std::string quantity, std::string_view published, const experiments::Moments& ours,
             std::uint64_t published_trials, std::string explanation = {});

/// As before, with the standard errors known otherwise.
Row measured(std::string quantity, std::string_view published, double ours, double standard_error,
             double published_error, std::string explanation = {});

/// A number of ours that no paper prints.
Row only_ours(std::string quantity, double ours, double standard_error = 0, std::string explanation = {});

// The experiments of each paper; all_experiments() strings them together.
std::vector<Experiment> two_choice_experiments();
std::vector<Experiment> less_hashing_experiments();
std::vector<Experiment> bloom_analysis_experiments();
std::vector<Experiment> d_left_experiments();
std::vector<Experiment> one_plus_alpha_experiments();

// Kinds that none of the papers has.
std::vector<Experiment> xorsat_experiments();
std::vector<Experiment> exact_experiments();

// Attacks on the product's own filters.
std::vector<Experiment> security_experiments();

} // namespace sieve::lab
