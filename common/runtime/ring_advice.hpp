// SPDX-License-Identifier: MIT
// Explains why the kernel refused a ring: turns the errno into its cause on this machine and a fix.
// Threads  read_machine() describes the calling thread: a seccomp filter belongs to its thread.
// Errors   none. A fact that cannot be read stays "unknown", and the advice does not mention it.
// Rule     advise_on_ring() reads nothing but its arguments, so a test can describe any machine.
// See      io_uring_setup(2), seccomp(2), capabilities(7), getrlimit(2)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace common {

enum class place { bare, docker, podman, kubernetes, other_container, wsl1, wsl2 };
enum class seccomp { unknown, off, filtered };
// The value of kernel.io_uring_disabled: no such file, 0, 1, 2.
enum class sysctl { absent, open, privileged_only, closed };

constexpr std::uint64_t memlock_unlimited = UINT64_MAX;

struct machine {
  std::string kernel_release;  // as uname says it: to be shown, never to decide by
  place where = place::bare;
  seccomp filter = seccomp::unknown;
  sysctl io_uring_disabled = sysctl::absent;
  bool exempt = false;  // CAP_SYS_ADMIN, or in kernel.io_uring_group: privileged_only lets it in
  std::uint64_t memlock_bytes = memlock_unlimited;
};

struct advice {
  std::string cause;  // to be put behind a colon
  std::string fix;
};

[[nodiscard]] machine read_machine();

// What a positive errno of io_uring_setup means on this machine. The result is empty for an errno
// that the machine does not explain, such as EINVAL.
[[nodiscard]] std::optional<advice> advise_on_ring(int error, const machine& here);

// Two fixes that fit other refusals as well.
[[nodiscard]] std::string lift_filter(const machine& here);
[[nodiscard]] std::string newer_kernel(const machine& here, std::string_view wanted);

}  // namespace common
