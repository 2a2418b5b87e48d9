// SPDX-License-Identifier: MIT
// Requests as real clients send them, to count and to measure with.
#pragma once

#include <string_view>

namespace uring::http {

// The request of a load generator, which asks for one file again and again.
inline constexpr std::string_view sample_of_load =
    "GET /index.html HTTP/1.1\r\n"
    "Host: 127.0.0.1:9000\r\n"
    "\r\n";

// The request of a browser, which says more about itself.
inline constexpr std::string_view sample_of_browser =
    "GET /chapters/13-http-parser/?from=home HTTP/1.1\r\n"
    "Host: 127.0.0.1:9000\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
    "Accept-Language: en-US,en;q=0.5\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"
    "DNT: 1\r\n"
    "Connection: keep-alive\r\n"
    "Cookie: theme=dark; session=7d0e4b1c2f8a49c3b6d5e7f801929394\r\n"
    "Upgrade-Insecure-Requests: 1\r\n"
    "Sec-Fetch-Dest: document\r\n"
    "Sec-Fetch-Mode: navigate\r\n"
    "Sec-Fetch-Site: same-origin\r\n"
    "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
    "If-None-Match: \"16d7a4fca7442dda-400\"\r\n"
    "Priority: u=0, i\r\n"
    "\r\n";

// A form that is sent in chunks.
inline constexpr std::string_view sample_of_chunks =
    "POST /form HTTP/1.1\r\n"
    "Host: 127.0.0.1:9000\r\n"
    "Transfer-Encoding: chunked\r\n"
    "\r\n"
    "5\r\nname=\r\n6;note=\"x\"\r\nNobody\r\n0\r\nChecksum: 1\r\n\r\n";

}  // namespace uring::http
