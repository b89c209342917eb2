// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "xdp-sieve/arguments/confine_lists.hpp"

#include <span>
#include <utility>

#include <fmt/core.h>

#include "libsieve/feeds/list_reader.hpp"
#include "libsieve/service/sandbox/confine.hpp"
#include "libsieve/service/sandbox/confined_lists.hpp"

namespace sieve::cli {

namespace {

Result<FoundList> read_confined(std::span<Input> inputs, const ListQuestion& question) {
    // A rescue system may have no list of users. Nobody's number means nobody there, too.
    const service::SandboxUser user = service::find_sandbox_user().value_or(service::SandboxUser{});
    Result<FoundList> found = service::read_confined(inputs, question, {.user = user});
    if (found || found.error().kind != ErrorKind::not_permitted) return found;
    return kernel_refused(fmt::format("{}: the process that is to read it cannot give up its privileges: {}; "
                                      "`--no-sandbox` has this process read it, privileges and all",
                                      inputs.front().name(), found.error().message));
}

} // namespace

void confine_lists() {
    if (service::has_privileges()) let_lists_be_read_by(read_confined);
}

} // namespace sieve::cli
