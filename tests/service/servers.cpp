// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "service/servers.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <csignal>

namespace sieve::service::test {

namespace {

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

bool answers(std::uint16_t port) {
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(port);
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

// One process. It ends with the test.
constexpr const char* configuration = R"(
daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events { worker_connections 64; }
http {
    log_format short '$request_method $uri $status';
    access_log access.log short;
    log_format seen '$server_port $uri user [$http_authorization] key [$http_x_key] client [$ssl_client_s_dn] '
                    'agent [$http_user_agent]';
    access_log seen.log seen;
    default_type text/plain;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    root www;
    ssl_certificate_key server.key;
    server {
        listen 127.0.0.1:8080;
        location /by-date/ { alias www/; etag off; }
        location /busy { add_header Retry-After 7 always; return 503; }
        location /to-https { return 302 https://localhost:8443/list.txt; }
        location /to-http { return 302 http://localhost:8080/list.txt; }
        location /secret/ { alias www/; if ($arg_key != "s3cr3t") { return 403; } }
    }
    server {
        listen 127.0.0.1:8443 ssl;
        ssl_certificate server.pem;
        location /to-http { return 302 http://localhost:8080/list.txt; }
        location /private/ { alias www/; auth_basic lists; auth_basic_user_file users; }
        location /by-header/ { alias www/; if ($http_x_key != "h3ader") { return 403; } }
        location /to-private { return 302 /private/list.txt; }
        location /away { return 302 https://localhost:8446/list.txt; }
        location /far { return 302 https://localhost:8446/private/list.txt; }
        location /loop { return 302 https://localhost:8443/loop; }
    }
    server {
        listen 127.0.0.1:8444 ssl;
        ssl_certificate expired.pem;
    }
    ssl_client_certificate ca.pem;
    server {
        listen 127.0.0.1:8445 ssl;
        ssl_certificate server.pem;
        ssl_verify_client on;
        location /away { return 302 https://localhost:8446/list.txt; }
    }
    server {
        listen 127.0.0.1:8446 ssl;
        ssl_certificate server.pem;
        ssl_verify_client optional;
        location /private/ { alias www/; auth_basic lists; auth_basic_user_file users; }
    }
}
)";

} // namespace

void Nginx::make_certificates() const {
    const std::string key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    for (const std::string name : {"ca", "other"})
        folder_.shell("openssl req -x509 " + key + " -keyout " + name + ".key -out " + name +
                      ".pem -days 2 -subj /CN=sieve-test-" + name);
    folder_.shell("openssl req -new " + key + " -keyout server.key -out server.csr -subj /CN=localhost");
    folder_.write("extensions", "subjectAltName = DNS:localhost\n");
    folder_.shell("openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 "
                  "-extfile extensions -out server.pem");
    folder_.shell("openssl req -new " + key +
                  " -keyout client.key -out client.csr -subj /CN=sieve-test-client");
    folder_.shell(
        "openssl x509 -req -in client.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out client.pem");
    // `x509` cannot set dates in the past.
    folder_.write("index", "");
    folder_.write("ca.conf",
                  "[ca]\ndefault_ca = here\n[here]\ndatabase = index\nnew_certs_dir = .\n"
                  "serial = serial\ndefault_md = sha256\npolicy = any\n[any]\ncommonName = supplied\n");
    folder_.shell(
        "openssl ca -batch -config ca.conf -cert ca.pem -keyfile ca.key -rand_serial -in server.csr "
        "-startdate 20200101000000Z -enddate 20210101000000Z -extfile extensions -notext "
        "-out expired.pem");
}

Nginx::Nginx() {
    make_certificates();
    folder_.shell("mkdir www");
    folder_.write("users", "reader:{PLAIN}s3cret\n");
    folder_.write("nginx.conf", configuration);
    const std::string prefix = folder_.path("");
    pid_ = ::fork();
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int log = ::open(folder_.path("nginx.log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ::dup2(log, STDOUT_FILENO);
        ::dup2(log, STDERR_FILENO);
        ::execlp("nginx", "nginx", "-p", prefix.c_str(), "-c", "nginx.conf", nullptr);
        ::_exit(127);
    }
    const auto up = [&] {
        if (::waitpid(pid_, nullptr, WNOHANG) != 0)
            throw std::runtime_error("nginx: " + folder_.read("nginx.log") + folder_.read("error.log"));
        return answers(8080) && answers(8443) && answers(8444) && answers(8445) && answers(8446);
    };
    if (!await(up)) throw std::runtime_error("nginx does not answer");
}

Nginx::~Nginx() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
}

bool send_all(int connection, const std::string& bytes) {
    for (std::size_t sent = 0; sent < bytes.size();) {
        const ssize_t put = ::send(connection, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (put <= 0) return false;
        sent += static_cast<std::size_t>(put);
    }
    return true;
}

ScriptedServer::ScriptedServer(Script script) : script_(std::move(script)) {
    listening_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listening_.get(), generic, size) != 0 || ::listen(listening_.get(), 8) != 0 ||
        ::getsockname(listening_.get(), generic, &size) != 0)
        throw std::runtime_error("no server");
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
}

ScriptedServer::ScriptedServer(const std::string& answer)
    : ScriptedServer([answer](int connection, const std::string&) { send_all(connection, answer); }) {}

ScriptedServer::~ScriptedServer() {
    ::shutdown(listening_.get(), SHUT_RDWR); // this makes accept() return
    thread_.join();
}

void ScriptedServer::serve() {
    for (;;) {
        const UniqueFd connection(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!connection) return;
        std::string request;
        char byte = 0;
        while (!request.ends_with("\r\n\r\n") && ::recv(connection.get(), &byte, 1, 0) == 1) request += byte;
        if (!request.empty()) script_(connection.get(), request);
        // The client must receive everything: the connection ends normally, without a reset.
        ::shutdown(connection.get(), SHUT_WR);
        while (::recv(connection.get(), &byte, 1, 0) > 0) {
        }
    }
}

} // namespace sieve::service::test
