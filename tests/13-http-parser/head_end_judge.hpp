// SPDX-License-Identifier: MIT
// The judge of chapter 13's exercise “with the code closed”, as the page shows it.
#pragma once

#include <cstddef>
#include <string>

// --8<-- [start:judge]
bool is_right(auto head_end, std::string sent, std::size_t step) {
  const std::size_t end = sent.find("\r\n\r\n") + 4;
  std::size_t seen = 0;
  for (std::size_t cut = step; cut < end; cut += step) {
    if (head_end({sent.data(), cut}, seen) > 0 || seen > cut || seen + 3 < cut) return false;
    for (std::size_t at = 0; at < seen; ++at) sent[at] = "\r\n"[at % 2];  // misleads a second look
  }
  return head_end(sent, seen) == end;
}
// --8<-- [end:judge]
