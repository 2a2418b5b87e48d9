// SPDX-License-Identifier: MIT
#include "server_main.hpp"

#include <signal.h>

#include <CLI/CLI.hpp>

#include "errors.hpp"
#include "log.hpp"

namespace common {
namespace {

constexpr int exit_cannot_start = 1;
constexpr int exit_bad_flag = 2;

void add_flags(CLI::App& app, server_flags& flags, const server_about& about) {
  app.add_option("--host", flags.host, "Address to listen on")->capture_default_str();
  app.add_option("--port", flags.port, "Port to listen on; 0 lets the kernel choose")
      ->capture_default_str();
  app.add_option("--threads", flags.threads, "Threads that serve")
      ->capture_default_str()
      ->check([&about](const std::string& text) -> std::string {
        if (CLI::Range(1, about.threads_max)(text).empty()) return {};
        if (about.threads_max == 1) return "this server takes 1: it has one loop";
        return "takes 1 to " + std::to_string(about.threads_max);
      });
  for (const extra_switch& extra : about.switches) {
    app.add_flag(extra.name, *extra.value, extra.help);
  }
}

}  // namespace

int server_main(int argc, char** argv, const server_about& about, const serve_function& serve) {
  server_flags flags;
  CLI::App app{about.summary};
  add_flags(app, flags, about);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) == 0) return 0;  // --help
    return exit_bad_flag;
  }

  ::signal(SIGPIPE, SIG_IGN);
  try {
    stop_signal stop;
    serve(flags, stop);
  } catch (const std::exception& error) {
    log(error.what());
    return exit_cannot_start;
  }
  return 0;
}

}  // namespace common
