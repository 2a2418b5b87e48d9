// SPDX-License-Identifier: MIT
// All connections of a thread share this object.
// Owns     the cache, the blocks, the lists of limits and the log; refers to the rest.
// Lifetime it must outlive every connection. Root, options, pool and counters must outlive it.
// Threads  the one that runs the queue. From other threads' objects it only reads the counters.
// Rule     `head` and `path_room` serve one request at a time: no coroutine may wait between the
//          parser's step `head` and the last use of what it found.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "access_log.hpp"
#include "buffer_pool.hpp"
#include "counters.hpp"
#include "file_cache.hpp"
#include "file_facts.hpp"
#include "http_date.hpp"
#include "http_options.hpp"
#include "request_head.hpp"
#include "send_blocks.hpp"
#include "site_root.hpp"
#include "time_limits.hpp"

namespace uring::http {

struct http_site {
  http_site(const site_root& serves, const http_options& chosen, buffer_pool& buffers,
            std::span<counters> of_all, std::size_t mine)
      : root{serves},
        options{chosen},
        pool{buffers},
        all_counters{of_all},
        counted_here{of_all[mine]},
        cache{chosen.cache},
        limits{chosen.lengths},
        log{chosen.access_log, counted_here},
        path_room(chosen.requests.head_bytes_max, '\0') {}
  http_site(http_site&&) = delete;  // connections hold its address

  [[nodiscard]] std::string_view date() { return clock.text(wall_clock_s()); }

  const site_root& root;
  const http_options& options;
  buffer_pool& pool;
  std::span<const counters> all_counters;
  counters& counted_here;
  send_blocks blocks;
  file_cache cache;
  time_limits limits;
  access_log log;
  bool is_draining = false;  // each answer is its connection's last

  date_clock clock;
  request_head head;
  std::string path_room;
};

}  // namespace uring::http
