// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

namespace loadgen {
namespace {

constexpr int exit_misuse = 2;
constexpr double default_warmup_s = 1;

constexpr std::string_view examples = R"(Examples:
  loadgen echo --port 9000 --requests 100000
  loadgen echo --port 9000 --conns 1000 --size 4096 --duration 10 --json run.json
  loadgen http --port 8080 --path /index.html --conns 100 --duration 10

Exit code: 0 all answers came and were right; 1 the server refused, reset, closed, hung or sent
something wrong, or the run could not start; 2 a bad flag; 130 stopped by a signal.)";

// A check that takes exactly the numbers from `min` to `max`; not "nan", "1e3" only for seconds.
template <typename Number>
auto number(Number min, Number max, std::string_view what) {
  return [=](const std::string& text) -> std::string {
    Number value = 0;
    const char* const text_end = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), text_end, value);
    if (error == std::errc{} && end == text_end && value >= min && value <= max) return {};
    return fmt::format("takes {} from {} to {}", what, min, max);
  };
}

auto whole(std::uint64_t min, std::uint64_t max) {
  return number(min, max, "a whole number");
}

auto seconds(double min, double max) {
  return number(min, max, "seconds,");
}

std::string check_host(const std::string& host) {
  ::in6_addr address{};  // large enough for both
  if (::inet_pton(AF_INET, host.c_str(), &address) == 1) return {};
  if (::inet_pton(AF_INET6, host.c_str(), &address) == 1) return {};
  return "takes an IPv4 or IPv6 address, such as 127.0.0.1";
}

std::string check_path(const std::string& path) {
  const bool printable = std::ranges::all_of(path, [](char c) { return c > ' ' && c <= '~'; });
  if (path.starts_with('/') && printable) return {};
  return "takes a path that starts with / and has no blanks";
}

// What CLI11 fills in for one mode.
struct command_line {
  explicit command_line(CLI::App& parent, protocol mode, const std::string& name,
                        const std::string& about)
      : app{parent.add_subcommand(name, about)} {
    values.mode = mode;
    app->footer(std::string{examples});
    app->add_option("--host", values.host, "Address of the server")
        ->capture_default_str()
        ->check(check_host);
    app->add_option("--port", values.port, "Port of the server")
        ->required()
        ->check(whole(1, 65'535));
    add_amount();
    app->add_option("--threads", values.threads, "Threads to share the connections")
        ->capture_default_str()
        ->check(whole(1, 1024));
    app->add_option("--stall-timeout", values.stall_timeout_s,
                    "Give up a connection after so many seconds without a byte")
        ->capture_default_str()
        ->check(seconds(0.05, 3600));
    app->add_option("--json", values.json_file, "Write the result to this file, too");
  }

  void add_amount() {
    app->add_option("--conns", values.connections, "Connections")
        ->capture_default_str()
        ->check(whole(1, 60'000));
    app->add_option("--inflight", values.inflight, "Requests without an answer, on each of them")
        ->capture_default_str()
        ->check(whole(1, 1024));
    auto* const requests =
        app->add_option("--requests", values.requests, "Stop after so many, over all connections")
            ->check(whole(1, 1'000'000'000'000));
    app->add_option("--duration", values.duration_s, "Stop after so many seconds")
        ->capture_default_str()
        ->check(seconds(0.01, 86'400))
        ->excludes(requests);
    warmup = app->add_option("--warmup", values.warmup_s,
                             "Seconds to run before anything counts [1; with --requests 0]")
                 ->check(seconds(0, 3600));
  }

  CLI::App* app;
  CLI::Option* warmup = nullptr;
  options values;
};

}  // namespace

std::variant<options, int> parse_options(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode != "echo" && mode != "http" && mode != "--help" && mode != "-h") {
    fmt::print(stderr,
               "loadgen: the first argument is echo or http, not '{}'; see loadgen --help\n", mode);
    return exit_misuse;
  }
  CLI::App app{"Drives a server with a closed loop of clients, checks every byte, and measures.",
               "loadgen"};
  app.get_formatter()->column_width(28);
  app.require_subcommand(1);
  app.footer(std::string{examples});
  command_line echo{app, protocol::echo, "echo", "Send messages and compare their echoes"};
  echo.app->add_option("--size", echo.values.message_bytes, "Bytes in a message")
      ->capture_default_str()
      ->check(whole(1, 64 * 1024 * 1024));
  command_line http{app, protocol::http, "http", "GET a path over HTTP/1.1 keep-alive"};
  http.app->add_option("--path", http.values.path, "What to GET")
      ->capture_default_str()
      ->check(check_path);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_misuse;
  }
  command_line& chosen = echo.app->parsed() ? echo : http;
  options& values = chosen.values;
  if (chosen.warmup->empty() && !values.requests) values.warmup_s = default_warmup_s;
  if (values.threads > values.connections) {
    fmt::print(stderr, "--threads: {} connections keep at most as many threads busy\n",
               values.connections);
    return exit_misuse;
  }
  return values;
}

}  // namespace loadgen
