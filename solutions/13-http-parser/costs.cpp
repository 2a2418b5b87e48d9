// SPDX-License-Identifier: MIT
// 13-costs: counts heap allocations for each request, and the bytes that a connection keeps.
//
//   ./course run 13:costs
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string_view>

#include "http_date.hpp"
#include "plain_path.hpp"
#include "request_head.hpp"
#include "request_limits.hpp"
#include "request_parser.hpp"
#include "response_writer.hpp"
#include "sample_requests.hpp"

namespace {

std::size_t allocations = 0;

}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc{};
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace {

using uring::http::request_head;
using uring::http::request_limits;
using uring::http::request_parser;
using step = request_parser::step;

// A connection. Bytes of the client that are not parsed yet stay at the front of a buffer.
class connection {
 public:
  explicit connection(const request_limits& limits) : parser_{limits} {}

  void receive(std::string_view piece) {
    std::ranges::copy(piece, buffer_.begin() + static_cast<std::ptrdiff_t>(left_));
    std::string_view received{buffer_.data(), left_ + piece.size()};
    for (step what = step::end; what != step::more;) {
      what = parser_.next(received, head_);
      if (what == step::refused) throw std::runtime_error{"a sample was refused"};
      if (what == step::head) answer();
    }
    std::ranges::copy(received, buffer_.begin());
    left_ = received.size();
  }

  [[nodiscard]] std::size_t answered() const noexcept { return answered_; }

 private:
  void answer() {
    const uring::http::plain_path path = uring::http::make_plain(head_.target.path, path_);
    uring::http::response_writer writer{answer_};
    writer.status(200).field("Date", clock_.text(784'111'777));
    writer.field("Content-Length", path.path.size()).end_head().body(path.path);
    if (!writer.ok()) throw std::runtime_error{"an answer did not fit"};
    ++answered_;
  }

  request_parser parser_;
  request_head head_;
  uring::http::date_clock clock_;
  std::array<char, 16 * 1024> buffer_;
  std::size_t left_ = 0;
  std::array<char, 256> path_;
  std::array<char, 512> answer_;
  std::size_t answered_ = 0;
};

double allocations_per_request() {
  const request_limits limits;
  connection client{limits};
  const std::size_t before = allocations;
  for (const std::string_view sample : {uring::http::sample_of_load, uring::http::sample_of_browser,
                                        uring::http::sample_of_chunks}) {
    for (std::size_t piece = 1; piece <= sample.size(); ++piece) {
      for (std::string_view rest = sample; !rest.empty();) {
        client.receive(rest.substr(0, piece));
        rest.remove_prefix(std::min(piece, rest.size()));
      }
    }
  }
  return static_cast<double>(allocations - before) / static_cast<double>(client.answered());
}

}  // namespace

// Built with flags of its own and without sanitizers, because some replace operator new.
// NOLINTNEXTLINE(bugprone-exception-escape): without memory it ends, and says so.
int main() {
  std::cout << "allocations per request: " << allocations_per_request() << '\n'
            << "bytes of a parser, for each connection: " << sizeof(request_parser) << '\n'
            << "bytes of a head, for each thread: " << sizeof(request_head) << '\n';
}
