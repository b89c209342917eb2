// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Real servers on loopback: etcd, and nginx as an object store.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "libsieve/fleet/servers/etcd_client.hpp"
#include "libsieve/fleet/servers/object_store.hpp"
#include "service/support.hpp"

namespace sieve::fleet::test {

using service::test::await;
using service::test::Folder;

// A process that ends with the test.
class Process {
  public:
    Process() = default;
    // Runs in the folder; its output goes to `log` there.
    Process(const Folder& folder, const std::string& log, const std::vector<std::string>& arguments);
    Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
    Process& operator=(Process&& other) noexcept {
        std::swap(pid_, other.pid_);
        return *this;
    }
    ~Process() { end(); }

    void signal(int number) const;
    void end(); // by SIGKILL
    [[nodiscard]] bool has_ended();

  private:
    pid_t pid_ = -1;
};

// True if something listens there.
bool answers(std::uint16_t port);

// Certificates of a test authority: ca.pem; server.pem and server.key for localhost; client.pem and
// client.key.
void make_certificates(const Folder& folder);

enum class Tls { none, of_server, of_both };

// One member. Its data are in a folder of its own.
class Etcd {
  public:
    explicit Etcd(std::uint16_t port = 2379, Tls tls = Tls::none);

    void start();
    void kill() { process_.end(); }
    void stop() const { process_.signal(SIGSTOP); }
    void go_on() const { process_.signal(SIGCONT); }
    // What was stored is gone.
    void lose_data();
    // Copies what is stored, and comes back with such a copy, as from an old backup.
    void back_up();
    void restore();

    [[nodiscard]] std::string url() const;
    [[nodiscard]] EtcdSettings settings() const;
    [[nodiscard]] const Folder& folder() const { return folder_; }
    // What etcdctl prints, without the last end of line. The command must succeed.
    std::string ctl(const std::string& arguments) const;

  private:
    Folder folder_;
    std::uint16_t port_;
    Tls tls_;
    Process process_;
};

// nginx takes blobs by PUT below http://localhost:PORT/blobs and https://localhost:PORT+1/blobs, the latter
// for those with a client certificate alone. Below /slow it sends 64 KiB a second, below /whole it serves no
// ranges.
class Store {
  public:
    explicit Store(std::uint16_t port = 8080);

    void start();
    void kill() { process_.end(); }

    [[nodiscard]] StoreSettings settings(const std::string& path = "/blobs") const;
    [[nodiscard]] StoreSettings tls_settings() const;
    // Lines such as "GET /blobs/DIGEST 206 17", with the bytes of the body, in the order of the answers.
    [[nodiscard]] std::string log() const { return folder_.read("access.log"); }
    [[nodiscard]] const Folder& folder() const { return folder_; }
    void remove_all() const { folder_.shell("rm -f www/blobs/*"); }
    void put(const std::string& name, const std::string& content) const {
        folder_.write("www/blobs/" + name, content);
    }
    [[nodiscard]] std::string stored(const std::string& name) const {
        return folder_.read("www/blobs/" + name);
    }

  private:
    Folder folder_;
    std::uint16_t port_;
    Process process_;
};

} // namespace sieve::fleet::test
