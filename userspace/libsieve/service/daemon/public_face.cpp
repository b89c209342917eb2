// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/public_face.hpp"

#include <unistd.h>

#include <ctime>
#include <utility>

#include <fmt/core.h>

#include "libsieve/util/version.hpp"

namespace sieve::service {

Status PublicFace::claim(const Configuration& configuration, Log& log) {
    return leave_note(configuration, configuration.listen, log);
}

Status PublicFace::leave_note(const Configuration& configuration, const std::string& listen, Log& log) {
    note_.reset();
    auto note = watching::ManagerNote::leave(
        {.pid = ::getpid(),
         .started = std::time(nullptr),
         .listen = listen,
         .state = configuration.state_directory,
         .version = version},
        kernel::Lock::folder,
        {.begun = [&log] { log.info("waiting for a child of the daemon before this one to end"); }});
    if (!note) return tl::unexpected(std::move(note.error()));
    note_.emplace(std::move(*note));
    return {};
}

void PublicFace::follow(const Configuration& configuration, watching::Ledger& ledger, Log& log) {
    if (configuration.listen == listen_) return;
    listen_ = configuration.listen;
    exposer_.reset();
    trouble_.clear();
    std::string address;
    if (!listen_.empty()) {
        auto exposer = watching::Exposer::start({.listen = listen_}, ledger, kernel_);
        if (exposer) {
            exposer_.emplace(std::move(*exposer));
            address = exposer_->address();
            log.info(fmt::format("metrics and status page: http://{}/", address));
        } else {
            trouble_ = fmt::format("no metrics and no status page: {}", exposer.error().message);
            log.error(trouble_);
            listen_.clear(); // the next reload tries again
        }
    }
    if (Status left = leave_note(configuration, address, log); !left) log.warning(left.error().message);
}

} // namespace sieve::service
