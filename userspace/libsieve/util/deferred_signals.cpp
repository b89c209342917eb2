// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/util/deferred_signals.hpp"

namespace sieve {

namespace {

volatile std::sig_atomic_t arrived = 0;

} // namespace

DeferredSignals::DeferredSignals() {
    arrived = 0;
    struct sigaction deferred {};
    deferred.sa_handler = [](int signal) { arrived = signal; }; // no SA_RESTART: system calls return early
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    for (std::size_t i = 0; i < signals.size(); i++) {
        ::sigaction(signals[i], nullptr, &before_[i]);
        if (before_[i].sa_handler == SIG_DFL)
            ::sigaction(signals[i], signals[i] == SIGXFSZ ? &ignored : &deferred, nullptr);
    }
}

DeferredSignals::~DeferredSignals() {
    for (std::size_t i = 0; i < signals.size(); i++) ::sigaction(signals[i], &before_[i], nullptr);
    if (const int signal = arrived; signal != 0) ::raise(signal); // NOLINT(cert-err33-c)
}

bool DeferredSignals::pending() const {
    return arrived != 0;
}

} // namespace sieve
