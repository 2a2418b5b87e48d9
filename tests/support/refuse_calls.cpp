// SPDX-License-Identifier: MIT
#include "refuse_calls.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "errors.hpp"

namespace course_test {
namespace {

// A filter runs on the system call's number and arguments: load one, compare it, answer.
::sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}

::sock_filter allow_unless_equal(std::uint32_t value) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
}

::sock_filter answer(std::uint32_t action) {
  return BPF_STMT(BPF_RET | BPF_K, action);
}

std::uint32_t failure(int error) {
  return SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(error) & SECCOMP_RET_DATA);
}

void install(std::span<::sock_filter> instructions) {
  ::sock_fprog program{.len = static_cast<unsigned short>(instructions.size()),
                       .filter = instructions.data()};
  common::check(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl PR_SET_NO_NEW_PRIVS");
  common::check(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "prctl PR_SET_SECCOMP");
}

void refuse_call(std::uint32_t number, int error) {
  std::vector<::sock_filter> instructions{load(offsetof(::seccomp_data, nr)),
                                          allow_unless_equal(number), answer(SECCOMP_RET_ALLOW),
                                          answer(failure(error))};
  install(instructions);
}

void refuse_call_with(std::uint32_t number, std::uint32_t second_argument, int error) {
  std::vector<::sock_filter> instructions{load(offsetof(::seccomp_data, nr)),
                                          allow_unless_equal(number),
                                          answer(SECCOMP_RET_ALLOW),
                                          load(offsetof(::seccomp_data, args[1])),
                                          allow_unless_equal(second_argument),
                                          answer(SECCOMP_RET_ALLOW),
                                          answer(failure(error))};
  install(instructions);
}

}  // namespace

void refuse_io_uring_setup(int error) {
  refuse_call(__NR_io_uring_setup, error);
}

void refuse_io_uring_enter(int error) {
  refuse_call(__NR_io_uring_enter, error);
}

void refuse_io_uring_register(unsigned opcode, int error) {
  refuse_call_with(__NR_io_uring_register, opcode, error);
}

void refuse_epoll_ctl(int operation, int error) {
  refuse_call_with(__NR_epoll_ctl, static_cast<std::uint32_t>(operation), error);
}

void refuse_listen(int error) {
  refuse_call(__NR_listen, error);
}

void refuse_send(int error) {
  refuse_call(__NR_sendto, error);  // glibc's send() is a sendto() without an address
}

void refuse_recv(int error) {
  refuse_call(__NR_recvfrom, error);
}

void refuse_setsockopt(int level, int error) {
  refuse_call_with(__NR_setsockopt, static_cast<std::uint32_t>(level), error);
}

void refuse_fcntl(int command, int error) {
  refuse_call_with(__NR_fcntl, static_cast<std::uint32_t>(command), error);
}

}  // namespace course_test
