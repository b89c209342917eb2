// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Objects that parallel tasks use one after the other, such as memory to work in: fresh memory costs the
// kernel's time to clear it.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace sieve {

// There are as many objects as tasks at one time. Safe for use by several threads.
template <class T>
class Reused {
  public:
    // Calls `work` with an object that no other task has at the time: one that was used before, or a new T{}.
    template <class Work>
    void with(const Work& work) {
        std::unique_ptr<T> object = take();
        work(*object);
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(object));
    }

  private:
    std::unique_ptr<T> take() {
        {
            const std::lock_guard lock(mutex_);
            if (!idle_.empty()) {
                std::unique_ptr<T> object = std::move(idle_.back());
                idle_.pop_back();
                return object;
            }
        }
        return std::make_unique<T>();
    }

    std::mutex mutex_;
    std::vector<std::unique_ptr<T>> idle_;
};

} // namespace sieve
