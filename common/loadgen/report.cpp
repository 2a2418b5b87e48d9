// SPDX-License-Identifier: MIT
#include "report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

namespace loadgen {
namespace {

constexpr double bytes_per_mib = 1024.0 * 1024.0;

double per(double amount, double parts) {
  return parts > 0 ? amount / parts : 0;
}

// 1234567 as "1,234,567".
std::string grouped(std::uint64_t value) {
  std::string text = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

// The time in a suitable unit, with three digits where that many are known.
std::string readable_time(double ns) {
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  const auto [unit_ns, unit] = ns < 1e6   ? std::pair{1e3, "us"}
                               : ns < 1e9 ? std::pair{1e6, "ms"}
                                          : std::pair{1e9, "s"};
  const double value = ns / unit_ns;
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, unit);
}

// For round numbers: "20 us".
std::string short_time(std::uint64_t ns) {
  if (ns < 1'000'000) return fmt::format("{} us", ns / 1000);
  if (ns < 1'000'000'000) return fmt::format("{} ms", ns / 1'000'000);
  return fmt::format("{} s", ns / 1'000'000'000);
}

// The first of 1, 2, 5, 10, 20, 50, ... microseconds that is not below `value_ns`.
std::uint64_t round_up_ns(std::uint64_t value_ns) {
  for (std::uint64_t decade_ns = 1000;; decade_ns *= 10) {
    for (const std::uint64_t step : {1U, 2U, 5U}) {
      if (value_ns <= step * decade_ns) return step * decade_ns;
    }
  }
}

// A line for each of those steps, with a bar for its share of the requests.
std::string bars(const latency_histogram& latency) {
  constexpr double bar_width = 50;
  std::map<std::uint64_t, std::uint64_t> rows;
  std::uint64_t largest = 0;
  latency.for_each_bucket([&](std::uint64_t upper_ns, std::uint64_t count) {
    std::uint64_t& row = rows[round_up_ns(upper_ns)];
    row += count;
    largest = std::max(largest, row);
  });
  std::string text;
  for (const auto& [upper_ns, count] : rows) {
    const auto part = static_cast<double>(count);
    const double bar = bar_width * part / static_cast<double>(largest);
    text += fmt::format("  up to {:>7} {:>6.2f} %  {}\n", short_time(upper_ns),
                        100 * part / static_cast<double>(latency.count()),
                        std::string(static_cast<std::size_t>(bar + 0.5), '#'));
  }
  return text;
}

std::string describe_latency(const latency_histogram& latency) {
  const auto at = [&](double share) {
    return readable_time(static_cast<double>(latency.percentile_ns(share)));
  };
  return fmt::format("Latency: p50 {}, p90 {}, p99 {}, p99.9 {}, max {}, mean {}\n{}", at(0.5),
                     at(0.9), at(0.99), at(0.999),
                     readable_time(static_cast<double>(latency.max_ns())),
                     readable_time(latency.mean_ns()), bars(latency));
}

std::string describe_client(const measurement& result) {
  const auto us_per_request = [&](double seconds) {
    return per(seconds * 1e6, static_cast<double>(result.completed));
  };
  std::string text = fmt::format(
      "Client:  {:.2f} us of CPU per request ({:.2f} user, {:.2f} system); it ran in {:.0f} % of "
      "the "
      "time and waited for a CPU in {:.0f} %\n",
      us_per_request(result.cpu.running_s()), us_per_request(result.cpu.user_s),
      us_per_request(result.cpu.sys_s), 100 * result.cpu_utilization,
      100 * (result.ready_share - result.cpu_utilization));
  if (result.limited()) {
    text += "The client limited this run: only server CPU per request compares.\n";
  }
  return text;
}

std::string describe_http(const measurement& result) {
  std::string text = "Status: ";
  for (const auto& [status, count] : result.statuses) {
    text += fmt::format(" {} x {}", grouped(count), status);
  }
  text += "\n";
  if (result.reconnects > 0) {
    text += fmt::format("Reconnected {} times, after \"Connection: close\"\n",
                        grouped(result.reconnects));
  }
  return text;
}

}  // namespace

std::string describe_target(const options& asked) {
  const std::string what = asked.mode == protocol::echo
                               ? fmt::format("size={}", asked.message_bytes)
                               : fmt::format("path={}", asked.path);
  const std::string amount = asked.requests ? fmt::format("requests={}", *asked.requests)
                                            : fmt::format("duration={}s", asked.duration_s);
  return fmt::format("Target: {} {}:{} conns={} {} inflight={} threads={} {} warmup={}s\n",
                     asked.mode == protocol::echo ? "echo" : "http", asked.host, asked.port,
                     asked.connections, what, asked.inflight, asked.threads, amount,
                     asked.warmup_s);
}

std::string describe_result(const options& asked, const measurement& result) {
  std::string text = fmt::format("Completed {} requests in {:.3f} s\n", grouped(result.completed),
                                 result.seconds());
  if (result.completed == 0) return text;
  const double rate = per(static_cast<double>(result.completed), result.seconds());
  text += fmt::format("Throughput: {} req/s, {:.2f} MiB/s\n",
                      grouped(static_cast<std::uint64_t>(rate + 0.5)),
                      per(static_cast<double>(result.bytes) / bytes_per_mib, result.seconds()));
  if (asked.mode == protocol::http) text += describe_http(result);
  text += describe_latency(result.latency);
  text += describe_client(result);
  if (result.left_open > 0) {
    text += fmt::format("Note: the server left {} connections open after the client's FIN.\n",
                        grouped(result.left_open));
  }
  return text;
}

std::vector<std::string> describe_trouble(const measurement& result) {
  std::vector<std::string> sentences = result.faults.sentences();
  if (!result.not_started.empty()) sentences.push_back(result.not_started);
  if (result.bad_statuses > 0) {
    sentences.push_back(
        fmt::format("{} responses had a status of 400 or above", grouped(result.bad_statuses)));
  }
  if (result.interrupted) {
    sentences.emplace_back("stopped by a signal before the end");
  }
  return sentences;
}

}  // namespace loadgen
