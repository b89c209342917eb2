// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/feeds/formats/translator.hpp"

namespace sieve::formats {

Result<std::unique_ptr<const LineTranslator>>
make_line_translator(const ListFormat& format, std::uint32_t fields, std::string_view head) {
    switch (format.syntax) {
    case ListSyntax::hosts:
        return hosts_translator();
    case ListSyntax::dshield:
        return dshield_translator();
    case ListSyntax::p2p:
        return p2p_translator();
    case ListSyntax::ipset:
        return ipset_translator(format, fields, head);
    case ListSyntax::csv:
        return csv_translator(format, fields, head);
    case ListSyntax::automatic:
    case ListSyntax::plain:
    case ListSyntax::json:
    case ListSyntax::nft:
    case ListSyntax::geo:
        break;
    }
    return invalid_request("this format is not translated line by line");
}

Status translate_document(const ListFormat& format, std::uint32_t fields, std::string_view document,
                          const EntrySink& sink) {
    return format.syntax == ListSyntax::json ? translate_json(format, fields, document, sink)
                                             : translate_nft(format, fields, document, sink);
}

} // namespace sieve::formats
