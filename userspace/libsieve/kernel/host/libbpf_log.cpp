// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/kernel/host/libbpf_log.hpp"

#include <cstdarg>
#include <cstdio>
#include <string_view>
#include <vector>

#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

namespace sieve::kernel {

namespace {

bool verbose_output = false;
thread_local std::string* capture = nullptr;

// A verifier log can be 16 MiB. We keep its end, which says what is wrong, and its beginning for the
// headline.
constexpr std::size_t capture_limit = 1 << 20;

void keep(const char* format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    const int length = std::vsnprintf(nullptr, 0, format, again);
    va_end(again);
    if (length <= 0) return;
    std::string line(static_cast<std::size_t>(length) + 1, '\0');
    std::vsnprintf(line.data(), line.size(), format, arguments);
    line.resize(static_cast<std::size_t>(length));
    if (line.size() > capture_limit) line.erase(0, line.size() - capture_limit);
    if (capture->size() + line.size() <= capture_limit) *capture += line;
}

int print(bool detail, const char* format, va_list arguments) {
    if (verbose_output) {
        va_list again;
        va_copy(again, arguments);
        std::vfprintf(stderr, format, again);
        va_end(again);
    }
    if (capture != nullptr && !detail) keep(format, arguments);
    return 0;
}

int print_libbpf(libbpf_print_level level, const char* format, va_list arguments) {
    return print(level == LIBBPF_DEBUG, format, arguments);
}

int print_libxdp(libxdp_print_level level, const char* format, va_list arguments) {
    return print(level == LIBXDP_DEBUG, format, arguments);
}

void install() {
    libbpf_set_print(print_libbpf);
    libxdp_set_print(print_libxdp);
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        if (end != 0) lines.push_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return lines;
}

} // namespace

void set_verbose(bool verbose) {
    verbose_output = verbose;
    install();
}

LogCapture::LogCapture() {
    capture = &text_;
    install();
}

LogCapture::~LogCapture() {
    capture = nullptr;
}

std::string LogCapture::verifier_log(std::size_t lines) const {
    // libbpf puts the verifier's log between these two marks.
    std::string_view text = text_;
    const std::size_t begin = text.rfind("-- BEGIN PROG LOAD LOG --");
    if (begin == std::string_view::npos) return {};
    text.remove_prefix(text.find('\n', begin) + 1);
    text = text.substr(0, text.find("-- END PROG LOAD LOG --"));
    text = text.substr(0, text.rfind('\n'));
    const std::vector<std::string_view> all = lines_of(text);
    std::string end;
    for (std::size_t i = all.size() > lines ? all.size() - lines : 0; i < all.size(); i++) {
        if (!end.empty()) end += '\n';
        end += all[i];
    }
    return end;
}

std::string LogCapture::kernel_message() const {
    constexpr std::string_view mark = "Kernel error message: ";
    const std::size_t begin = text_.rfind(mark);
    if (begin == std::string::npos) return {};
    const std::size_t from = begin + mark.size();
    return text_.substr(from, text_.find('\n', from) - from);
}

} // namespace sieve::kernel
