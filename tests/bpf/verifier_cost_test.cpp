// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What the programs cost the verifier, in instructions walked, against the committed figures. A program may
// load here and have become too much for another kernel: this test finds it first.
#include <sys/utsname.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <bpf/bpf.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bpf/images.hpp"
#include "bpf/note_program.hpp"
#include "libsieve/kernel/programs/bpf_object.hpp"
#include "libsieve/kernel/programs/skeleton.hpp"

namespace sieve::kernel {
namespace {

using namespace test;

constexpr char record_path[] = "tests/bpf/verifier_cost.json";
constexpr char record_variable[] = "SIEVE_RECORD_VERIFIER_COST";
// Compilers of one version and kernels of one series differ by less than this.
constexpr double tolerance = 0.10;
// Half of what the verifier walks before it gives up. Future kernels may use the rest.
constexpr std::uint32_t most_instructions = 500'000;

using Costs = std::map<std::string, std::uint32_t>; // by program

// "6.1" of "6.1.0-56-cloud-amd64".
std::string kernel_series() {
    utsname name{};
    if (::uname(&name) != 0) return "unknown";
    const std::string release = name.release;
    const std::size_t minor = release.find('.') + 1;
    return release.substr(0, release.find_first_not_of("0123456789", minor));
}

std::uint32_t walked(int program_fd) {
    bpf_prog_info info{};
    __u32 length = sizeof(info);
    return bpf_obj_get_info_by_fd(program_fd, &info, &length) == 0 ? info.verified_insns : 0;
}

nlohmann::ordered_json read_record() {
    std::ifstream file(record_path);
    if (!file) throw std::runtime_error(fmt::format("no {}: run from the project's folder", record_path));
    return nlohmann::ordered_json::parse(file);
}

TEST(VerifierCost, IsAsRecorded) {
    const std::string series = kernel_series();
    const BpfObject object = value_or_fail(BpfObject::load({.tracing = false, .frags = true}));
    ASSERT_GE(object.frags_program_fd(), 0);
    Costs costs{{SIEVE_PROGRAM, walked(object.program_fd())},
                {SIEVE_PROGRAM_FRAGS, walked(object.frags_program_fd())}};
    for (const HookPoint point : {HookPoint::ingress, HookPoint::egress}) {
        const BpfObject at_tc = value_or_fail(BpfObject::load({.point = point}));
        costs.emplace(program_name(point), walked(at_tc.program_fd()));
    }
    costs.emplace(SIEVE_PROGRAM_NOTE, walked(NoteProgram().fd()));
    for (const auto& [program, cost] : costs) {
        EXPECT_GT(cost, 0U) << program;
        EXPECT_LT(cost, most_instructions) << program << ": split what grew into global functions";
    }

    nlohmann::ordered_json record = read_record();
    const std::string line = fmt::format("\"{}\": {}", series, nlohmann::json(costs).dump());
    if (std::getenv(record_variable) != nullptr) {
        record["instructions"][series] = costs;
        std::ofstream(record_path) << record.dump(2) << "\n";
        GTEST_SKIP() << "recorded: " << line;
    }
    if (!record["instructions"].contains(series))
        GTEST_SKIP() << "no figures for Linux " << series << " in " << record_path << "; here: " << line;
    const Costs recorded = record["instructions"][series].get<Costs>();
    for (const auto& [program, cost] : costs) {
        ASSERT_TRUE(recorded.contains(program)) << program;
        EXPECT_NEAR(cost, recorded.at(program), tolerance * recorded.at(program))
            << program << " costs Linux " << series
            << "'s verifier otherwise than recorded. If that is meant: " << record_variable
            << "=1 build/bpf-tests --gtest_filter='VerifierCost.*' records it for the running "
            << "kernel; for another one, put this line in " << record_path << ": " << line;
    }
}

// The bytes of stack that a program itself uses, without the functions that it calls, by the verifier's log.
std::uint32_t own_stack(HookPoint point, const char* name) {
    const std::unique_ptr<Skeleton> skeleton = open_skeleton(point, true);
    if (!skeleton) throw std::runtime_error("opening a skeleton");
    std::vector<char> log(1 << 16);
    constexpr int statistics = 4;
    bpf_program* program = skeleton->program(name);
    bpf_program__set_log_level(program, statistics);
    bpf_program__set_log_buf(program, log.data(), log.size());
    if (skeleton->load() != 0) throw std::runtime_error("loading the program");
    const std::string said = log.data();
    const std::string mark = "stack depth ";
    const std::size_t at = said.find(mark);
    if (at == std::string::npos) throw std::runtime_error("no stack depth in: " + said);
    return static_cast<std::uint32_t>(std::stoul(said.substr(at + mark.size())));
}

// Linux 6.1 rounds each function's stack up to a multiple of 32 bytes; later kernels round to less. A chain
// of calls may use 512 bytes. The deepest chain, to the sketch of `top`, leaves three times 32 bytes for the
// program.
TEST(VerifierCost, TheStackFitsOnEveryKernel) {
    constexpr std::uint32_t most = 96;
    EXPECT_LE(own_stack(HookPoint::xdp, SIEVE_PROGRAM), most);
    EXPECT_LE(own_stack(HookPoint::xdp, SIEVE_PROGRAM_FRAGS), most);
    EXPECT_LE(own_stack(HookPoint::ingress, SIEVE_PROGRAM_INGRESS), most);
    EXPECT_LE(own_stack(HookPoint::egress, SIEVE_PROGRAM_EGRESS), most);
}

} // namespace
} // namespace sieve::kernel
