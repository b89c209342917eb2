// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The right command in full for what people type who know other tools, or who mix up the order of arguments.
// Nothing here suggests a command that takes protection away, except to somebody who asked for just that.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace sieve::cli {

using IsInterface = std::function<bool(const std::string& name)>;

// For a command line whose first word behind the options is no command of ours, such as `del eth0 bad
// 192.0.2.1` or `eth0 load bad=list.txt`: one sentence with the right command. Empty if nobody knows what was
// meant. `words` are those behind the program's name, `known` our commands.
[[nodiscard]] std::string meant_by(const std::vector<std::string>& words,
                                   const std::vector<std::string>& known, const IsInterface& is_interface);

// For a command of ours that failed: what was probably meant, such as `xdp-sieve insert eth0 bad 192.0.2.1`
// for `add eth0 bad 192.0.2.1`. Empty if the arguments look right. `arguments` are those of the command
// without its options.
[[nodiscard]] std::string meant_instead(const std::string& command, const std::vector<std::string>& arguments,
                                        const std::vector<std::string>& words,
                                        const IsInterface& is_interface);

} // namespace sieve::cli
