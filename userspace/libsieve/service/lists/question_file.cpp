// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/service/lists/question_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "libsieve/image/exceptions.hpp"
#include "libsieve/util/system/read_whole.hpp"
#include "libsieve/util/system/write_all.hpp"

namespace sieve::service {

namespace {

template <class T>
Status write_items(int to, std::span<const T> items) {
    static_assert(std::is_trivially_copyable_v<T>);
    return write_all(to, {reinterpret_cast<const char*>(items.data()), items.size_bytes()});
}

tl::unexpected<Error> damaged() {
    return bad_input("what a joint filter must not match was cut short or mixed up");
}

template <class T>
Status read_items(int from, std::span<T> items) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (!read_whole(from, items.data(), items.size_bytes())) return damaged();
    return {};
}

} // namespace

Status write_question_file(const control::JointTask& task, int to) {
    std::vector<std::uint64_t> counts;
    for (const control::JointSet& set : task.sets) counts.push_back(set.exceptions.size());
    counts.push_back(task.spared.size());
    SIEVE_TRY(write_items(to, std::span<const std::uint64_t>(counts)));
    for (const control::JointSet& set : task.sets)
        SIEVE_TRY(write_items(to, std::span<const sieve_exception>(set.exceptions)));
    return write_items(to, std::span<const sieve_key>(task.spared));
}

Status read_question_file(int from, control::JointTask& task) {
    struct stat info {};
    if (::fstat(from, &info) != 0 || ::lseek(from, 0, SEEK_SET) != 0) return bad_input(errno_text(errno));
    std::vector<std::uint64_t> counts(task.sets.size() + 1);
    SIEVE_TRY(read_items(from, std::span(counts)));
    std::uint64_t bytes = counts.size() * sizeof(std::uint64_t);
    for (std::size_t i = 0; i < task.sets.size(); i++) {
        if (counts[i] > most_exceptions) return damaged();
        bytes += counts[i] * sizeof(sieve_exception);
    }
    const auto size = static_cast<std::uint64_t>(info.st_size);
    if (size < bytes || (size - bytes) % sizeof(sieve_key) != 0 ||
        (size - bytes) / sizeof(sieve_key) != counts.back())
        return damaged();
    for (std::size_t i = 0; i < task.sets.size(); i++) {
        task.sets[i].exceptions.resize(counts[i]);
        SIEVE_TRY(read_items(from, std::span(task.sets[i].exceptions)));
    }
    task.spared.resize(counts.back());
    return read_items(from, std::span(task.spared));
}

} // namespace sieve::service
