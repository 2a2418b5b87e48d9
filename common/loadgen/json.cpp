// SPDX-License-Identifier: MIT
#include <fmt/core.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "report.hpp"

namespace loadgen {
namespace {

double microseconds(double ns) {
  return ns / 1e3;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < ' ') {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string target(const options& asked) {
  const bool echo = asked.mode == protocol::echo;
  return fmt::format(
      R"({{"host": {}, "port": {}, "conns": {}, "size": {}, "path": {}, "inflight": {}, "threads": {}, )"
      R"("requests": {}, "duration_s": {}, "warmup_s": {}}})",
      quoted(asked.host), asked.port, asked.connections,
      echo ? std::to_string(asked.message_bytes) : "null", echo ? "null" : quoted(asked.path),
      asked.inflight, asked.threads, asked.requests ? std::to_string(*asked.requests) : "null",
      asked.requests ? "null" : fmt::format("{}", asked.duration_s), asked.warmup_s);
}

std::string latency(const latency_histogram& values) {
  const auto at = [&](double share) {
    return microseconds(static_cast<double>(values.percentile_ns(share)));
  };
  return fmt::format(
      R"({{"p50": {:.3f}, "p90": {:.3f}, "p99": {:.3f}, "p999": {:.3f}, "max": {:.3f}, "mean": {:.3f}, "samples": {}}})",
      at(0.5), at(0.9), at(0.99), at(0.999), microseconds(static_cast<double>(values.max_ns())),
      microseconds(values.mean_ns()), values.count());
}

std::string histogram(const latency_histogram& values) {
  std::vector<std::string> pairs;
  values.for_each_bucket([&](std::uint64_t upper_ns, std::uint64_t count) {
    pairs.push_back(
        fmt::format("[{:.3f}, {}]", microseconds(static_cast<double>(upper_ns)), count));
  });
  return fmt::format("[{}]", fmt::join(pairs, ", "));
}

std::string errors(const measurement& result) {
  std::vector<std::string> pairs;
  for (std::size_t kind = 0; kind < fault_names.size(); ++kind) {
    std::uint64_t count = result.faults.count(static_cast<fault>(kind));
    if (static_cast<fault>(kind) == fault::other) count += result.bad_statuses;
    pairs.push_back(fmt::format("\"{}\": {}", fault_names[kind], count));
  }
  return fmt::format("{{{}}}", fmt::join(pairs, ", "));
}

std::string client(const measurement& result) {
  const double cpu_s = result.cpu.user_s + result.cpu.sys_s;
  const double us_per_request =
      result.completed > 0 ? cpu_s * 1e6 / static_cast<double>(result.completed) : 0;
  return fmt::format(
      R"({{"cpu_user_s": {:.6f}, "cpu_sys_s": {:.6f}, "cpu_us_per_request": {:.4f}, )"
      R"("cpu_utilization": {:.4f}, "limited": {}}})",
      result.cpu.user_s, result.cpu.sys_s, us_per_request, result.busiest_thread, result.limited());
}

std::string statuses(const measurement& result) {
  std::vector<std::string> pairs;
  for (const auto& [status, count] : result.statuses) {
    pairs.push_back(fmt::format("\"{}\": {}", status, count));
  }
  return fmt::format("{{{}}}", fmt::join(pairs, ", "));
}

std::string messages(const measurement& result) {
  std::vector<std::string> lines;
  for (const std::string& sentence : describe_trouble(result)) lines.push_back(quoted(sentence));
  return fmt::format("[{}]", fmt::join(lines, ", "));
}

}  // namespace

std::string to_json(const options& asked, const measurement& result) {
  const double seconds = result.seconds();
  const auto rate = [seconds](double amount) { return seconds > 0 ? amount / seconds : 0; };
  const std::vector<std::string> members = {
      fmt::format("\"mode\": \"{}\"", asked.mode == protocol::echo ? "echo" : "http"),
      "\"target\": " + target(asked),
      fmt::format("\"completed\": {}", result.completed),
      fmt::format("\"requests_on_wire\": {}", result.on_wire),
      fmt::format("\"seconds\": {:.6f}", seconds),
      // By CLOCK_MONOTONIC, so that others can tell what happened while we measured.
      fmt::format("\"began_monotonic_s\": {:.6f}", static_cast<double>(result.began_ns) / 1e9),
      fmt::format("\"ended_monotonic_s\": {:.6f}", static_cast<double>(result.ended_ns) / 1e9),
      fmt::format("\"requests_per_s\": {:.3f}", rate(static_cast<double>(result.completed))),
      fmt::format("\"mib_per_s\": {:.4f}", rate(static_cast<double>(result.bytes) / (1024 * 1024))),
      "\"latency_us\": " + latency(result.latency),
      "\"histogram_us\": " + histogram(result.latency),
      "\"errors\": " + errors(result),
      "\"messages\": " + messages(result),
      "\"statuses\": " + statuses(result),
      fmt::format("\"reconnects\": {}", result.reconnects),
      fmt::format("\"left_open\": {}", result.left_open),
      "\"client\": " + client(result),
      fmt::format("\"interrupted\": {}", result.interrupted),
      fmt::format("\"ok\": {}", result.ok()),
  };
  return fmt::format("{{\n  {}\n}}\n", fmt::join(members, ",\n  "));
}

}  // namespace loadgen
