// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "front-end/completion.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include "xdp-sieve-fleet/xdp-sieve/fleet_commands.hpp"
#include "xdp-sieve/command_line.hpp"

namespace sieve::cli {
namespace {

// The real command line on a machine with two interfaces. eth0 has sets at two hooks.
class Completion : public testing::Test {
  protected:
    Completion() { define_command_line(program_, context_, {}, fleet_commands); }

    [[nodiscard]] std::vector<std::string> texts(const std::vector<std::string>& words) const {
        std::vector<std::string> found;
        for (const CompletionWord& candidate : complete(describe(program_.app()), words, machine_))
            found.push_back(candidate.text);
        return found;
    }

    Program program_ = xdp_sieve();
    Context context_;
    Surroundings machine_{[] {
                              return std::vector<std::string>{"eth0", "wg0"};
                          },
                          [](const std::string& interface, const std::string& hook) {
                              if (interface != "eth0") return std::vector<std::string>();
                              if (hook == "egress") return std::vector<std::string>{"c2"};
                              return std::vector<std::string>{"bad", "friends"};
                          }};
};

using Texts = std::vector<std::string>;

TEST_F(Completion, Commands) {
    EXPECT_EQ(texts({"re"}), (Texts{"replies", "remove", "resume", "replay"}));
    EXPECT_EQ(texts({"--json", "-q", "uo"}), Texts{});
    EXPECT_EQ(texts({"--json", "unl"}), Texts{"unload"});
    EXPECT_EQ(texts({}).size(), program_.command_names().size());
    EXPECT_EQ(texts({"nonsense", ""}), Texts{});
}

TEST_F(Completion, OptionsThatWereNotGiven) {
    EXPECT_EQ(texts({"build", "--ma"}), (Texts{"--max-probes", "--max-keys"}));
    EXPECT_EQ(texts({"build", "--max-keys", "1e6", "--ma"}), Texts{"--max-probes"});
    EXPECT_EQ(texts({"build", "--max-keys=1e6", "--ma"}), Texts{"--max-probes"});
    EXPECT_EQ(texts({"build", "--js"}), Texts{"--json"}) << "an option of all commands";
    EXPECT_EQ(texts({"--ver"}), (Texts{"--version", "--verbose"}));
    EXPECT_EQ(texts({"top", "-n"}), Texts{"-n"}) << "an option with only a short name";
    EXPECT_EQ(texts({"insert", "eth0", "bad", "--", "--ag"}), Texts{}) << "after -- there are no options";
    const Texts all = texts({"plan", "-"});
    EXPECT_NE(std::find(all.begin(), all.end(), "--fpr"), all.end()) << "an option of a group";
}

TEST_F(Completion, ValuesOfOptions) {
    EXPECT_EQ(texts({"status", "--hook", ""}), (Texts{"xdp", "ingress", "egress"}));
    EXPECT_EQ(texts({"status", "--hook=i"}), Texts{"--hook=ingress"});
    EXPECT_EQ(texts({"load", "--default", ""}), (Texts{"pass", "drop"}));
    EXPECT_EQ(texts({"load", "-m", "n"}), Texts{"native"});
    EXPECT_EQ(texts({"build", "--effort", ""}), (Texts{"fast", "normal", "best"}));
    EXPECT_EQ(texts({"build", "--kind", "dl"}), (Texts{"dleft64", "dleft128"}));
    EXPECT_EQ(texts({"build", "--format", "j"}), (Texts{"json", "json:"}));
    EXPECT_EQ(texts({"build", "--bits-per-key", ""}), Texts{});
}

TEST_F(Completion, CommaLists) {
    EXPECT_EQ(texts({"build", "--key", ""}), (Texts{"src", "dst", "sport", "dport", "proto"}));
    EXPECT_EQ(texts({"build", "--key", "dst,"}), (Texts{"dst,sport", "dst,dport", "dst,proto"}));
    EXPECT_EQ(texts({"build", "--key", "proto,"}), Texts{});
    EXPECT_EQ(texts({"build", "--key", "nonsense,"}), Texts{});
    EXPECT_EQ(texts({"load", "--chain", "tx,p"}), Texts{"tx,pass"});
    EXPECT_EQ(texts({"load", "--chain", "pass,p"}), Texts{});
    EXPECT_EQ(texts({"load", "--chain", "n"}), Texts{"none"});
}

TEST_F(Completion, InterfacesAndTheirSets) {
    EXPECT_EQ(texts({"load", ""}), (Texts{"eth0", "wg0"}));
    EXPECT_EQ(texts({"status", "--hook", "xdp", "w"}), Texts{"wg0"});
    EXPECT_EQ(texts({"remove", "eth0", ""}), (Texts{"bad", "friends"}));
    EXPECT_EQ(texts({"remove", "wg0", ""}), Texts{});
    EXPECT_EQ(texts({"remove", "eth0", "--hook", "egress", ""}), Texts{"c2"});
    EXPECT_EQ(texts({"swap", "--hook=egress", "eth0", ""}), Texts{"c2="});
    EXPECT_EQ(texts({"remove", "eth0", "bad", ""}), Texts{}) << "no third argument";
    EXPECT_EQ(texts({"unload", "eth0", ""}), Texts{});
}

TEST_F(Completion, OptionsOfASet) {
    EXPECT_EQ(texts({"load", "eth0", "x=f,ac"}), Texts{"x=f,action="});
    EXPECT_EQ(texts({"load", "eth0", "x=f,ver"}), (Texts{"x=f,verify", "x=f,verify="}));
    EXPECT_EQ(texts({"load", "eth0", "x=f,skip"}), Texts{"x=f,skip-invalid"});
    EXPECT_EQ(texts({"load", "eth0", "a=b", "x=f,fpr=1e-5,action="}),
              (Texts{"x=f,fpr=1e-5,action=drop", "x=f,fpr=1e-5,action=pass", "x=f,fpr=1e-5,action=count"}));
    EXPECT_EQ(texts({"load", "eth0", "x=f,kind=bl"}), (Texts{"x=f,kind=blocked", "x=f,kind=bloom"}));
    EXPECT_EQ(texts({"load", "eth0", "x=f,redirect="}),
              (Texts{"x=f,redirect=eth0", "x=f,redirect=wg0", "x=f,redirect=cpu:"}));
    EXPECT_EQ(texts({"load", "eth0", "x=f,key=src,dp"}), (Texts{"x=f,key=src,dport=", "x=f,key=src,dport"}));
    EXPECT_EQ(texts({"load", "eth0", "x=f,proto=ic"}), (Texts{"x=f,proto=icmp", "x=f,proto=icmpv6"}));
    EXPECT_EQ(texts({"set", "eth0", "bad", "proto=tcp,s"}), Texts{"proto=tcp,sctp"});
    EXPECT_EQ(texts({"load", "eth0", "x=f,key=src,f"}),
              (Texts{"x=f,key=src,feed=", "x=f,key=src,format=", "x=f,key=src,fpr="}));
}

TEST_F(Completion, Files) {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("completion." + std::to_string(::getpid()));
    std::filesystem::create_directories(folder / "lists");
    for (const char* name : {"bad.txt", "ball", ".hidden", "in\nlines"})
        std::ofstream(folder / name).put('x');
    const std::string in = folder.string() + "/";
    EXPECT_EQ(texts({"query", in}), (Texts{in + "bad.txt", in + "ball", in + "lists/"}));
    EXPECT_EQ(texts({"build", "-o", in + ".h"}), Texts{in + ".hidden"});
    EXPECT_EQ(texts({"load", "eth0", "a=" + in + "ba"}), (Texts{"a=" + in + "bad.txt", "a=" + in + "ball"}));
    EXPECT_EQ(texts({"load", "eth0", "a=f,feed=" + in + "l"}), Texts{"a=f,feed=" + in + "lists/"});
    EXPECT_EQ(texts({"replay", "--pcap", "x", in + "bad"}), Texts{in + "bad.txt"});
    EXPECT_EQ(texts({"query", in + "absent/"}), Texts{});
    std::filesystem::remove_all(folder);
}

// A program without commands, such as xdp-sieved.
TEST_F(Completion, NoCommands) {
    CLI::App daemon;
    std::string file;
    bool check = false;
    daemon.add_option("--log", file)->type_name("auto|journal");
    daemon.add_flag("--check", check);
    const auto of = [&](const std::vector<std::string>& words) {
        Texts found;
        for (const CompletionWord& candidate : complete(describe(daemon), words, machine_))
            found.push_back(candidate.text);
        return found;
    };
    EXPECT_EQ(of({"-"}), (Texts{"--help", "--log", "--check"}));
    EXPECT_EQ(of({"--check", "--"}), (Texts{"--help", "--log"}));
    EXPECT_EQ(of({"--log", "j"}), Texts{"journal"});
    EXPECT_EQ(of({""}), Texts{});
}

// A value whose name completion does not know gets no candidates, silently.
TEST_F(Completion, KnowsEveryValue) {
    const auto check = [](const CommandDescription& command, auto&& self) -> void {
        for (const ArgumentDescription& argument : command.arguments)
            if (argument.most_values > 0)
                EXPECT_TRUE(is_known_value(argument.value)) << command.name << ": " << argument.value;
        for (const CommandDescription& one : command.commands) self(one, self);
    };
    check(describe(program_.app()), check);
}

} // namespace
} // namespace sieve::cli
