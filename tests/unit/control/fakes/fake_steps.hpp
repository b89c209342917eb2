// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// What a fake was asked to do, and what becomes of it. All fakes of one kernel share this part.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libsieve/util/results/result.hpp"

namespace sieve::test {

class FakeSteps {
  public:
    std::vector<std::string> steps; // what was done, in order

    // What happens from now on whenever a step is about to be done; an error is the step's. The step is then
    // neither done nor noted, unless the error says that it is unfinished.
    using Happens = std::function<Status(const std::string& step)>;
    void before(const std::string& step, Happens happens) {
        const std::lock_guard lock(mutex_);
        before_[step] = std::move(happens);
    }
    void refuse(const std::string& step, ErrorKind kind = ErrorKind::kernel_refused) {
        before(step, [kind](const std::string& what) { return failure(kind, what + " was refused"); });
    }
    void allow(const std::string& step) {
        const std::lock_guard lock(mutex_);
        before_.erase(step);
    }
    // What somebody else does before the step is done the next time.
    void once(const std::string& step, std::function<void()> meanwhile) {
        before(step, [this, meanwhile = std::move(meanwhile)](const std::string& what) {
            allow(what); // `meanwhile` may say what happens then
            meanwhile();
            return Status();
        });
    }

    [[nodiscard]] std::size_t count(const std::string& step) const {
        return static_cast<std::size_t>(std::ranges::count(steps, step));
    }
    [[nodiscard]] bool changed() const { return count("attach") + count("replace") + count("detach") > 0; }

  protected:
    // For a step that no test wants to see among the others.
    [[nodiscard]] Status meet(const std::string& step) {
        Happens happens;
        {
            const std::lock_guard lock(mutex_);
            const auto found = before_.find(step);
            if (found != before_.end()) happens = found->second;
        }
        return happens ? happens(step) : Status();
    }
    [[nodiscard]] Status take(const std::string& step) {
        const Status met = meet(step);
        if (met || met.error().kind == ErrorKind::unfinished) steps.push_back(step);
        return met;
    }
    // A step that changes something.
    [[nodiscard]] Status change(const std::string& step) {
        EXPECT_TRUE(held_) << step << " without the lock";
        return take(step);
    }
    static bool is_done(const Status& status) {
        return status || status.error().kind == ErrorKind::unfinished;
    }

    bool held_ = false; // the controllers' lock

  private:
    std::mutex mutex_; // a test's thread says what happens in the daemon's
    std::map<std::string, Happens> before_;
};

} // namespace sieve::test
