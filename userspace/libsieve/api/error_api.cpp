// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include <fmt/core.h>

#include "libsieve/api/handles.hpp"
#include "libsieve/util/results/error_kind.hpp"
#include "libsieve/util/text/version.hpp"

namespace sieve::api {

namespace {

int kind_of(ErrorKind kind) {
    if (kind == ErrorKind::lockout) return LIBSIEVE_ERROR_LOCKOUT;
    if (kind == ErrorKind::out_of_memory) return LIBSIEVE_ERROR_MEMORY;
    switch (facts_of(kind).group) {
    case ErrorGroup::no:
        return LIBSIEVE_ERROR_NO;
    case ErrorGroup::request:
        return LIBSIEVE_ERROR_INVALID;
    case ErrorGroup::input:
        return LIBSIEVE_ERROR_BAD_INPUT;
    case ErrorGroup::kernel:
        return LIBSIEVE_ERROR_KERNEL;
    case ErrorGroup::unfinished:
        return LIBSIEVE_ERROR_UNFINISHED;
    }
    return LIBSIEVE_ERROR_INVALID;
}

} // namespace

bool fail(libsieve_error** error, const Error& problem) {
    return fail(error, kind_of(problem.kind), problem.message.c_str());
}

bool fail(libsieve_error** error, int kind, const char* message) noexcept {
    if (error == nullptr) return false;
    try {
        *error = std::make_unique<libsieve_error>(libsieve_error{kind, message}).release();
    } catch (const std::bad_alloc&) {
        // There is no memory for an error object. The accessors take a null error to mean just that.
        *error = nullptr;
    }
    return false;
}

Status check_needed(const char* function, std::initializer_list<Needed> arguments) {
    for (const auto& [name, pointer] : arguments)
        if (pointer == nullptr) return invalid_request(fmt::format("{}: `{}` is NULL", function, name));
    return {};
}

Status check_size(std::size_t size) {
    constexpr std::size_t largest = 4096; // of a structure, in any version
    if (size > sizeof(std::size_t) && size <= largest) return {};
    return invalid_request(
        fmt::format("`options` has size {}, expected what LIBSIEVE_INIT sets, which was not called", size));
}

} // namespace sieve::api

const char* libsieve_version() {
    return sieve::version;
}

int libsieve_error_kind(const libsieve_error* error) {
    return error != nullptr ? error->kind : LIBSIEVE_ERROR_MEMORY;
}

const char* libsieve_error_message(const libsieve_error* error) {
    return error != nullptr ? error->message.c_str() : "there is not enough memory";
}

void libsieve_error_free(libsieve_error* error) {
    std::unique_ptr<libsieve_error>{error}.reset();
}
