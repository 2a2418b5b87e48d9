// SPDX-License-Identifier: MIT
// A parser to compare with: http_parser, which Node.js had until 2019, if it is installed.
// Errors   std::runtime_error if it is not, or if it does not understand the request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace uring::http {

// `count` times all of `sample`, in pieces of so many bytes.
void parse_many_by_peer(std::string_view sample, std::size_t piece, std::int64_t count);

}  // namespace uring::http
