// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "sieve-lab/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>

#include <fmt/format.h>

namespace sieve::lab {

namespace {

const char* word(Verdict verdict) {
    switch (verdict) {
    case Verdict::agrees:
        return "agrees";
    case Verdict::explained:
        return "explained";
    case Verdict::differs:
        return "DIFFERS";
    case Verdict::ours:
        break;
    }
    return "";
}

std::string number(double value) {
    if (value == 0) return "0";
    const double size = std::abs(value);
    if (size >= 0.01 && size < 1e6) return fmt::format("{:.5g}", value);
    return fmt::format("{:.4e}", value);
}

std::string error_text(const Row& row) {
    return row.standard_error > 0 ? fmt::format("{:.1e}", row.standard_error) : "";
}

std::string sigma_text(const Row& row) {
    if (row.published.empty()) return "";
    if (row.sigma == 0) return "0";
    if (std::isfinite(row.sigma)) return fmt::format("{:+.1f}", row.sigma);
    // Two exact numbers: the distance in percent says more than infinity.
    const double published = experiments::printed(row.published).value;
    return fmt::format("{:+.2f} %", 100 * (row.ours / published - 1));
}

/// Breaks a paragraph into lines of at most `width` columns, each after `indent`.
std::string wrap(const std::string& text, std::size_t width, const std::string& indent) {
    std::string out;
    std::string line;
    std::size_t from = 0;
    const auto flush = [&] {
        if (!line.empty()) out += indent + line + "\n";
        line.clear();
    };
    while (from < text.size()) {
        const auto to = std::min(text.find(' ', from), text.size());
        const std::string piece = text.substr(from, to - from);
        if (!line.empty() && indent.size() + line.size() + 1 + piece.size() > width) flush();
        if (!piece.empty()) line += (line.empty() ? "" : " ") + piece;
        from = to + 1;
    }
    flush();
    return out;
}

/// The explanations in the order of their first row, each once and numbered.
class Footnotes {
  public:
    std::size_t operator()(const std::string& text) {
        const auto [found, added] = number_.try_emplace(text, texts_.size() + 1);
        if (added) texts_.push_back(text);
        return found->second;
    }
    const std::vector<std::string>& texts() const { return texts_; }

