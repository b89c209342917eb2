// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The functions of libcurl that this project calls.
#include "libsieve/service/download/libcurl_on_demand.hpp"

#include <curl/curl.h>

#include <cstdarg>

#include "libsieve/util/system/library_on_demand.hpp"

// These macros check the types of arguments.
#undef curl_easy_setopt
#undef curl_easy_getinfo

namespace {

constexpr sieve::LibraryOnDemand libcurl("libcurl.so.4", "libcurl4");

// The type of a function's first parameter, which became a pointer to const in a later libcurl.
template <class Result, class First, class... More>
First first_of(Result (*)(First, More...));

} // namespace

namespace sieve::service {

Status libcurl_is_there() {
    return libcurl.open();
}

} // namespace sieve::service

#define LIBCURL(name) SIEVE_ON_DEMAND(libcurl, name)

// These two take one more argument: a long, a curl_off_t or a pointer, which all travel alike. C++ does not
// let an enum be the last parameter before it, so they have names and parameters of their own here, and the
// library's names for the linker.
static_assert(sizeof(long) == sizeof(void*) && sizeof(curl_off_t) == sizeof(void*));
static_assert(sizeof(CURLoption) == sizeof(int) && sizeof(CURLINFO) == sizeof(int));
extern "C" CURLcode set_option(CURL* curl, int option, ...) __asm__("curl_easy_setopt");
extern "C" CURLcode get_info(CURL* curl, int info, ...) __asm__("curl_easy_getinfo");

CURLcode set_option(CURL* curl, int option, ...) {
    va_list more;
    va_start(more, option);
    void* const argument = va_arg(more, void*);
    va_end(more);
    return LIBCURL(curl_easy_setopt)(curl, static_cast<CURLoption>(option), argument);
}
CURLcode get_info(CURL* curl, int info, ...) {
    va_list more;
    va_start(more, info);
    void* const argument = va_arg(more, void*);
    va_end(more);
    return LIBCURL(curl_easy_getinfo)(curl, static_cast<CURLINFO>(info), argument);
}

CURLcode curl_global_init(long flags) {
    return LIBCURL(curl_global_init)(flags);
}
void curl_free(void* memory) {
    LIBCURL(curl_free)(memory);
}

CURL* curl_easy_init() {
    return LIBCURL(curl_easy_init)();
}
CURLcode curl_easy_perform(CURL* curl) {
    return LIBCURL(curl_easy_perform)(curl);
}
void curl_easy_reset(CURL* curl) {
    LIBCURL(curl_easy_reset)(curl);
}
void curl_easy_cleanup(CURL* curl) {
    LIBCURL(curl_easy_cleanup)(curl);
}
const char* curl_easy_strerror(CURLcode code) {
    return LIBCURL(curl_easy_strerror)(code);
}

curl_slist* curl_slist_append(curl_slist* list, const char* text) {
    return LIBCURL(curl_slist_append)(list, text);
}
void curl_slist_free_all(curl_slist* list) {
    LIBCURL(curl_slist_free_all)(list);
}

CURLM* curl_multi_init() {
    return LIBCURL(curl_multi_init)();
}
CURLMcode curl_multi_add_handle(CURLM* multi, CURL* curl) {
    return LIBCURL(curl_multi_add_handle)(multi, curl);
}
CURLMcode curl_multi_remove_handle(CURLM* multi, CURL* curl) {
    return LIBCURL(curl_multi_remove_handle)(multi, curl);
}
CURLMcode curl_multi_perform(CURLM* multi, int* running) {
    return LIBCURL(curl_multi_perform)(multi, running);
}
CURLMcode curl_multi_poll(CURLM* multi, curl_waitfd* more, unsigned int count, int milliseconds, int* ready) {
    return LIBCURL(curl_multi_poll)(multi, more, count, milliseconds, ready);
}
CURLMsg* curl_multi_info_read(CURLM* multi, int* left) {
    return LIBCURL(curl_multi_info_read)(multi, left);
}
CURLMcode curl_multi_cleanup(CURLM* multi) {
    return LIBCURL(curl_multi_cleanup)(multi);
}

CURLU* curl_url() {
    return LIBCURL(curl_url)();
}
CURLUcode curl_url_set(CURLU* url, CURLUPart which, const char* text, unsigned int flags) {
    return LIBCURL(curl_url_set)(url, which, text, flags);
}
CURLUcode curl_url_get(decltype(first_of(&::curl_url_get)) url, CURLUPart which, char** text,
                       unsigned int flags) {
    return LIBCURL(curl_url_get)(url, which, text, flags);
}
void curl_url_cleanup(CURLU* url) {
    LIBCURL(curl_url_cleanup)(url);
}
