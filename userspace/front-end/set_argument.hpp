// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A set as the command line names it:
//
//     NAME=SOURCE[,OPTION]...
//
// SOURCE is an image or a feed (list_sources.hpp), up to the first comma. An OPTION is
//
//     action=NAME, redirect=INTERFACE, redirect=cpu:NUMBER    what a match does
//     dport=PORTS, sport=PORTS, proto=PROTOCOLS                          which packets match
//     verify, verify=FEED                                                exact verification
//     feed=FILE                                                          one more feed of the same set
//     certificates=FILE, header-file=FILE and more                       how servers are asked
//     any option of `build` without its dashes, such as fpr=1e-5, kind=dleft64 or skip-invalid
//
// `key` is followed by fields until the next option: key=src,dport,fpr=1e-5. Likewise `dport` and `sport` by
// ports and ranges, and `proto` by protocols: dport=22,8000-8100,proto=tcp,udp,action=drop.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "libsieve/control/spec/set_spec.hpp"
#include "libsieve/service/download/http_access.hpp"
#include "libsieve/util/results/result.hpp"

namespace sieve::cli {

struct SetArgument : control::SetSpec {
    service::HttpAccess access{}; // of the URLs among its sources
};

// The argument for a message, without what may be a password.
[[nodiscard]] std::string shown_set_argument(const std::string& text);

// Errors are of kind invalid_request and name the argument. list_sources.hpp finds the sources.
[[nodiscard]] Result<SetArgument> parse_set_argument(const std::string& text);

// An option that only a set has. `build` has the others: control::build_options().
struct SetOption {
    const char* name;
    const char* value; // what the value is called, like that of an option of a command
    bool value_optional;
    const char* help;
    Status (*set)(SetArgument& set, const std::optional<std::string>& value);
};

[[nodiscard]] std::span<const SetOption> set_options();

// "pass" or "drop", as the value of `option`, such as `--default`.
[[nodiscard]] Result<sieve_action> parse_pass_or_drop(const char* option, const std::string& text);

} // namespace sieve::cli