  private:
    std::map<std::string, std::size_t> number_;
    std::vector<std::string> texts_;
};

/// The rows whose explanation is printed: those that need one, and rows of ours with a remark.
bool has_footnote(const Row& row) {
    return !row.explanation.empty() && row.verdict != Verdict::agrees;
}

std::string trials_text(const Outcome& outcome) {
    if (outcome.trials == 0) return "formulas only";
    return outcome.trials == outcome.full_trials
               ? fmt::format("{} trials (the full number), seed {}", outcome.trials, outcome.seed)
               : fmt::format("{} trials of {}, seed {}", outcome.trials, outcome.full_trials, outcome.seed);
}

struct Tally {
    std::size_t agree = 0, explained = 0, differ = 0;
};

Tally tally(const Outcome& outcome) {
    Tally t;
    for (const auto& row : outcome.rows) {
        t.agree += row.verdict == Verdict::agrees ? 1 : 0;
        t.explained += row.verdict == Verdict::explained ? 1 : 0;
        t.differ += row.verdict == Verdict::differs ? 1 : 0;
    }
    for (const auto& claim : outcome.claims)
        ++(claim.holds ? t.agree : claim.explanation.empty() ? t.differ : t.explained);
    return t;
}

std::string csv_field(const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + "\"";
}

std::string markdown_field(const std::string& text) {
    std::string out;
    for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
    return out;
}

std::string gnuplot_text(const std::string& text) {
    std::string out;
    for (const char c : text) out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    return out;
}

} // namespace

std::string to_table(const Experiment& experiment, const Outcome& outcome) {
    std::string out = fmt::format("{}: {}\n{}; {}\n\n", experiment.name, experiment.title, experiment.source,
                                  trials_text(outcome));
    Footnotes footnotes;
    std::size_t wide = 8;
    for (const auto& row : outcome.rows) wide = std::max(wide, row.quantity.size());
    if (!outcome.rows.empty())
        out += fmt::format("{:<{}}  {:>12}  {:>12}  {:>9}  {:>10}\n", "quantity", wide, "published", "ours",
                           "std error", "difference");
    for (const auto& row : outcome.rows) {
        std::string verdict = word(row.verdict);
        if (has_footnote(row)) verdict += fmt::format(" [{}]", footnotes(row.explanation));
        std::string line =
            fmt::format("{:<{}}  {:>12}  {:>12}  {:>9}  {:>10}  {}", row.quantity, wide, row.published,
                        number(row.ours), error_text(row), sigma_text(row), verdict);
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + "\n";
    }
    if (!outcome.rows.empty()) out += "\n";
    for (const auto& claim : outcome.claims) {
        out += wrap("Claim: " + claim.statement, 100, "");
        out +=
            wrap(fmt::format("{}: {}", claim.holds ? "holds" : "does not hold", claim.observed), 100, "    ");
        if (!claim.explanation.empty()) out += wrap(claim.explanation, 100, "    ");
    }
    for (std::size_t i = 0; i < footnotes.texts().size(); ++i)
        out += wrap(fmt::format("[{}] {}", i + 1, footnotes.texts()[i]), 100, "");
    for (const auto& note : outcome.notes) out += wrap(note, 100, "");
    if (!outcome.plots.empty())
        out += fmt::format("{} plot{}: --csv prints the points, `make figures` draws them.\n",
                           outcome.plots.size(), outcome.plots.size() == 1 ? "" : "s");
    return out;
}

nlohmann::json to_json(const Outcome& outcome) {
    nlohmann::json rows = nlohmann::json::array();
    for (const auto& row : outcome.rows) {
        nlohmann::json sigma = nullptr;
        if (!row.published.empty() && std::isfinite(row.sigma)) sigma = row.sigma;
        rows.push_back({{"quantity", row.quantity},
                        {"published", row.published},
                        {"ours", row.ours},
                        {"standard_error", row.standard_error},
                        {"sigma", sigma},
                        {"verdict", word(row.verdict)},
                        {"explanation", row.explanation}});
    }
    nlohmann::json claims = nlohmann::json::array();
    for (const auto& claim : outcome.claims)
        claims.push_back({{"statement", claim.statement},
                          {"observed", claim.observed},
                          {"holds", claim.holds},
                          {"explanation", claim.explanation}});
    nlohmann::json plots = nlohmann::json::array();
    for (const auto& plot : outcome.plots) {
        nlohmann::json curves = nlohmann::json::array();
        for (const auto& curve : plot.curves) {
            nlohmann::json points = nlohmann::json::array();
            for (const auto& p : curve.points) points.push_back({p.x, p.y, p.error});
            curves.push_back({{"name", curve.name}, {"line", curve.line}, {"points", points}});
        }
        plots.push_back({{"name", plot.name},
                         {"title", plot.title},
                         {"x_label", plot.x_label},
                         {"y_label", plot.y_label},
                         {"x_log", plot.x_log},
                         {"y_log", plot.y_log},
                         {"curves", curves}});
    }
    return {{"name", outcome.name},
            {"trials", outcome.trials},
            {"full_trials", outcome.full_trials},
            {"seed", outcome.seed},
            {"rows", rows},
            {"claims", claims},
            {"plots", plots},
            {"notes", outcome.notes},
            {"stands", stands(outcome)}};
}

Result<Outcome> from_json(const nlohmann::json& json) try {
    Outcome outcome{.name = json.at("name"),
                    .trials = json.at("trials"),
                    .full_trials = json.at("full_trials"),
                    .seed = json.at("seed"),
                    .notes = json.at("notes")};
    for (const auto& j : json.at("rows")) {
        Row row{.quantity = j.at("quantity"),
                .published = j.at("published"),
                .ours = j.at("ours"),
                .standard_error = j.at("standard_error"),
                .explanation = j.at("explanation")};
        const std::string verdict = j.at("verdict");
        bool known = false;
        for (const Verdict v : {Verdict::agrees, Verdict::explained, Verdict::differs, Verdict::ours}) {
            if (verdict != word(v)) continue;
            row.verdict = v;
            known = true;
        }
        if (!known) return bad_input(fmt::format("\"{}\": not a verdict", verdict));
        if (!row.published.empty()) {
            SIEVE_ASSIGN(const auto published, experiments::parse_printed(row.published));
            const double infinite =
                std::copysign(std::numeric_limits<double>::infinity(), row.ours - published.value);
            row.sigma = j.at("sigma").is_null() ? infinite : j.at("sigma").get<double>();
        }
        outcome.rows.push_back(std::move(row));
    }
    for (const auto& j : json.at("claims"))
        outcome.claims.push_back({j.at("statement"), j.at("observed"), j.at("holds"), j.at("explanation")});
    for (const auto& j : json.at("plots")) {
        Plot plot{.name = j.at("name"),
                  .title = j.at("title"),
                  .x_label = j.at("x_label"),
                  .y_label = j.at("y_label"),
                  .x_log = j.at("x_log"),
                  .y_log = j.at("y_log")};
        for (const auto& c : j.at("curves")) {
            Curve curve{.name = c.at("name"), .line = c.at("line")};
            for (const auto& p : c.at("points")) curve.points.push_back({p.at(0), p.at(1), p.at(2)});
            plot.curves.push_back(std::move(curve));
        }
        outcome.plots.push_back(std::move(plot));
    }
    return outcome;
} catch (const nlohmann::json::exception& error) {
    return bad_input(fmt::format("not the result of an experiment: {}", error.what()));
}

std::string csv_header() {
    return "experiment,kind,name,published_or_x,ours_or_y,standard_error,sigma,verdict\n";
}

std::string to_csv(const Outcome& outcome) {
    std::string out;
    for (const auto& row : outcome.rows)
        out += fmt::format("{},row,{},{},{},{},{},{}\n", outcome.name, csv_field(row.quantity), row.published,
                           row.ours, row.standard_error,
                           row.published.empty() ? "" : fmt::format("{:.3f}", row.sigma), word(row.verdict));
    for (const auto& claim : outcome.claims)
        out += fmt::format("{},claim,{},,{},,,{}\n", outcome.name, csv_field(claim.statement),
                           csv_field(claim.observed),
                           claim.holds                 ? "agrees"
                           : claim.explanation.empty() ? "DIFFERS"
                                                       : "explained");
    for (const auto& plot : outcome.plots)
        for (const auto& curve : plot.curves)
            for (const auto& p : curve.points)
                out += fmt::format("{},point,{},{},{},{},,\n", outcome.name,
                                   csv_field(plot.name + ": " + curve.name), p.x, p.y, p.error);
    return out;
}

namespace {

constexpr const char* papers_introduction =
    "<!-- SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) -->\n"
    "<!-- Generated by `make figures` from docs/results and the programs; do not edit. -->\n"
    "# The papers' tables and figures, reproduced\n\n"
    "This page is for engineers. It compares every table and figure of the five papers behind this project "
    "with what its own "
    "code gives. "
    "`sieve-lab run NAME` repeats one experiment; `make figures` writes this page.\n\n"
    "- **published**: as printed. A number that ends in dots was truncated by the paper; all others are "
    "taken to be rounded.\n"
    "- **ours**: a formula's value, or the mean of the trials. **standard error**: of ours; a formula "
    "has none.\n"
    "- **difference**: how far ours lies outside of what rounds to the printed number, in standard "
    "errors of the difference "
    "(ours and the paper's together, where its number of trials is known). Between two exact numbers it "
    "is in percent.\n"
    "- A row *agrees* up to three standard errors. One that does not must be *explained* by a note, or "
    "the experiment fails.\n\n";

constexpr const char* attacks_introduction =
    "<!-- SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) -->\n"
    "<!-- Generated by `make figures` from docs/results and the programs; do not edit. -->\n"
    "# Attacks on the promised rate, measured\n\n"
    "This page is for engineers. Attackers choose packets and see every verdict of real filters: the "
    "measurements behind "
    "[security.md](security.md). "
    "`sieve-lab run NAME` repeats one experiment; `make figures` writes this page.\n\n"
    "- **promised**: the rate of random keys, from the filters' bits.\n"
    "- **ours**: the share of false positives among the keys that the attacker chose. "
    "**standard error**: of counting, at the promised rate.\n"
    "- **difference**: in standard errors.\n"
    "- A row *agrees* up to three standard errors. One that does not must be *explained* by a note, or "
    "the experiment fails.\n\n";

/// The parts of a page that depend on its subject.
struct PageText {
    const char* introduction;
    const char* reference; /// heading of the column of reference numbers
    const char* claimant;  ///< who makes the claims
};

PageText page_text(Subject subject) {
    switch (subject) {
    case Subject::papers:
        return {papers_introduction, "published", "The paper"};
    case Subject::attacks:
        return {attacks_introduction, "promised", "Security"};
    }
    return {};
}

} // namespace

std::string to_markdown(Subject subject, const std::vector<std::pair<const Experiment*, Outcome>>& all) {
    const PageText text = page_text(subject);
    std::string out = text.introduction;
    out += "| experiment | what | trials | agree | explained | differ |\n|---|---|---:|---:|---:|---:|\n";
    Tally sum;
    for (const auto& [experiment, outcome] : all) {
        if (experiment->subject != subject) continue;
        const Tally t = tally(outcome);
        sum.agree += t.agree;
        sum.explained += t.explained;
        sum.differ += t.differ;
        out +=
            fmt::format("| [{}](#{}) | {} | {} | {} | {} | {} |\n", experiment->name, experiment->name,
                        experiment->title, outcome.trials == 0 ? "formulas" : std::to_string(outcome.trials),
                        t.agree, t.explained, t.differ);
    }
    out += fmt::format("| all | | | {} | {} | {} |\n", sum.agree, sum.explained, sum.differ);

    for (const auto& [experiment, outcome] : all) {
        if (experiment->subject != subject) continue;
        out += fmt::format("\n## {}\n\n{}. {}; {}.\n", experiment->name, experiment->title,
                           experiment->source, trials_text(outcome));
        for (const auto& note : outcome.notes) out += "\n" + note + "\n";
        Footnotes footnotes;
        if (!outcome.rows.empty())
            out += fmt::format("\n| quantity | {} | ours | standard error | difference | |\n"
                               "|---|---:|---:|---:|---:|---|\n",
                               text.reference);
        for (const auto& row : outcome.rows) {
            std::string verdict = word(row.verdict);
            if (has_footnote(row)) verdict += fmt::format(" ({})", footnotes(row.explanation));
            out += fmt::format("| {} | {} | {} | {} | {} | {} |\n", markdown_field(row.quantity),
                               row.published, number(row.ours), error_text(row), sigma_text(row), verdict);
        }
        for (std::size_t i = 0; i < footnotes.texts().size(); ++i)
            out += fmt::format("\n({}) {}\n", i + 1, footnotes.texts()[i]);
        if (!outcome.claims.empty()) out += "\n";
        for (const auto& claim : outcome.claims)
            out += fmt::format("- {}: {}. **{}**: {}.{}\n", text.claimant, claim.statement,
                               claim.holds ? "Holds" : "Does not hold", claim.observed,
                               claim.explanation.empty() ? "" : " " + claim.explanation);
        for (const auto& plot : outcome.plots)
            out += fmt::format("\n![{}](figures/{}.svg)\n", plot.title, plot.name);
    }
    return out;
}

std::string to_gnuplot(const Plot& plot, const std::string& svg) {
    std::string out = "set terminal svg size 800,560 dynamic font 'sans-serif,13' background 'white'\n";
    out += fmt::format("set output \"{}\"\n", gnuplot_text(svg));
    // Labels are plain text without gnuplot's markup: 1_a stays 1_a.
    out += "set termoption noenhanced\nset encoding utf8\nset key outside below\nset grid\n";
    out += fmt::format("set title \"{}\"\nset xlabel \"{}\"\nset ylabel \"{}\"\n", gnuplot_text(plot.title),
                       gnuplot_text(plot.x_label), gnuplot_text(plot.y_label));
    if (plot.x_log) out += "set logscale x\n";
    if (plot.y_log) out += "set logscale y\nset format y \"%.0e\"\n";
    out += "set offsets graph 0.02, graph 0.02, graph 0, graph 0\n";
    constexpr const char* colours[] = {"#0060ad", "#c03020", "#208030", "#8040a0",
                                       "#b07000", "#008090", "#404040"};
    std::size_t colour = 0;
    std::string curves;
    for (std::size_t i = 0; i < plot.curves.size(); ++i) {
        const auto& curve = plot.curves[i];
        // A simulation has the colour of the preceding formula, if it simulates that formula.
        const auto stem = [](const std::string& name) { return name.substr(0, name.rfind(',')); };
        const bool same = i > 0 && !curve.line && plot.curves[i - 1].line &&
                          stem(curve.name) == stem(plot.curves[i - 1].name);
        if (i > 0 && !same) colour = (colour + 1) % std::size(colours);
        out += fmt::format("$curve{} << EOD\n", i);
        for (const auto& p : curve.points)
            if (!plot.y_log || p.y > 0) out += fmt::format("{} {} {}\n", p.x, p.y, p.error);
        out += "EOD\n";
        curves +=
            fmt::format("{}$curve{} using 1:2{} lc rgb \"{}\" title \"{}\"", i == 0 ? "plot " : ", \\\n     ",
                        i, curve.line ? " with lines lw 2" : ":3 with yerrorbars pt 7 ps 0.7",
                        colours[colour], gnuplot_text(curve.name));
    }
    return out + curves + "\n";
}

} // namespace sieve::lab
