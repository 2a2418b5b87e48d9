// SPDX-License-Identifier: MIT
// The flags that this server has besides those of every server: a root, a log and limits. Each of
// these limits has a default that is good enough for a public server.
// Lifetime the flag_set must not outlive it.
// Errors   parse() ends the program with a sentence and status 2 if a value is out of its range.
//          options() does the same if there are fewer connections than threads.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "errors.hpp"
#include "file_cache.hpp"
#include "flags.hpp"
#include "log.hpp"
#include "request_limits.hpp"
#include "wait_kinds.hpp"

namespace uring::http {

struct http_options {
  std::string root = ".";
  std::string access_log;                // a file; empty: none
  std::size_t connections_max = 10'000;  // for each thread; one more client may wait there
  request_limits requests;
  limit_lengths lengths{};  // by wait_for
  std::chrono::milliseconds drain_ms{5000};
  file_cache::options cache;
};

class http_command_line {
 public:
  explicit http_command_line(common::flag_set& flags) {
    constexpr std::int64_t day_ms = 86'400'000;
    constexpr std::int64_t gib = 1024 * 1024 * 1024;
    flags.add("--root", root_, "The folder that is served");
    flags.add("--access-log", access_log_, "A file that gets a line for each answer; empty: none");
    flags.add("--connections-max", connections_, 1, 1'000'000,
              "Clients at a time, over all threads");
    flags.add("--head-bytes-max", head_bytes_, 256, 1024 * 1024, "A request's line and fields");
    flags.add("--body-bytes-max", body_bytes_, 0, gib, "A request's body");
    flags.add("--idle-timeout-ms", idle_ms_, 10, day_ms, "For a request's first byte");
    flags.add("--head-timeout-ms", head_ms_, 10, day_ms, "From that byte to the end of the head");
    flags.add("--body-timeout-ms", body_ms_, 10, day_ms, "For all of its body");
    flags.add("--file-timeout-ms", file_ms_, 10, day_ms, "For the disk");
    flags.add("--write-timeout-ms", write_ms_, 10, day_ms, "If a client acknowledges nothing");
    flags.add("--drain-timeout-ms", drain_ms_, 0, day_ms, "After SIGTERM, for what is under way");
    flags.add("--cache-bytes-max", cache_bytes_, 0, 64 * gib, "Small files in memory, each thread");
    flags.add("--fresh-ms", fresh_ms_, 0, day_ms, "A file in memory is looked at again after this");
  }
  http_command_line(http_command_line&&) = delete;  // the flag_set holds our addresses

  [[nodiscard]] http_options options(std::int64_t threads) const {
    using std::chrono::milliseconds;
    http_options chosen;
    chosen.root = root_;
    chosen.access_log = access_log_;
    const std::int64_t all = std::min(connections_, connections_that_fit(threads));
    if (all < threads) refuse(all, threads);
    chosen.connections_max = static_cast<std::size_t>(all / threads);
    chosen.requests.head_bytes_max = static_cast<std::size_t>(head_bytes_);
    chosen.requests.body_bytes_max = static_cast<std::uint64_t>(body_bytes_);
    const auto set = [&](wait_for what, std::int64_t ms) {
      chosen.lengths[static_cast<std::size_t>(what)] = milliseconds{ms};
    };
    set(wait_for::request, idle_ms_);
    set(wait_for::head, head_ms_);
    set(wait_for::body, body_ms_);
    set(wait_for::file, file_ms_);
    set(wait_for::room, write_ms_);
    set(wait_for::goodbye, goodbye_ms);
    chosen.drain_ms = milliseconds{drain_ms_};
    chosen.cache.bytes_max = static_cast<std::size_t>(cache_bytes_);
    chosen.cache.fresh_ms = milliseconds{fresh_ms_};
    return chosen;
  }

  // Each client takes a descriptor. Some descriptors have to be left for files and for the server
  // itself, because a client whose file cannot be opened is not served. A thread needs four: its
  // ring, its listener, its log, and the client for which there is no room yet.
  [[nodiscard]] static std::int64_t connections_that_fit(std::int64_t threads) {
    ::rlimit limit{};
    common::check(::getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
    const auto descriptors = static_cast<std::int64_t>(std::min<::rlim_t>(limit.rlim_cur, 1 << 30));
    return descriptors - std::min<std::int64_t>(descriptors / 2, 124 + 4 * threads);
  }

 private:
  static constexpr std::int64_t goodbye_ms = 2000;

  [[noreturn]] static void refuse(std::int64_t connections, std::int64_t threads) {
    common::log(std::to_string(threads) + " threads cannot share " + std::to_string(connections) +
                " connections: change --threads, --connections-max or ulimit -n");
    std::exit(2);
  }

  std::string root_ = ".";
  std::string access_log_;
  std::int64_t connections_ = 20'000;
  std::int64_t head_bytes_ = 16 * 1024;
  std::int64_t body_bytes_ = 1024 * 1024;
  std::int64_t idle_ms_ = 60'000;
  std::int64_t head_ms_ = 10'000;
  std::int64_t body_ms_ = 30'000;
  std::int64_t file_ms_ = 10'000;
  std::int64_t write_ms_ = 30'000;
  std::int64_t drain_ms_ = 5'000;
  std::int64_t cache_bytes_ = 64 * 1024 * 1024;
  std::int64_t fresh_ms_ = 1'000;
};

}  // namespace uring::http
