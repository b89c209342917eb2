// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/formats/translator.hpp"

namespace sieve::formats {

const FormatReader& reader_of(ListSyntax syntax) {
    static constexpr FormatReader none{};
    switch (syntax) {
    case ListSyntax::automatic:
    case ListSyntax::plain:
        break;
#define SIEVE_CASE(name, parts, several, summary)                                                            \
    case ListSyntax::name:                                                                                   \
        return name##_format;
        SIEVE_LIST_FORMATS(SIEVE_CASE)
#undef SIEVE_CASE
    }
    return none;
}

} // namespace sieve::formats
