// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Outcomes on the screen, in files, and in the documentation.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sieve-lab/experiment.hpp"

namespace sieve::lab {

/// A table for people; `width` columns of a terminal.
std::string to_table(const Experiment& experiment, const Outcome& outcome);

/// All of it. Infinite distances (two exact numbers that disagree) become null.
nlohmann::json to_json(const Outcome& outcome);

/// What to_json wrote. Errors name what is missing or of another type.
Result<Outcome> from_json(const nlohmann::json& json);

/// One line for every row and every point of every curve: experiment, kind, name, published or x, ours or y,
/// standard error, difference in sigma, verdict.
std::string csv_header();
std::string to_csv(const Outcome& outcome);

/// The page of a subject: its experiments with their outcomes. The page looks for images in figures/.
std::string to_markdown(Subject subject, const std::vector<std::pair<const Experiment*, Outcome>>& all);

/// A gnuplot program, data included, that writes the plot to `svg`.
std::string to_gnuplot(const Plot& plot, const std::string& svg);

} // namespace sieve::lab
