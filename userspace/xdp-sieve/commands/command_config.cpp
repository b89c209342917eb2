// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// xdp-sieve config: prints the configuration as it takes effect, with every default.
#include <memory>
#include <string>

#include "front-end/console/output.hpp"
#include "libsieve/service/config/configuration_reader.hpp"
#include "libsieve/service/config/configuration_text.hpp"
#include "xdp-sieve/arguments/command.hpp"

namespace sieve::cli {

namespace {

Result<Exit> run_config(const std::string& path, const Context& context) {
    SIEVE_ASSIGN(const service::Configuration configuration, service::load_configuration(path));
    if (context.json)
        print_out("{}\n", service::configuration_json(configuration));
    else
        print_out("{}", service::configuration_text(configuration));
    return Exit::done;
}

} // namespace

void add_config(CLI::App& app, Context& context) {
    add_command(app, context, "config", "print the configuration of `apply` with every default",
                [&context](Arguments command) -> Action {
                    auto path = std::make_shared<std::string>(service::standard_configuration);
                    command.add("CONFIG", *path, "the configuration").show_default();
                    return [path, &context] { return run_config(*path, context); };
                });
}

} // namespace sieve::cli
