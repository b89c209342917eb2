// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "unit/messages.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <utility>

#include <gtest/gtest.h>

#include "libsieve/util/results/error_kind.hpp"

namespace sieve {
namespace {

namespace fs = std::filesystem;

using Lines = std::vector<std::string>;
using Entries = std::map<std::string, Lines>; // by the names of tests

const std::string folder = "tests/unit/messages/";
const std::string licence = "# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)";
const std::string indent = "    ";

struct Noted {
    Lines messages{};
    std::vector<std::source_location> places{};
};
Noted noted; // by the test that runs

std::string name_of(const testing::TestInfo& test) {
    return std::string(test.test_suite_name()) + "." + test.name();
}

// `control` for a test in tests/unit/control.
std::string file_for(const testing::TestInfo& test) {
    const std::string source = test.file(), root = "tests/unit/";
    const std::size_t begin = source.rfind(root) + root.size();
    return source.substr(begin, source.find_first_of("/.", begin) - begin);
}

Entries read_entries(const std::string& file) {
    Entries entries;
    std::ifstream in(folder + file);
    Lines* entry = nullptr;
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("#")) continue;
        if (!line.starts_with(indent))
            entry = &entries[line];
        else if (entry != nullptr)
            entry->push_back(line.substr(indent.size()));
    }
    return entries;
}

void write_entries(const std::string& file, const Entries& entries) {
    fs::create_directories(folder);
    std::ofstream out(folder + file);
    out << licence << "\n";
    for (const auto& [test, lines] : entries) {
        out << test << "\n";
        for (const std::string& line : lines) out << indent << line << "\n";
    }
    if (!out.flush()) ADD_FAILURE() << folder << file << " cannot be written";
}

