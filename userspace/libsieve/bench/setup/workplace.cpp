// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/setup/workplace.hpp"

#include <stdlib.h>

#include <cerrno>
#include <system_error>

#include <fmt/core.h>

namespace sieve::bench {

Result<Workplace> Workplace::create() {
    std::string name = (std::filesystem::temp_directory_path() / "xdp-sieve-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) return bad_input(fmt::format("{}: {}", name, errno_text(errno)));
    return Workplace(name);
}

Workplace::~Workplace() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

} // namespace sieve::bench
