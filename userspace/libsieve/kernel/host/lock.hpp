// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// One controller at a time.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "libsieve/util/results/result.hpp"
#include "libsieve/util/system/unique_fd.hpp"

namespace sieve::kernel {

// The right to change what runs on the interfaces of this network namespace.
//
// The lock is flock(2) on the file /run/xdp-sieve/net-INODE.lock, where INODE is the network namespace's
// inode number. The folder belongs to root and nobody else may enter it, so nobody else can take the lock or
// block its holder. The kernel releases the lock of a controller that dies. The file holds the process id and
// the command of the lock's holder, for those who wait. Releasing the lock removes the file.
//
// Controllers of one network namespace that see different /run folders, as in containers, do not see each
// other's locks.
class Lock {
  public:
    // Waits up to `patience`, never longer; `waiting` is told once for each holder that is being waited for.
    // Errors: busy, naming the holder; not_permitted for anybody but root; kernel_refused if the folder is
    // not root's alone or cannot be made.
    static Result<Lock> take(std::chrono::milliseconds patience = std::chrono::seconds(10),
                             const std::function<void(const std::string& holder)>& waiting = {});

    Lock(Lock&& other) noexcept = default;
    Lock& operator=(Lock&& other) noexcept = default;
    ~Lock();

    static constexpr const char* folder = "/run/xdp-sieve";
    // The lock file's name in the folder, for the network namespace of the calling thread.
    [[nodiscard]] static Result<std::string> file_name();

  private:
    Lock(UniqueFd folder_fd, std::string name, UniqueFd file)
        : folder_(std::move(folder_fd)), name_(std::move(name)), file_(std::move(file)) {}

    UniqueFd folder_;
    std::string name_;
    UniqueFd file_;
};

} // namespace sieve::kernel
