// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What was measured, as JSON and as people read it.
#pragma once

#include <nlohmann/json.hpp>

#include "libsieve/bench/answer_bench.hpp"
#include "libsieve/bench/firewall_bench.hpp"
#include "libsieve/bench/load_bench.hpp"
#include "libsieve/bench/lookup_bench.hpp"
#include "libsieve/bench/member_bench.hpp"
#include "libsieve/bench/packet_bench.hpp"
#include "libsieve/bench/prefix_bench.hpp"
#include "libsieve/bench/reply_bench.hpp"
#include "libsieve/bench/set_count_bench.hpp"

namespace sieve::cli {

nlohmann::json to_json(const bench::LookupTable& table);
void print_table(const bench::LookupTable& table);
nlohmann::json to_json(const bench::PacketTable& table);
void print_table(const bench::PacketTable& table);
nlohmann::json to_json(const bench::LinkTable& table);
void print_table(const bench::LinkTable& table);
nlohmann::json to_json(const bench::LoadTable& table);
void print_table(const bench::LoadTable& table);
nlohmann::json to_json(const bench::MemberTable& table);
void print_table(const bench::MemberTable& table);
nlohmann::json to_json(const bench::AnswerTable& table);
void print_table(const bench::AnswerTable& table);
nlohmann::json to_json(const bench::FirewallTable& table);
void print_table(const bench::FirewallTable& table);
nlohmann::json to_json(const bench::PrefixTable& table);
void print_table(const bench::PrefixTable& table);
nlohmann::json to_json(const bench::SetCountTable& table);
void print_table(const bench::SetCountTable& table);
nlohmann::json to_json(const bench::ReplyTable& table);
void print_table(const bench::ReplyTable& table);

} // namespace sieve::cli
