// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "fleet/servers.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <fmt/core.h>

namespace sieve::fleet::test {

bool answers(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

Process::Process(const Folder& folder, const std::string& log, const std::vector<std::string>& arguments) {
    std::vector<char*> words;
    for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    const std::string path = folder.path("");
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int file = ::open(folder.path(log).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    if (::chdir(path.c_str()) == 0) ::execvp(words[0], words.data());
    ::_exit(127);
}

void Process::signal(int number) const {
    if (pid_ > 0) ::kill(pid_, number);
}

void Process::end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
}

bool Process::has_ended() {
    if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
    return pid_ <= 0;
}

void make_certificates(const Folder& folder) {
    const std::string key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    folder.shell("openssl req -x509 " + key + " -keyout ca.key -out ca.pem -days 2 -subj /CN=sieve-test-ca");
    folder.write("extensions", "subjectAltName = DNS:localhost, IP:127.0.0.1\n"
                               "extendedKeyUsage = serverAuth, clientAuth\n");
    for (const std::string name : {"server", "client"}) {
        folder.shell("openssl req -new " + key + " -keyout " + name + ".key -out " + name +
                     ".csr -subj /CN=localhost");
        folder.shell("openssl x509 -req -in " + name +
                     ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
                     "-extfile extensions -out " +
                     name + ".pem");
    }
}

Etcd::Etcd(std::uint16_t port, Tls tls) : port_(port), tls_(tls) {
    if (tls_ != Tls::none) make_certificates(folder_);
    start();
}

std::string Etcd::url() const {
    return fmt::format("{}://localhost:{}", tls_ == Tls::none ? "http" : "https", port_);
}

void Etcd::start() {
    const std::string peer = fmt::format("http://localhost:{}", port_ + 1);
    std::vector<std::string> arguments{
        "etcd",
        "--data-dir",
        "data",
        "--listen-client-urls",
        fmt::format("{}://127.0.0.1:{}", tls_ == Tls::none ? "http" : "https", port_),
        "--advertise-client-urls",
        url(),
        "--listen-peer-urls",
        fmt::format("http://127.0.0.1:{}", port_ + 1),
        "--initial-advertise-peer-urls",
        peer,
        "--initial-cluster",
        "default=" + peer,
        "--heartbeat-interval",
        "10",
        "--election-timeout",
        "100",
        "--unsafe-no-fsync"};
    if (tls_ != Tls::none)
        arguments.insert(arguments.end(), {"--cert-file", "server.pem", "--key-file", "server.key"});
    if (tls_ == Tls::of_both)
        arguments.insert(arguments.end(), {"--client-cert-auth", "--trusted-ca-file", "ca.pem"});
    process_ = Process(folder_, "etcd.log", arguments);
    // A member that listens may not have a leader yet.
    const auto up = [&] {
        if (process_.has_ended()) throw std::runtime_error("etcd: " + folder_.read("etcd.log"));
        if (!answers(port_)) return false;
        EtcdClient client(settings());
        const auto read = client.read("a");
        return read.has_value() || read.error().message.find("user") != std::string::npos;
    };
    if (!await(up)) throw std::runtime_error("etcd does not answer: " + folder_.read("etcd.log"));
}

void Etcd::lose_data() {
    kill();
    std::filesystem::remove_all(folder_.path("data"));
}

void Etcd::back_up() {
    kill();
    folder_.shell("rm -rf backup && cp -a data backup");
    start();
}

void Etcd::restore() {
    kill();
    folder_.shell("rm -rf data && cp -a backup data");
    start();
}

EtcdSettings Etcd::settings() const {
    EtcdSettings settings;
    settings.endpoints = {url()};
    settings.patience = std::chrono::seconds(60); // the machine may be busy
    if (tls_ != Tls::none) settings.access.server.authorities = folder_.read("ca.pem");
    if (tls_ == Tls::of_both) {
        settings.access.server.certificate = folder_.read("client.pem");
        settings.access.server.key = folder_.read("client.key");
    }
    return settings;
}

std::string Etcd::ctl(const std::string& arguments) const {
    std::string tls;
    if (tls_ != Tls::none) tls = " --cacert ca.pem --cert client.pem --key client.key";
    folder_.shell("ETCDCTL_API=3 etcdctl --endpoints " + url() + tls + " " + arguments + " >ctl.out");
    std::string said = folder_.read("ctl.out");
    while (!said.empty() && said.back() == '\n') said.pop_back();
    return said;
}

namespace {

constexpr const char* configuration = R"(
daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events {{ worker_connections 256; }}
http {{
    log_format short '$request_method $uri $status $body_bytes_sent';
    access_log access.log short;
    default_type application/octet-stream;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    client_max_body_size 0;
    root www;
    dav_methods PUT;
    create_full_put_path on;
    server {{
        listen 127.0.0.1:{0};
        location /slow/ {{ alias www/blobs/; limit_rate 64k; }}
        location /whole/ {{ alias www/blobs/; max_ranges 0; }}
        location /closed/ {{ return 503; }}
    }}
    server {{
        listen 127.0.0.1:{1} ssl;
        ssl_certificate server.pem;
        ssl_certificate_key server.key;
        ssl_client_certificate ca.pem;
        ssl_verify_client on;
    }}
}}
)";

} // namespace

Store::Store(std::uint16_t port) : port_(port) {
    make_certificates(folder_);
    folder_.shell("mkdir -p www/blobs && chmod 777 www www/blobs");
    folder_.write("nginx.conf", fmt::format(configuration, port_, port_ + 1));
    start();
}

void Store::start() {
    process_ = Process(folder_, "nginx.log", {"nginx", "-p", folder_.path(""), "-c", "nginx.conf"});
    const auto up = [&] {
        if (process_.has_ended())
            throw std::runtime_error("nginx: " + folder_.read("nginx.log") + folder_.read("error.log"));
        return answers(port_) && answers(port_ + 1);
    };
    if (!await(up)) throw std::runtime_error("nginx does not answer");
}

StoreSettings Store::settings(const std::string& path) const {
    return {.url = fmt::format("http://localhost:{}{}", port_, path)};
}

StoreSettings Store::tls_settings() const {
    StoreSettings settings{.url = fmt::format("https://localhost:{}/blobs", port_ + 1)};
    settings.access.server.authorities = folder_.read("ca.pem");
    settings.access.server.certificate = folder_.read("client.pem");
    settings.access.server.key = folder_.read("client.key");
    return settings;
}

} // namespace sieve::fleet::test
