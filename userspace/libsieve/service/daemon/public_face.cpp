// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/public_face.hpp"

#include <unistd.h>

#include <ctime>
#include <utility>

#include <fmt/core.h>

#include "libsieve/util/text/version.hpp"

namespace sieve::service {

namespace {

watching::NoteWait patient(Log& log) {
    return {.begun = [&log] { log.info("waiting for a child of the daemon before this one to end"); }};
}

} // namespace

Status PublicFace::claim(const std::string& path, const Configuration& configuration, Log& log) {
    SIEVE_ASSIGN(claim_, watching::NamespaceClaim::take(
                             [&log](const std::string& text) { log.warning(text); }, patient(log)));
    manager_ = {.pid = ::getpid(),
                .started = std::time(nullptr),
                .listen = configuration.listen,
                .state = configuration.state_directory,
                .version = version,
                .configuration = path};
    return leave_note(log);
}

Status PublicFace::leave_note(Log& log) {
    note_.reset();
    auto note = watching::ManagerNote::leave(manager_, kernel::Lock::folder, patient(log));
    if (!note) return tl::unexpected(std::move(note.error()));
    note_.emplace(std::move(*note));
    return {};
}

void PublicFace::tell(const std::string& standing, Log& log) {
    const bool news = std::exchange(manager_.standing, standing) != standing;
    if (note_ && note_->is_there()) {
        if (Status told = news ? note_->update(standing) : Status(); !told) log.warning(told.error().message);
        return;
    }
    if (Status left = leave_note(log); !left)
        log.warning(left.error().message);
    else
        log.warning("the note of who manages this network namespace was removed, and is there again");
}

void PublicFace::follow(const Configuration& configuration, watching::Statistics& statistics, Log& log) {
    if (configuration.listen == listen_) return;
    listen_ = configuration.listen;
    exposer_.reset();
    trouble_.clear();
    std::string address;
    if (!listen_.empty()) {
        auto exposer = watching::Exposer::start({.listen = listen_}, statistics, kernel_);
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
    manager_.listen = address;
    if (Status left = leave_note(log); !left) log.warning(left.error().message);
}

} // namespace sieve::service
