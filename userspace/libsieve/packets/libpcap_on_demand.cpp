// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The functions of libpcap that this project calls. The library is opened on demand.
#include <pcap/pcap.h>

#include "libsieve/util/system/library_on_demand.hpp"

namespace {

constexpr sieve::LibraryOnDemand libpcap("libpcap.so.0.8", "libpcap0.8");

} // namespace

#define LIBPCAP(name) SIEVE_ON_DEMAND(libpcap, name)

pcap_t* pcap_open_offline(const char* path, char* why) {
    return LIBPCAP(pcap_open_offline)(path, why);
}
pcap_t* pcap_open_dead_with_tstamp_precision(int link, int most, u_int precision) {
    return LIBPCAP(pcap_open_dead_with_tstamp_precision)(link, most, precision);
}
void pcap_close(pcap_t* capture) {
    LIBPCAP(pcap_close)(capture);
}
int pcap_datalink(pcap_t* capture) {
    return LIBPCAP(pcap_datalink)(capture);
}
const char* pcap_datalink_val_to_name(int link) {
    return LIBPCAP(pcap_datalink_val_to_name)(link);
}
FILE* pcap_file(pcap_t* capture) {
    return LIBPCAP(pcap_file)(capture);
}
int pcap_next_ex(pcap_t* capture, pcap_pkthdr** header, const u_char** bytes) {
    return LIBPCAP(pcap_next_ex)(capture, header, bytes);
}
char* pcap_geterr(pcap_t* capture) {
    return LIBPCAP(pcap_geterr)(capture);
}
pcap_dumper_t* pcap_dump_fopen(pcap_t* capture, FILE* file) {
    return LIBPCAP(pcap_dump_fopen)(capture, file);
}
void pcap_dump(u_char* to, const pcap_pkthdr* header, const u_char* bytes) {
    LIBPCAP(pcap_dump)(to, header, bytes);
}
FILE* pcap_dump_file(pcap_dumper_t* dumper) {
    return LIBPCAP(pcap_dump_file)(dumper);
}
int pcap_dump_flush(pcap_dumper_t* dumper) {
    return LIBPCAP(pcap_dump_flush)(dumper);
}
void pcap_dump_close(pcap_dumper_t* dumper) {
    LIBPCAP(pcap_dump_close)(dumper);
}
