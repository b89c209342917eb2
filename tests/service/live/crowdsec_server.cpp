// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "service/live/crowdsec_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace sieve::service::test {

namespace {

constexpr std::uint16_t port = 8081;
constexpr const char* bouncer_key = "0123456789abcdef0123456789abcdef";

bool answers() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

std::string configuration(const std::string& folder, bool tls) {
    return "common:\n  daemonize: false\n  log_media: stdout\n  log_level: info\n  working_dir: " + folder +
           "\nconfig_paths:\n  config_dir: " + folder + "\n  data_dir: " + folder +
           "\n  simulation_path: " + folder + "simulation.yaml\n  hub_dir: " + folder +
           "hub\n  index_path: " + folder + "hub/.index.json\n  notification_dir: " + folder +
           "hub\n  plugin_dir: " + folder +
           "hub\ncscli:\n  output: raw\ndb_config:\n  log_level: error\n  type: sqlite\n  use_wal: true\n  "
           "db_path: " +
           folder +
           "crowdsec.db\napi:\n  client:\n    insecure_skip_verify: false\n    credentials_path: " + folder +
           "credentials.yaml\n  server:\n    log_level: info\n    listen_uri: 127.0.0.1:" +
           std::to_string(port) + "\n    profiles_path: " + folder + "profiles.yaml\n" +
           (tls ? "    tls:\n      cert_file: " + folder + "server.pem\n      key_file: " + folder +
                      "server.key\n      ca_cert_path: " + folder +
                      "ca.pem\n      client_verification: VerifyClientCertIfGiven\n      "
                      "bouncers_allowed_ou:\n"
                      "        - sieve-bouncers\n      agents_allowed_ou:\n        - sieve-agents\n"
                : std::string()) +
           "prometheus:\n  enabled: false\n";
}

} // namespace

std::string Crowdsec::unpacked() {
    const char* named = std::getenv("SIEVE_CROWDSEC");
    const std::string folder = named != nullptr ? named : "/var/cache/xdp-sieve/crowdsec";
    return std::filesystem::exists(folder + "/usr/bin/crowdsec") ? folder : std::string();
}

Crowdsec::Crowdsec(bool tls) : tls_(tls) {
    const std::string folder = folder_.path("");
    folder_.shell("mkdir hub && echo '{}' >hub/.index.json && touch credentials.yaml");
    folder_.shell("cp " + unpacked() + "/etc/crowdsec/simulation.yaml " + unpacked() +
                  "/etc/crowdsec/profiles.yaml .");
    folder_.write("config.yaml", configuration(folder, false));
    // Before https is on, because cscli's own connection would have to trust it.
    cscli("machines add test --auto -f " + folder + "credentials.yaml");
    cscli(std::string("bouncers add sieve -k ") + bouncer_key);
    folder_.write("key", std::string(bouncer_key) + "\n");
    ::chmod(folder_.path("key").c_str(), 0600);
    if (tls_) {
        const std::string key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        folder_.shell("openssl req -x509 " + key +
                      " -keyout ca.key -out ca.pem -days 2 -subj /CN=sieve-test-ca");
        folder_.shell("openssl req -new " + key + " -keyout server.key -out server.csr -subj /CN=localhost");
        folder_.write("extensions", "subjectAltName = DNS:localhost\n");
        folder_.shell("openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
                      "-extfile extensions -out server.pem");
        folder_.write("config.yaml", configuration(folder, true));
        folder_.write("of-clients", "extendedKeyUsage = clientAuth\n");
    }
    start();
}

ServerAccess Crowdsec::client(const std::string& unit) const {
    folder_.shell("openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout " + unit +
                  ".key -out " + unit + ".csr -subj /OU=" + unit + "/CN=sieve");
    folder_.shell("openssl x509 -req -in " + unit + ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 " +
                  "-extfile of-clients -out " + unit + ".pem && chmod 600 " + unit + ".key");
    return {authority(), folder_.path(unit + ".pem"), folder_.path(unit + ".key")};
}

Crowdsec::~Crowdsec() {
    kill();
}

void Crowdsec::cscli(const std::string& arguments) const {
    folder_.shell(unpacked() + "/usr/bin/cscli -c config.yaml " + arguments);
}

void Crowdsec::start() {
    const std::string program = unpacked() + "/usr/bin/crowdsec";
    const std::string config = folder_.path("config.yaml");
    pid_ = ::fork();
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int log =
            ::open(folder_.path("crowdsec.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        ::dup2(log, STDOUT_FILENO);
        ::dup2(log, STDERR_FILENO);
        ::execl(program.c_str(), "crowdsec", "-c", config.c_str(), "-no-cs", nullptr);
        ::_exit(127);
    }
    const auto up = [&] {
        if (::waitpid(pid_, nullptr, WNOHANG) != 0)
            throw std::runtime_error("crowdsec: " + folder_.read("crowdsec.log"));
        return answers();
    };
    if (!await(up)) throw std::runtime_error("crowdsec does not answer");
}

void Crowdsec::kill() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
}

CrowdsecSpec Crowdsec::source() const {
    CrowdsecSpec source;
    source.url = (tls_ ? "https://localhost:" : "http://localhost:") + std::to_string(port);
    if (tls_) source.access.server.certificates = authority();
    source.key_file = folder_.path("key");
    source.poll = std::chrono::seconds(1);
    return source;
}

} // namespace sieve::service::test
