// SPDX-License-Identifier: MIT
// The golden answers, from the program.
#include "golden.hpp"

#include <catch2/catch_test_macros.hpp>

#include "site_server.hpp"

using course_test::check_golden;
using course_test::no_cache;
using course_test::sent_as;
using course_test::site_server;

TEST_CASE("14.2 methods, and the bodies that come with them", "[14.2]") {
  const site_server server{no_cache};
  check_golden("methods", server.process.port());
}

TEST_CASE("14.2 a connection goes on or ends as both sides say", "[14.2]") {
  const site_server server{no_cache};
  check_golden("connection", server.process.port());
}

TEST_CASE("14.2 what is no request is refused, and its connection closed", "[14.2]") {
  const site_server server{no_cache};
  check_golden("refused", server.process.port());
}

TEST_CASE("14.2 requests may come byte by byte", "[14.2]") {
  const site_server server{no_cache};
  check_golden("connection", server.process.port(), sent_as::bytes);
}

TEST_CASE("14 files and folders have their names and types", "[14]") {
  const site_server server;
  check_golden("files", server.process.port());
  check_golden("files", server.process.port());  // now out of the cache
}

TEST_CASE("14 no path leads out of the root, however it is spelled", "[14]") {
  const site_server server;
  check_golden("paths", server.process.port());
}

TEST_CASE("14 conditions are looked at in their order", "[14]") {
  const site_server server;
  check_golden("conditions", server.process.port());
}

TEST_CASE("14 a part of a file is sent to those who ask for it well", "[14]") {
  const site_server server;
  check_golden("ranges", server.process.port());
}

TEST_CASE("14 every golden answer is the same with tiny rings and few small buffers", "[14]") {
  const site_server server{{"--sq", "4", "--cq", "8", "--buffers", "2", "--buffer-size", "16"}};
  for (const char* const name :
       {"methods", "connection", "refused", "files", "paths", "conditions", "ranges"}) {
    check_golden(name, server.process.port());
  }
}

TEST_CASE("14 every golden answer is the same from two threads", "[14]") {
  const site_server server{{"--threads", "2", "--ring-flags", "default"}};
  for (const char* const name : {"methods", "connection", "refused", "files", "ranges"}) {
    check_golden(name, server.process.port());
  }
}
