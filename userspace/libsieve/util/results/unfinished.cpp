// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/results/unfinished.hpp"

#include <string>

namespace sieve {

namespace {

tl::unexpected<Error> joined(std::string_view first, std::string_view middle, const Error& why) noexcept {
    Error error{ErrorKind::unfinished, {}, {}};
    try {
        error.message.append(first).append(middle).append(": ").append(why.message);
    } catch (const std::exception&) {
        error.message = "not finished"; // short enough to need no allocation
    }
    return tl::unexpected(std::move(error));
}

} // namespace

tl::unexpected<Error> unfinished(std::string_view what_holds, const Error& why) noexcept {
    return joined(what_holds, "", why);
}

tl::unexpected<Error> outcome_unknown(std::string_view what, const Error& why) noexcept {
    return joined(what, ": whether that was done is not known, `xdp-sieve status` tells", why);
}

} // namespace sieve
