// SPDX-License-Identifier: MIT
// From an errno to its cause on this machine, and to what the reader can type against it.
// Owns     strings.
// Lifetime none.
// Threads  read_machine() describes the calling thread: seccomp filters belong to threads.
// Errors   none; what cannot be read stays "unknown" and is left out of the advice.
// Rule     advise() looks at nothing but its arguments, so that tests can be any machine.
// See      io_uring_setup(2), seccomp(2), capabilities(7), getrlimit(2)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace doctor {

enum class place { bare, docker, podman, kubernetes, other_container, wsl1, wsl2 };
enum class seccomp { unknown, off, filtered };
enum class sysctl {
  absent,
  open,
  privileged_only,
  closed
};  // kernel.io_uring_disabled: -, 0, 1, 2

constexpr std::uint64_t memlock_unlimited = UINT64_MAX;

struct machine {
  std::string kernel_release;  // as uname says it; words, never decisions
  place where = place::bare;
  seccomp filter = seccomp::unknown;
  sysctl io_uring_disabled = sysctl::absent;
  bool exempt = false;  // CAP_SYS_ADMIN, or in kernel.io_uring_group: privileged_only lets it in
  std::uint64_t memlock_bytes = memlock_unlimited;
};

struct advice {
  std::string cause;  // what stands behind it, as the end of a sentence
  std::string fix;
};

[[nodiscard]] machine read_machine();

// `error` is the positive errno of a failed try, or 0 if the kernel did something else than it
// documents; `since` is feature::since.
[[nodiscard]] advice advise(int error, std::string_view since, const machine& here);

}  // namespace doctor
