// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// sieve-lab's results from measurements: verdicts, files, and reading them back.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "sieve-lab/experiment.hpp"
#include "sieve-lab/report.hpp"
#include "unit/messages.hpp"

namespace sieve::lab {
namespace {

using experiments::Moments;

/// `count` samples with that mean and deviation.
Moments samples(double mean, double deviation, unsigned count) {
    Moments moments;
    const double away = deviation * std::sqrt((count - 1.0) / count);
    for (unsigned i = 0; i < count; ++i) moments.add(mean + (i % 2 == 0 ? away : -away));
    return moments;
}

TEST(LabRow, MeasuresInErrorsOfTheDifferenceOfTwoMeans) {
    // Ours: deviation 10 in 100 trials, error 1. The paper's: the same deviation in 400 trials, error 0.5.
    const Moments ours = samples(103, 10, 100);
    ASSERT_NEAR(ours.standard_error(), 1, 1e-12);
    const double expected = (103 - 100.5) / std::hypot(1, 0.5); // beyond the rounding of "100"
    EXPECT_NEAR(measured("x", "100", ours, 400).sigma, expected, 1e-9);
    EXPECT_NEAR(measured("x", "100", ours, 0).sigma, 2.5, 1e-9); // the print is exact
    EXPECT_NEAR(measured("x", "100.0", ours, 0).sigma, 2.95, 1e-9);
    EXPECT_NEAR(measured("x", "106", ours, 0).sigma, -2.5, 1e-9);
    EXPECT_NEAR(measured("x", "100", ours, 400).standard_error, 1, 1e-12); // of ours alone
}

TEST(LabRow, AgreesUpToThreeSigmaAndNotBeyond) {
    EXPECT_EQ(measured("x", "100", 103.4, 1, 0).verdict, Verdict::agrees);  // 2.9
    EXPECT_EQ(measured("x", "100", 103.6, 1, 0).verdict, Verdict::differs); // 3.1
    EXPECT_EQ(measured("x", "100", 96.6, 1, 0).verdict, Verdict::agrees);   // -2.9
    EXPECT_EQ(measured("x", "100", 96.4, 1, 0).verdict, Verdict::differs);  // -3.1
    EXPECT_EQ(measured("x", "100", 96.4, 1, 0, "why").verdict, Verdict::explained);
    EXPECT_EQ(measured("x", "100", 96.6, 1, 0, "why").verdict, Verdict::agrees); // nothing to explain
}

TEST(LabRow, ComputedMustRoundToThePrint) {
    EXPECT_EQ(computed("x", "0.5296", 0.529649).verdict, Verdict::agrees);
    EXPECT_EQ(computed("x", "0.5296", 0.529651).verdict, Verdict::differs);
    EXPECT_EQ(computed("x", "0.0008937...", 0.00089379).verdict, Verdict::agrees);
    EXPECT_EQ(computed("x", "0.0008937...", 0.00089381).verdict, Verdict::differs);
    EXPECT_EQ(only_ours("x", 1).verdict, Verdict::ours);
}

Outcome sample_outcome() {
    Outcome outcome{.name = "sample", .trials = 10, .full_trials = 100, .seed = 3};
    outcome.rows = {measured("a, \"quoted\" | quantity", "100", 101, 0.5, 0),
                    computed("b", "2.0", 3.0, "misprint"), only_ours("c", 1e-9, 1e-11, "remark")};
    outcome.claims = {{"it holds", "seen", true, ""}, {"it does not", "not seen", false, "because"}};
    outcome.plots = {{.name = "figure",
                      .title = "a \"title\"",
                      .x_label = "x",
                      .y_label = "y",
                      .y_log = true,
                      .curves = {{.name = "line", .line = true, .points = {{1, 0.5, 0}, {2, 0, 0}}},
                                 {.name = "dots", .line = false, .points = {{1, 0.25, 0.125}}}}}};
    outcome.notes = {"a note"};
    return outcome;
}

TEST(LabOutcome, StandsIfEverythingAgreesOrIsExplained) {
    Outcome outcome = sample_outcome();
    EXPECT_TRUE(stands(outcome));
    outcome.rows.push_back(computed("d", "2.0", 3.0));
    EXPECT_FALSE(stands(outcome));
    outcome = sample_outcome();
    outcome.claims.push_back({"nor this", "not seen", false, ""});
    EXPECT_FALSE(stands(outcome));
}

TEST(LabJson, ReadsWhatItWrote) {
    const Outcome outcome = sample_outcome();
    const auto json = to_json(outcome);
    EXPECT_TRUE(json["rows"][1]["sigma"].is_null()); // infinite
    const auto back = from_json(nlohmann::json::parse(json.dump()));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(to_json(*back), json);
    EXPECT_TRUE(std::isinf(back->rows[1].sigma));
    EXPECT_EQ(back->rows[1].verdict, Verdict::explained);
    EXPECT_EQ(back->plots[0].curves[1].points[0].error, 0.125);
}

TEST(LabJson, NamesWhatIsWrongWithAFile) {
    EXPECT_FALSE(from_json(nlohmann::json::parse("[]")));
    auto json = to_json(sample_outcome());
    json["rows"][0]["verdict"] = "perhaps";
    expect_error(from_json(json), ErrorKind::bad_input);
    json = to_json(sample_outcome());
    json["rows"][0]["published"] = "some";
    expect_error(from_json(json), ErrorKind::bad_input);
    json = to_json(sample_outcome());
    json.erase("claims");
    expect_error(from_json(json), ErrorKind::bad_input);
}

TEST(LabCsv, HasEightFieldsALineAndQuotes) {
    const std::string csv = csv_header() + to_csv(sample_outcome());
    EXPECT_NE(csv.find("sample,row,\"a, \"\"quoted\"\" | quantity\",100,101,0.5,1.000,agrees\n"),
              std::string::npos);
    EXPECT_NE(csv.find("sample,point,figure: dots,1,0.25,0.125,,\n"), std::string::npos);
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 3 + 2 + 3);
}

TEST(LabMarkdown, ShowsEveryRowAndNotesEachExplanation) {
    const Experiment experiment{.name = "sample", .title = "A sample", .source = "a paper"};
    const std::string page = to_markdown(Subject::papers, {{&experiment, sample_outcome()}});
    EXPECT_NE(page.find("| a, \"quoted\" \\| quantity | 100 | 101 | 5.0e-01 | +1.0 | agrees |"),
              std::string::npos);
    EXPECT_NE(page.find("| b | 2.0 | 3 |  | +50.00 % | explained (1) |"), std::string::npos);
    EXPECT_NE(page.find("\n(1) misprint\n"), std::string::npos);
    EXPECT_NE(page.find("**Does not hold**: not seen. because"), std::string::npos);
    EXPECT_NE(page.find("](figures/figure.svg)"), std::string::npos);
    EXPECT_EQ(page, to_markdown(Subject::papers, {{&experiment, sample_outcome()}}));
}

TEST(LabMarkdown, ShowsTheExperimentsOfItsSubjectOnly) {
    const Experiment paper{.name = "of-a-paper", .title = "A", .source = "a"};
    const Experiment attack{.name = "of-attacks", .title = "B", .source = "b", .subject = Subject::attacks};
    const std::string page = to_markdown(Subject::attacks, {{&paper, {}}, {&attack, sample_outcome()}});
    EXPECT_EQ(page.find("of-a-paper"), std::string::npos);
    EXPECT_NE(page.find("## of-attacks"), std::string::npos);
    EXPECT_NE(page.find("| quantity | promised | ours |"), std::string::npos);
    EXPECT_NE(page.find("| all | | | 2 | 2 | 0 |"), std::string::npos); // of one experiment
}

TEST(LabGnuplot, LeavesOutWhatALogarithmCannotShow) {
    const std::string program = to_gnuplot(sample_outcome().plots[0], "docs/figures/figure.svg");
    EXPECT_NE(program.find("set title \"a \\\"title\\\"\""), std::string::npos);
    EXPECT_NE(program.find("$curve0 << EOD\n1 0.5 0\nEOD"), std::string::npos); // not the zero
    EXPECT_NE(program.find("with yerrorbars"), std::string::npos);
}

TEST(LabExperiments, HaveNamesOfTheirOwnAndCanAllBeRun) {
    std::set<std::string> names;
    for (const auto& experiment : all_experiments()) {
        EXPECT_TRUE(names.insert(experiment.name).second) << experiment.name;
        EXPECT_FALSE(experiment.title.empty());
        EXPECT_FALSE(experiment.source.empty());
        EXPECT_LE(experiment.trials, experiment.full_trials);
        EXPECT_TRUE(experiment.run);
    }
    EXPECT_GE(names.size(), 19U);
}

TEST(LabExperiments, FormulasStandWithoutATrial) {
    for (const auto& experiment : all_experiments()) {
        if (experiment.name != "grandi-comparison") continue;
        const Outcome outcome = run(experiment, 5, false, {.seed = 1});
        EXPECT_EQ(outcome.trials, 0U); // nothing is drawn at random, whatever was asked
        EXPECT_TRUE(stands(outcome));
    }
}

} // namespace
} // namespace sieve::lab