std::vector<std::string> files() {
    std::vector<std::string> names;
    if (!fs::exists(folder)) return names;
    for (const auto& file : fs::directory_iterator(folder)) names.push_back(file.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

// The file of each test of this program.
std::map<std::string, std::string> files_of_tests() {
    std::map<std::string, std::string> of;
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    for (int suite = 0; suite < all.total_test_suite_count(); suite++) {
        const testing::TestSuite& tests = *all.GetTestSuite(suite);
        for (int i = 0; i < tests.total_test_count(); i++)
            of.emplace(name_of(*tests.GetTestInfo(i)), file_for(*tests.GetTestInfo(i)));
    }
    return of;
}

// A message on one line, without what differs between runs and machines.
std::string as_always(std::string message) {
    const auto literally = [](const std::string& text) {
        return std::regex_replace(text, std::regex(R"([^\w/])"), "\\$&");
    };
    static const std::pair<std::regex, const char*> varying[] = {
        // The folder in which the tests run, which may be a temporary one, and a test's folder or file among
        // these.
        {std::regex(literally(fs::current_path()) + R"((?![^/:;,"`'() \n]))"), "HERE"},
        {std::regex(literally(fs::temp_directory_path() / "") + R"([^/:;,"`'() \n]+)"), "DIR"},
        {std::regex("/proc/self/fd/[0-9]+"), "/proc/self/fd/N"},
        {std::regex(R"(\b[0-9a-f]{16}([0-9a-f]{16})?\b)"), "HEX"}, // identities and checksums of images
        {std::regex("\\bprocess " + std::to_string(::getpid()) + "\\b"), "process OURS"},
        {std::regex("\\(owner " + std::to_string(::geteuid()) + ","), "(owner OURS,"},
        // What other libraries say and how well they pack depends on their version.
        {std::regex(R"(\[json\.exception\..*|Error while parsing .*)"), "..."},
        {std::regex("(damaged or cut short: [a-z0-9]+: )(?!it ends in the middle).*"), "$1..."},
        {std::regex("[0-9]+( bytes unpack to)"), "N$1"},
        {std::regex("\n"), "\\n"},
    };
    for (const auto& [what, instead] : varying) message = std::regex_replace(message, what, instead);
    return message;
}

class Watch : public testing::EmptyTestEventListener {
    void OnTestStart(const testing::TestInfo&) override { noted = {}; }

    void OnTestEnd(const testing::TestInfo& test) override {
        if (!test.result()->Passed()) return;
        const Lines said = test::entry_of(noted.messages);
        if (record_) {
            recorded_[name_of(test)] = said;
            return;
        }
        const std::string file = file_for(test);
        if (!entries_.contains(file)) entries_[file] = read_entries(file);
        const auto entry = entries_[file].find(name_of(test));
        const std::string difference =
            test::difference(entry == entries_[file].end() ? Lines{} : entry->second, said);
        if (difference.empty()) return;
        ADD_FAILURE_AT(test.file(), test.line())
            << "not as in " << folder << file
            << " (-); if it is meant, MESSAGES=record build/unit-tests --gtest_filter='" << name_of(test)
            << "' records it:\n"
            << difference << places();
    }

    void OnTestProgramEnd(const testing::UnitTest&) override {
        if (!record_) return;
        const auto tests = files_of_tests();
        std::map<std::string, Entries> all;
        for (const std::string& file : files())
            for (const auto& [test, lines] : read_entries(file))
                if (const auto of = tests.find(test); of != tests.end() && !recorded_.contains(test))
                    all[of->second][test] = lines;
        for (const auto& [test, lines] : recorded_)
            if (!lines.empty()) all[tests.at(test)][test] = lines;
        for (const std::string& file : files())
            if (!all.contains(file)) fs::remove(folder + file);
        for (const auto& [file, entries] : all)
            if (entries != read_entries(file)) write_entries(file, entries);
    }

    static std::string places() {
        std::string text;
        for (const std::source_location& place : noted.places) {
            const std::string line =
                "\n  " + std::string(place.file_name()) + ":" + std::to_string(place.line());
            if (text.find(line) == std::string::npos) text += line;
        }
        return text.empty() ? text : "The test notes messages at" + text;
    }

    const bool record_ =
        std::getenv("MESSAGES") != nullptr && std::string(std::getenv("MESSAGES")) == "record";
    std::map<std::string, Entries> entries_{}; // by files
    Entries recorded_{};
};

} // namespace

void expect_says(const std::string& message, const std::source_location& place) {
    if (message.empty()) {
        ADD_FAILURE_AT(place.file_name(), static_cast<int>(place.line())) << "no message";
        return;
    }
    noted.messages.push_back(message);
    noted.places.push_back(place);
}

void expect_error(const Error* error, ErrorKind kind, const std::source_location& place) {
    const char* found = error == nullptr ? "no error" : facts_of(error->kind).name;
    if (error == nullptr || error->kind != kind)
        ADD_FAILURE_AT(place.file_name(), static_cast<int>(place.line()))
            << "found " << found << ", expected " << facts_of(kind).name << "\n"
            << (error == nullptr ? "" : error->message);
    if (error != nullptr) expect_says(error->message, place);
}

namespace test {

void watch_messages() {
    testing::UnitTest::GetInstance()->listeners().Append(new Watch);
}

std::vector<std::string> stale_messages() {
    std::vector<std::string> stale;
    const auto tests = files_of_tests();
    for (const std::string& file : files())
        for (const auto& [test, lines] : read_entries(file))
            if (const auto of = tests.find(test); of == tests.end() || of->second != file)
                stale.push_back(folder + file + ": " + test);
    return stale;
}

std::vector<std::string> entry_of(const std::vector<std::string>& messages) {
    Lines lines;
    std::size_t times = 0;
    for (std::size_t i = 0; i < messages.size(); i++) {
        std::string line = as_always(messages[i]);
        times++;
        if (i + 1 < messages.size() && as_always(messages[i + 1]) == line) continue;
        if (times > 1) line = std::to_string(times) + " times " + line;
        lines.push_back(std::move(line));
        times = 0;
    }
    return lines;
}

std::string difference(const std::vector<std::string>& entry, const std::vector<std::string>& said) {
    const auto [was, is] = std::mismatch(entry.begin(), entry.end(), said.begin(), said.end());
    const auto [was_end, is_end] = std::mismatch(entry.rbegin(), std::make_reverse_iterator(was),
                                                 said.rbegin(), std::make_reverse_iterator(is));
    std::string text;
    for (auto line = was; line != was_end.base(); line++) text += "- " + *line + "\n";
    for (auto line = is; line != is_end.base(); line++) text += "+ " + *line + "\n";
    return text;
}

} // namespace test
} // namespace sieve
