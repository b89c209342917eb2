// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The functions of libzstd that this project calls.
#include <zstd.h>

#include "libsieve/util/library_on_demand.hpp"

namespace {

constexpr sieve::LibraryOnDemand libzstd("libzstd.so.1", "libzstd1");

} // namespace

#define LIBZSTD(name) SIEVE_ON_DEMAND(libzstd, name)

ZSTD_CCtx* ZSTD_createCCtx() {
    return LIBZSTD(ZSTD_createCCtx)();
}
size_t ZSTD_freeCCtx(ZSTD_CCtx* context) {
    return LIBZSTD(ZSTD_freeCCtx)(context);
}
size_t ZSTD_CCtx_setParameter(ZSTD_CCtx* context, ZSTD_cParameter parameter, int value) {
    return LIBZSTD(ZSTD_CCtx_setParameter)(context, parameter, value);
}
size_t ZSTD_CCtx_refPrefix(ZSTD_CCtx* context, const void* prefix, size_t size) {
    return LIBZSTD(ZSTD_CCtx_refPrefix)(context, prefix, size);
}
size_t ZSTD_compressBound(size_t size) {
    return LIBZSTD(ZSTD_compressBound)(size);
}
size_t ZSTD_compress2(ZSTD_CCtx* context, void* to, size_t capacity, const void* from, size_t size) {
    return LIBZSTD(ZSTD_compress2)(context, to, capacity, from, size);
}
ZSTD_DCtx* ZSTD_createDCtx() {
    return LIBZSTD(ZSTD_createDCtx)();
}
size_t ZSTD_freeDCtx(ZSTD_DCtx* context) {
    return LIBZSTD(ZSTD_freeDCtx)(context);
}
size_t ZSTD_DCtx_setParameter(ZSTD_DCtx* context, ZSTD_dParameter parameter, int value) {
    return LIBZSTD(ZSTD_DCtx_setParameter)(context, parameter, value);
}
size_t ZSTD_DCtx_refPrefix(ZSTD_DCtx* context, const void* prefix, size_t size) {
    return LIBZSTD(ZSTD_DCtx_refPrefix)(context, prefix, size);
}
size_t ZSTD_decompressDCtx(ZSTD_DCtx* context, void* to, size_t capacity, const void* from, size_t size) {
    return LIBZSTD(ZSTD_decompressDCtx)(context, to, capacity, from, size);
}
unsigned ZSTD_isError(size_t code) {
    return LIBZSTD(ZSTD_isError)(code);
}
const char* ZSTD_getErrorName(size_t code) {
    return LIBZSTD(ZSTD_getErrorName)(code);
}
