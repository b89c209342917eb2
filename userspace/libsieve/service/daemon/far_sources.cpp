// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/daemon/far_sources.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/core.h>

#include "libsieve/service/daemon/broken_off.hpp"
#include "libsieve/service/sandbox/child_role.hpp"
#include "libsieve/util/event.hpp"

namespace sieve::service {

struct FarSources::Visit {
    Answer answer;
    const SetConfiguration& set; // of the answer's configuration
    bool failing = false;
    UniqueFd cancel;
    SandboxSettings sandbox;
};

struct FarSources::Seat {
    std::shared_ptr<Visit> visit; // null: it is free
    std::unique_ptr<Worker> worker;
    EventSource ended;
};

FarSources::FarSources(EventLoop& loop, const StateDirectory& state, HostAddresses& host, Log& log,
                       std::function<void(Answer answer)> answered)
    : loop_(loop), state_(state), host_(host), log_(log), answered_(std::move(answered)) {}

FarSources::~FarSources() {
    call_off();
}

FarRoom FarSources::room() const {
    const auto count = [this](const auto& is) {
        return static_cast<std::size_t>(std::ranges::count_if(
            seats_, [&](const std::unique_ptr<Seat>& seat) { return seat->visit && is(*seat->visit); }));
    };
    const bool any = count([](const Visit&) { return true; }) < most_sets;
    return {any, any && count([](const Visit& visit) { return visit.failing; }) < most_failing};
}

Status FarSources::ask(const std::shared_ptr<const Configuration>& configuration, const SetConfiguration& set,
                       bool failing, const SandboxSettings& sandbox) {
    auto free = std::ranges::find_if(seats_, [](const std::unique_ptr<Seat>& seat) { return !seat->visit; });
    if (free == seats_.end()) {
        auto seat = std::make_unique<Seat>();
        SIEVE_ASSIGN(seat->worker, Worker::start(Priority::low));
        SIEVE_ASSIGN(seat->ended,
                     loop_.on_readable(seat->worker->ended(), [this, mine = seat.get()] { end(*mine); }));
        seats_.push_back(std::move(seat));
        free = std::prev(seats_.end());
    }
    SIEVE_ASSIGN(UniqueFd cancel, make_event());
    auto visit = std::make_shared<Visit>(
        Visit{{.set = set.name, .configuration = configuration}, set, failing, std::move(cancel), sandbox});
    visit->sandbox.cancel = visit->cancel.get();
    visit->sandbox.run = [this, run = sandbox.run](const ChildOrder& order) {
        if (order.role == ChildRole::fetch || order.role == ChildRole::command) return run(order);
        readers_.acquire();
        struct Release {
            std::counting_semaphore<most_readers>& readers;
            ~Release() { readers.release(); }
        } const release{readers_};
        return run(order);
    };
    (*free)->visit = visit;
    (*free)->worker->run([this, visit] {
        control::Observer observer;
        observer.remark = [this](const std::string& text) { log_.info(text); };
        try {
            visit->answer.survey = std::make_shared<SetSurvey>(survey_set(
                *visit->answer.configuration, visit->set, state_, host_, visit->sandbox, observer));
        } catch (const std::exception& error) {
            log_.error(fmt::format("set {}: asking its sources broke off: {}", visit->answer.set,
                                   why_broken_off(error)));
        }
    });
    return {};
}

void FarSources::end(Seat& seat) {
    seat.worker->acknowledge();
    if (const std::shared_ptr<Visit> visit = std::exchange(seat.visit, nullptr))
        answered_(std::move(visit->answer));
}

void FarSources::call_off() {
    for (const std::unique_ptr<Seat>& seat : seats_) {
        if (!seat->visit) continue;
        seat->visit->answer.called_off = true;
        set_event(seat->visit->cancel.get());
    }
}

} // namespace sieve::service
