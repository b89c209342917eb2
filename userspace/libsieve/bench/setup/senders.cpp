// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/bench/setup/senders.hpp"

#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sieve/policy.h>

#include "libsieve/bench/setup/frames.hpp"
#include "libsieve/bench/setup/veth_pair.hpp"
#include "libsieve/kernel/host/refusal.hpp"
#include "libsieve/util/system/unique_fd.hpp"

#include "bpf/bench/bench_control.h"
#include "sieve_bench.skel.h"

namespace sieve::bench {

namespace {

constexpr std::uint32_t batch = 64;

class FrameSender : public Sender {
  public:
    FrameSender(const BenchObject& object, std::uint32_t packets_a_call)
        : program_(bpf_program__fd(object.skeleton().progs.bench_send)), packets_a_call_(packets_a_call) {
        object.control().interface = if_nametoindex(VethPair::sender);
        object.control().header_sum = header_sum(frame_);
    }

    Result<std::uint64_t> send_for(std::chrono::duration<double> time) override {
        const auto start = std::chrono::steady_clock::now();
        std::uint64_t sent = 0;
        for (; std::chrono::steady_clock::now() - start < time; sent += packets_a_call_) {
            xdp_md context{};
            context.data_end = frame_bytes;
            LIBBPF_OPTS(bpf_test_run_opts, options);
            options.data_in = frame_.data();
            options.data_size_in = frame_bytes;
            options.ctx_in = &context;
            options.ctx_size_in = sizeof(context);
            options.repeat = static_cast<int>(packets_a_call_);
            options.batch_size = batch;
            options.flags = BPF_F_TEST_XDP_LIVE_FRAMES;
            if (bpf_prog_test_run_opts(program_, &options) != 0 && errno != EINTR)
                return kernel::refusal("sending XDP frames", errno);
        }
        return sent;
    }

  private:
    int program_;
    std::uint32_t packets_a_call_;
    Frame frame_ = ipv4_tcp_frame();
};

class SocketSender : public Sender {
  public:
    SocketSender(UniqueFd socket, const BenchObject& object)
        : socket_(std::move(socket)), object_(&object), frames_(batch, ipv4_tcp_frame()), vectors_(batch),
          messages_(batch), header_sum_(header_sum(frames_[0])) {
        for (std::size_t i = 0; i < batch; i++) {
            vectors_[i] = {frames_[i].data(), frame_bytes};
            messages_[i].msg_hdr.msg_iov = &vectors_[i];
            messages_[i].msg_hdr.msg_iovlen = 1;
        }
    }

    Result<std::uint64_t> send_for(std::chrono::duration<double> time) override {
        const auto start = std::chrono::steady_clock::now();
        std::uint64_t sent = 0;
        bench_control& control = object_->control();
        while (std::chrono::steady_clock::now() - start < time)
            for (int i = 0; i < 64; i++) {
                for (Frame& frame : frames_)
                    set_source(frame, bench_address(bench_draw(&state_, control.first, control.indices)));
                const int count = ::sendmmsg(socket_.get(), messages_.data(), batch, 0);
                if (count > 0)
                    sent += static_cast<std::uint64_t>(count);
                else if (errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
                    return kernel::refusal("sending on a packet socket", errno);
            }
        return sent;
    }

  private:
    void set_source(Frame& frame, std::uint32_t address) const {
        const std::uint32_t source = htonl(address);
        const std::uint16_t checksum = htons(bench_checksum(header_sum_, address));
        std::memcpy(frame.data() + ipv4_source, &source, sizeof(source));
        std::memcpy(frame.data() + ipv4_checksum, &checksum, sizeof(checksum));
    }

    UniqueFd socket_;
    const BenchObject* object_;
    __u64 state_ = 1;
    std::vector<Frame> frames_;
    std::vector<iovec> vectors_;
    std::vector<mmsghdr> messages_;
    std::uint32_t header_sum_;
};

} // namespace

std::unique_ptr<Sender> frame_sender(const BenchObject& object, std::uint32_t packets_a_call) {
    return std::make_unique<FrameSender>(object, packets_a_call);
}

Result<std::unique_ptr<Sender>> socket_sender(const BenchObject& object) {
    UniqueFd socket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
    if (!socket) return kernel::refusal("a packet socket", errno);
    const int yes = 1;
    ::setsockopt(socket.get(), SOL_PACKET, PACKET_QDISC_BYPASS, &yes, sizeof(yes));
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_ifindex = static_cast<int>(if_nametoindex(VethPair::sender));
    if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
        return kernel::refusal("binding a packet socket", errno);
    return std::unique_ptr<Sender>(new SocketSender(std::move(socket), object));
}

} // namespace sieve::bench
