// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/host/refusal.hpp"

#include <cerrno>
#include <cstdlib>

#include <fmt/core.h>

namespace sieve::kernel {

namespace {

std::string_view usual_remedy(int error) {
    switch (error) {
    case ENOMEM:
        return "free memory, raise the memory limit of the control group, or build the set with fewer bits "
               "per key";
    case ENOSYS:
        return "this kernel has no BPF; Linux 5.18 or later is needed, 6.1 or later is tested";
    case EINVAL:
    case EOPNOTSUPP:
        return "Linux 5.18 or later is needed, 6.1 or later is tested";
    default:
        return {};
    }
}

} // namespace

tl::unexpected<Error> refusal(std::string_view what, int error, std::string_view remedy) {
    const int number = std::abs(error);
    const std::string_view advice = remedy.empty() ? usual_remedy(number) : remedy;
    return failure(number == EPERM || number == EACCES ? ErrorKind::not_permitted : ErrorKind::kernel_refused,
                   fmt::format("{}: {} (errno {}){}{}", what, errno_text(number), number,
                               advice.empty() ? "" : "; ", advice));
}

} // namespace sieve::kernel
