// SPDX-License-Identifier: MIT
// Runs a server's loop on a thread of its own, for a test that talks and looks at the same time.
// Owns     the thread.
// Lifetime the server outlives it; the destructor asks for a stop, and joins.
// Threads  the server belongs to the thread that it runs until then.
// Errors   an exception of the loop ends the test program, with what it said.
#pragma once

#include <thread>

namespace course_test {

// `Server` has a `loop` with run(), and the `stop` that ends it.
template <typename Server>
class serving {
 public:
  explicit serving(Server& server) : server_{server}, thread_{[&server] { server.loop.run(); }} {}
  serving(serving&&) = delete;
  ~serving() { server_.stop.request(); }  // then thread_ joins

 private:
  Server& server_;
  std::jthread thread_;
};

}  // namespace course_test
