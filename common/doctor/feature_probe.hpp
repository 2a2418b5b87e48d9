// SPDX-License-Identifier: MIT
// What this kernel can do with io_uring, found by trying it.
// Owns     nothing that outlives a call: a try closes its rings and sockets before it returns.
// Threads  any; the tries of one feature do not disturb another's.
// Errors   none: a try that fails is an answer, with its reason and what to do about it.
// Rule     never decide by the kernel's version: `since` only words the answer. A try waits at most
//          `wait_deadline_ms` for a completion, whatever the kernel does with its requests.
// See      docs/reference/features.md, io_uring_setup(2)
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace doctor {

struct feature {
  const char* name;     // snake_case and stable: chapter.toml and the tests name it
  const char* group;    // setup, kernel, network, buffers, files, control or opcodes
  const char* since;    // the first Linux that has it; "" where the course's floor, 6.1, has it
  const char* summary;  // what the try does
  void (*attempt)();    // throws probe_error
};

struct finding {
  std::string_view name;
  bool ok = false;
  int error = 0;       // errno; 0 if ok, and 0 if the calls worked but had the wrong effect
  std::string reason;  // what was tried, what came, and why; empty if ok
  std::string fix;     // what to do; empty if ok
};

// All of them, in the order in which a reader of the course meets them.
[[nodiscard]] std::span<const feature> all_features();

// Null if there is no feature of this name.
[[nodiscard]] const feature* find_feature(std::string_view name);

// Tries in this thread. A broken kernel may hang or end the process: isolate.hpp is for that.
[[nodiscard]] finding try_feature(const feature& wanted);

}  // namespace doctor
