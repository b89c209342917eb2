// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// A real crowdsec that serves its local API on loopback, offline.
#pragma once

#include <sys/types.h>

#include <string>

#include "libsieve/service/config/values/source_spec.hpp"
#include "service/support.hpp"

namespace sieve::service::test {

class Crowdsec {
  public:
    // The folder that scripts/install-deps.sh unpacks the package into; empty if it is not there.
    static std::string unpacked();

    // `tls`: serves https, with a certificate of the authority in authority(). Clients with a certificate of
    // the same authority are bouncers if its unit is "sieve-bouncers".
    explicit Crowdsec(bool tls = false);
    Crowdsec(const Crowdsec&) = delete;
    Crowdsec& operator=(const Crowdsec&) = delete;
    ~Crowdsec();

    void start(); // returns once it answers
    void kill();

    // `cscli ARGUMENTS`; it must succeed.
    void cscli(const std::string& arguments) const;

    // A source with a key that the API knows.
    [[nodiscard]] CrowdsecSpec source() const;
    // A new certificate of a client, of this organizational unit.
    [[nodiscard]] ServerAccess client(const std::string& unit) const;
    [[nodiscard]] const Folder& folder() const { return folder_; }
    [[nodiscard]] std::string authority() const { return folder_.path("ca.pem"); }
    [[nodiscard]] pid_t process() const { return pid_; }

  private:
    Folder folder_;
    bool tls_;
    pid_t pid_ = -1;
};

} // namespace sieve::service::test
