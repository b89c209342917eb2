// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Fuzzes the three readers of what live sets follow. The first byte chooses.
//
//     0  an answer of CrowdSec's API (parse_decisions): a model reads the same answer from a tree of JSON
//     values 1  records of timed entries, as a child that was taken over may write them (read_decision_file)
//     2  changed lines of a list (take_plain_addresses): inet_pton is the model
//
// What must hold besides: every message is fit for a terminal; what was read is written and read back
// unchanged.
#include <arpa/inet.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "fuzz/support.hpp"
#include "libsieve/service/lists/decision_file.hpp"
#include "libsieve/service/lists/decisions.hpp"
#include "libsieve/service/lists/plain_addresses.hpp"
#include "libsieve/util/system/unique_fd.hpp"
#include "libsieve/util/system/write_all.hpp"

namespace {

using namespace sieve::fuzz;
using namespace sieve::service::live;
using nlohmann::json;

Total total("decisions and addresses read");

constexpr Time now{std::chrono::milliseconds(1'764'000'000'000)};

sieve::UniqueFd file_of(const std::string& bytes) {
    sieve::UniqueFd file(::memfd_create("fuzz", MFD_CLOEXEC));
    FUZZ_REQUIRE(file);
    FUZZ_REQUIRE(sieve::write_all(file.get(), bytes));
    return file;
}

void check_prefix(const Prefix& prefix) {
    FUZZ_REQUIRE(prefix.length >= 1 && prefix.length <= 128);
    FUZZ_REQUIRE((prefix.address & prefix.host_bits()) == 0);
}

void check_round_trip(const Decisions& decisions) {
    const sieve::UniqueFd file(::memfd_create("fuzz", MFD_CLOEXEC));
    FUZZ_REQUIRE(write_decision_file(decisions, file.get()));
    const auto again = read_decision_file(file.get());
    FUZZ_REQUIRE(again);
    FUZZ_REQUIRE(again->added == decisions.added && again->deleted == decisions.deleted);
    FUZZ_REQUIRE(again->origins == decisions.origins);
    FUZZ_REQUIRE(again->ignored == decisions.ignored && again->unusable == decisions.unusable);
}

void check(const Decisions& decisions) {
    for (const auto* timed_entries : {&decisions.added, &decisions.deleted})
        for (const TimedEntry& timed_entry : *timed_entries) check_prefix(timed_entry.prefix);
    FUZZ_REQUIRE(decisions.origins.size() <= most_origins);
    for (const std::string& origin : decisions.origins)
        if (!origin.empty()) require_message(origin);
    if (!decisions.first_ignored.empty()) require_message(decisions.first_ignored);
    if (!decisions.first_unusable.empty()) require_message(decisions.first_unusable);
    total.add(decisions.added.size() + decisions.deleted.size());
    check_round_trip(decisions);
}

// Which decisions of a list count, by a tree of values.
std::uint64_t count_of_sort(const json& answer, const char* list) {
    if (!answer.contains(list) || !answer[list].is_array()) return 0;
    const auto word = [](const json& decision, const char* member) {
        std::string text = decision.value(member, std::string());
        std::transform(text.begin(), text.end(), text.begin(),
                       [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
        return text;
    };
    return static_cast<std::uint64_t>(
        std::count_if(answer[list].begin(), answer[list].end(), [&](const json& decision) {
            const std::string scope = word(decision, "scope");
            return word(decision, "type") == "ban" && (scope == "ip" || scope == "range");
        }));
}

void fuzz_answer(const std::string& text) {
    const auto decisions = parse_decisions(text, {}, now);
    if (!decisions) return require_message(decisions.error().message);
    check(*decisions);
    const json tree = json::parse(text, nullptr, false);
    FUZZ_REQUIRE(tree.is_object());
    // A tree keeps the last of equal members only.
    for (const std::string name : {"\"new\"", "\"deleted\""})
        if (text.find(name) != text.rfind(name)) return;
    if (text.find('\\') != std::string::npos) return;
    const std::uint64_t added = count_of_sort(tree, "new");
    const std::uint64_t deleted = count_of_sort(tree, "deleted");
    FUZZ_REQUIRE(decisions->added.size() <= added); // without those that have ended
    FUZZ_REQUIRE(decisions->deleted.size() <= deleted);
    FUZZ_REQUIRE(decisions->added.size() + decisions->deleted.size() + decisions->unusable <=
                 added + deleted);
    FUZZ_REQUIRE(decisions->unusable + decisions->deleted.size() >= deleted);
    for (const TimedEntry& timed_entry : decisions->added) FUZZ_REQUIRE(timed_entry.until > now);
}

void fuzz_records(const std::string& bytes) {
    const auto decisions = read_decision_file(file_of(bytes).get());
    if (!decisions) return require_message(decisions.error().message);
    check(*decisions);
}

// What inet_pton(3) makes of a line without its comment; false if that is not an address. Empty: no entry.
bool model_of(std::string line, std::vector<std::string>& to) {
    line.resize(std::min(line.find_first_of("#;"), line.size()));
    const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
    while (!line.empty() && space(line.back())) line.pop_back();
    line.erase(line.begin(), std::find_if_not(line.begin(), line.end(), space));
    if (line.empty()) return true;
    std::string bytes(16, '\0');
    if (::inet_pton(AF_INET, line.c_str(), bytes.data() + 12) == 1)
        bytes[10] = bytes[11] = '\xff';
    else if (::inet_pton(AF_INET6, line.c_str(), bytes.data()) != 1)
        return false;
    to.push_back(bytes);
    return true;
}

void fuzz_lines(const std::string& text) {
    std::vector<Prefix> read;
    if (!take_plain_addresses(text, read)) return;
    std::vector<std::string> model;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        FUZZ_REQUIRE(model_of(text.substr(begin, end - begin), model));
        begin = end + 1;
    }
    FUZZ_REQUIRE(read.size() == model.size());
    for (std::size_t i = 0; i < read.size(); i++) {
        FUZZ_REQUIRE(read[i].is_single());
        for (int byte = 0; byte < 16; byte++)
            FUZZ_REQUIRE(static_cast<unsigned char>(model[i][static_cast<std::size_t>(byte)]) ==
                         static_cast<unsigned char>(read[i].address >> (8 * (15 - byte))));
    }
    total.add(read.size());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string text(data + 1, data + size);
    switch (data[0] % 3) {
    case 0:
        fuzz_answer(text);
        break;
    case 1:
        fuzz_records(text);
        break;
    default:
        fuzz_lines(text);
        break;
    }
    return 0;
}
