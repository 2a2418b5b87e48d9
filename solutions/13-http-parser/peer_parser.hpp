// SPDX-License-Identifier: MIT
// A parser to compare with: http_parser, which Node.js had until 2019.
// Errors   std::runtime_error if it is not installed, or does not understand the request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace uring::http {

// Parses all of `sample` `count` times, in pieces of `piece` bytes.
void parse_many_by_peer(std::string_view sample, std::size_t piece, std::int64_t count);

}  // namespace uring::http
