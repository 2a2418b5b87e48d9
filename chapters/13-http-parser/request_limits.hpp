// SPDX-License-Identifier: MIT
// How much a client may send of each part of a request. Lines are counted without their CR LF. If
// a part is larger, the parser refuses the request, with the status in the comment.
// See      rfc9110, section 5.4; rfc9112, sections 3 and 7.1.1
#pragma once

#include <cstddef>
#include <cstdint>

namespace uring::http {

struct request_limits {
  std::size_t request_line_bytes_max = 8 * 1024;     // beyond: 414, or 501 if the method alone is
  std::size_t field_line_bytes_max = 8 * 1024;       // beyond: 431
  std::size_t fields_max = 100;                      // beyond: 431; a head has room for so many
  std::size_t head_bytes_max = 16 * 1024;            // beyond: 431; each CR LF counts
  std::uint64_t body_bytes_max = 1024 * 1024;        // beyond: 413
  std::size_t chunk_line_bytes_max = 256;            // beyond: 400
  std::size_t chunk_extension_bytes_max = 4 * 1024;  // beyond: 400; for all chunks of a body
  std::size_t trailer_bytes_max = 4 * 1024;          // beyond: 431; for all lines of a trailer
};

}  // namespace uring::http
