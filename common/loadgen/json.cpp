// SPDX-License-Identifier: MIT
#include <fmt/core.h>
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "json_text.hpp"
#include "report.hpp"

namespace loadgen {
namespace {

double microseconds(double ns) {
  return ns / 1e3;
}

std::string target(const options& asked) {
  const bool echo = asked.mode == protocol::echo;
  return fmt::format(
      R"({{"host": {}, "port": {}, "conns": {}, "size": {}, "path": {}, "inflight": {}, )"
      R"("threads": {}, "requests": {}, "duration_s": {}, "warmup_s": {}}})",
      common::json_text(asked.host), asked.port, asked.connections,
      echo ? std::to_string(asked.message_bytes) : "null",
      echo ? "null" : common::json_text(asked.path), asked.inflight, asked.threads,
      asked.requests ? std::to_string(*asked.requests) : "null",
      asked.requests ? "null" : fmt::format("{}", asked.duration_s), asked.warmup_s);
}

std::string latency(const latency_histogram& values) {
  const auto at = [&](double share) {
    return microseconds(static_cast<double>(values.percentile_ns(share)));
  };
  return fmt::format(
      R"({{"p50": {:.3f}, "p90": {:.3f}, "p99": {:.3f}, "p999": {:.3f}, "max": {:.3f}, )"
      R"("mean": {:.3f}, "samples": {}}})",
      at(0.5), at(0.9), at(0.99), at(0.999), microseconds(static_cast<double>(values.max_ns())),
      microseconds(values.mean_ns()), values.count());
}

// What `format_one` makes of each item, with commas in between.
template <typename Items, typename Format>
std::string joined(const Items& items, Format format_one) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += ", ";
    text += format_one(item);
  }
  return text;
}

std::string histogram(const latency_histogram& values) {
  std::string text;
  values.for_each_bucket([&](std::uint64_t upper_ns, std::uint64_t count) {
    const double upper_us = microseconds(static_cast<double>(upper_ns));
    text += fmt::format("{}[{:.3f}, {}]", text.empty() ? "" : ", ", upper_us, count);
  });
  return fmt::format("[{}]", text);
}

std::string errors(const measurement& result) {
  constexpr std::array kinds = {fault::refused, fault::reset,     fault::closed,
                                fault::stalled, fault::corrupted, fault::other};
  const std::string members = joined(kinds, [&](fault kind) {
    const std::uint64_t statuses = kind == fault::other ? result.bad_statuses : 0;
    return fmt::format("\"{}\": {}", fault_names[static_cast<std::size_t>(kind)],
                       result.faults.count(kind) + statuses);
  });
  return fmt::format("{{{}}}", members);
}

std::string client(const measurement& result) {
  const double us_per_request =
      result.completed > 0 ? result.cpu.running_s() * 1e6 / static_cast<double>(result.completed)
                           : 0;
  return fmt::format(
      R"({{"cpu_user_s": {:.6f}, "cpu_sys_s": {:.6f}, "cpu_us_per_request": {:.4f}, )"
      R"("cpu_utilization": {:.4f}, "ready_share": {:.4f}, "limited": {}}})",
      result.cpu.user_s, result.cpu.sys_s, us_per_request, result.cpu_utilization,
      result.ready_share, result.limited());
}

std::string statuses(const measurement& result) {
  return fmt::format("{{{}}}", joined(result.statuses, [](const auto& entry) {
                       return fmt::format("\"{}\": {}", entry.first, entry.second);
                     }));
}

std::string messages(const measurement& result) {
  return fmt::format("[{}]", joined(describe_trouble(result), &common::json_text));
}

}  // namespace

std::string to_json(const options& asked, const measurement& result) {
  const double seconds = result.seconds();
  // By CLOCK_MONOTONIC, so that others can tell what happened while we measured; 0 if we did not.
  const auto monotonic = [&](std::int64_t at_ns) {
    return result.ended_ns > 0 ? static_cast<double>(at_ns) / 1e9 : 0;
  };
  const auto rate = [seconds](double amount) { return seconds > 0 ? amount / seconds : 0; };
  const std::vector<std::string> members = {
      fmt::format("\"mode\": \"{}\"", asked.mode == protocol::echo ? "echo" : "http"),
      "\"target\": " + target(asked),
      fmt::format("\"completed\": {}", result.completed),
      fmt::format("\"requests_on_wire\": {}", result.on_wire),
      fmt::format("\"seconds\": {:.6f}", seconds),
      fmt::format("\"began_monotonic_s\": {:.6f}", monotonic(result.began_ns)),
      fmt::format("\"ended_monotonic_s\": {:.6f}", monotonic(result.ended_ns)),
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
