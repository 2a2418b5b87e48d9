// SPDX-License-Identifier: MIT
// Requests about requests: links, timeouts, cancellation, messages between rings, waiting,
// counting.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "newer_abi.hpp"
#include "probe_error.hpp"
#include "probe_ring.hpp"
#include "probe_sockets.hpp"
#include "probes.hpp"
#include "unique_fd.hpp"

namespace doctor {
namespace {

constexpr unsigned buffer_bytes = 8;
using small_buffer = std::array<char, buffer_bytes>;

constexpr ::__kernel_timespec one_millisecond{.tv_sec = 0, .tv_nsec = 1'000'000};

// Two completions by their user_data, 1 and 2, in whatever order they came.
struct two_results {
  explicit two_results(probe_ring& ring) {
    for (int n = 0; n < 2; ++n) {
      const completion done = ring.wait();
      (done.user_data == 1 ? first : second) = done.res;
    }
  }
  int first = 0;
  int second = 0;
};

void expect(int result, int wanted, const char* what) {
  if (result == wanted) return;
  if (result < 0) throw probe_error{what, result};
  throw probe_error{std::string{what} + ": unexpected result " + std::to_string(result)};
}

void timeout_op() {
  ::__kernel_timespec soon = one_millisecond;
  probe_ring ring;
  ring.prepare(1, ::io_uring_prep_timeout, &soon, 0U, 0U);
  ring.submit();
  expect(ring.wait().res, -ETIME, "timeout");
}

// An operation that fails takes its soft link with it.
void link_requests() {
  small_buffer buffer{};
  probe_ring ring;
  ring.prepare(1, ::io_uring_prep_read, -1, buffer.data(), buffer_bytes, 0U).flags |= IOSQE_IO_LINK;
  ring.prepare(2, ::io_uring_prep_nop);
  ring.submit();
  const two_results results{ring};
  expect(results.first, -EBADF, "read of a descriptor that is not open");
  expect(results.second, -ECANCELED, "the request linked to a failed one");
}

void hardlink_requests() {
  ::__kernel_timespec soon = one_millisecond;
  probe_ring ring;
  ring.prepare(1, ::io_uring_prep_timeout, &soon, 0U, 0U).flags |= IOSQE_IO_HARDLINK;
  ring.prepare(2, ::io_uring_prep_nop);
  ring.submit();
  const two_results results{ring};
  expect(results.first, -ETIME, "timeout");
  expect(results.second, 0, "the request hard-linked to a timeout");
}

void linked_timeout() {
  ::__kernel_timespec soon = one_millisecond;
  small_buffer buffer{};
  const loopback_pair sockets;
  probe_ring ring;
  ring.prepare(1, ::io_uring_prep_recv, sockets.here.get(), buffer.data(), buffer_bytes, 0).flags |=
      IOSQE_IO_LINK;
  ring.prepare(2, ::io_uring_prep_link_timeout, &soon, 0U);
  ring.submit();
  const two_results results{ring};
  expect(results.first, -ECANCELED, "recv past its linked timeout");
  expect(results.second, -ETIME, "the linked timeout");
}

// A recv that waits for bytes nobody sends, until `cancel` has prepared a request against it.
template <typename Cancel>
void cancel_recv(Cancel cancel, int canceled_count) {
  small_buffer buffer{};
  const loopback_pair sockets;
  probe_ring ring;
  ring.prepare(1, ::io_uring_prep_recv, sockets.here.get(), buffer.data(), buffer_bytes, 0);
  ring.submit();
  cancel(ring, sockets.here.get());
  ring.submit();
  const two_results results{ring};
  expect(results.second, canceled_count, "cancel");
  expect(results.first, -ECANCELED, "the canceled recv");
}

void cancel_user_data() {
  cancel_recv([](probe_ring& ring, int) { ring.prepare(2, ::io_uring_prep_cancel64, 1ULL, 0); }, 0);
}

void cancel_fd() {
  cancel_recv([](probe_ring& ring, int fd) { ring.prepare(2, ::io_uring_prep_cancel_fd, fd, 0U); },
              0);
}

// With ALL, the result of the cancel is the number of requests that it has ended.
void cancel_any() {
  static constexpr int everything = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL;
  cancel_recv(
      [](probe_ring& ring, int) { ring.prepare(2, ::io_uring_prep_cancel64, 0ULL, everything); },
      1);
}

void sync_cancel() {
  small_buffer buffer{};
  const loopback_pair sockets;
  probe_ring ring;
  ring.prepare(1, ::io_uring_prep_recv, sockets.here.get(), buffer.data(), buffer_bytes, 0);
  ring.submit();
  ::io_uring_sync_cancel_reg wanted{};
  wanted.addr = 1;
  wanted.timeout.tv_sec = 1;
  need(::io_uring_register_sync_cancel(ring.native(), &wanted), "io_uring_register SYNC_CANCEL");
  expect(ring.wait().res, -ECANCELED, "the canceled recv");
}

void msg_ring() {
  probe_ring sender;
  probe_ring receiver;
  sender.prepare(1, ::io_uring_prep_msg_ring, receiver.fd(), 5U, 77ULL, 0U);
  sender.finish("msg_ring");
  const completion message = receiver.wait();
  if (message.res != 5 || message.user_data != 77) {
    throw probe_error{"the message arrived with another content"};
  }
}

void register_ring_fd() {
  probe_ring ring;
  expect(::io_uring_register_ring_fd(ring.native()), 1, "io_uring_register RING_FDS");
  ring.prepare(1, ::io_uring_prep_nop);
  ring.finish("nop through the registered ring");
  need(::io_uring_unregister_ring_fd(ring.native()), "io_uring_register, to unregister RING_FDS");
}

int enter_and_wait(const probe_ring& ring, unsigned wanted, const abi::wait_arguments& limits) {
  constexpr unsigned flags = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG;
  const auto result =
      ::syscall(__NR_io_uring_enter, ring.fd(), 0, wanted, flags, &limits, sizeof limits);
  return result == -1 ? -errno : static_cast<int>(result);
}

void wait_timeout() {
  const probe_ring ring;
  const abi::wait_arguments limits{.timeout = reinterpret_cast<std::uintptr_t>(&one_millisecond)};
  expect(enter_and_wait(ring, 1, limits), -ETIME, "io_uring_enter with a timeout");
}

// Waits for two completions when one is there: after the minimum time the wait ends with that one.
void min_wait() {
  probe_ring ring;
  need_bit(ring.features(), abi::feature_min_timeout, "IORING_FEAT_MIN_TIMEOUT");
  ring.prepare(1, ::io_uring_prep_nop);
  ring.submit();
  const ::__kernel_timespec limit{.tv_sec = wait_deadline_ms.count() / 1000, .tv_nsec = 0};
  const abi::wait_arguments limits{.min_wait_us = 1000,
                                   .timeout = reinterpret_cast<std::uintptr_t>(&limit)};
  const auto start = std::chrono::steady_clock::now();
  need(enter_and_wait(ring, 2, limits), "io_uring_enter with a minimum wait");
  if (std::chrono::steady_clock::now() - start > wait_deadline_ms / 2) {
    throw probe_error{"the wait went on past its minimum, although a completion was there"};
  }
}

// Without liburing, because its mappings would have to move along with the ring.
void ring_resize() {
  ::io_uring_params params{};
  params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  const common::unique_fd ring{need(::io_uring_setup(4, &params), "io_uring_setup")};
  ::io_uring_params larger{};
  larger.flags = IORING_SETUP_CQSIZE;
  larger.sq_entries = 4;
  larger.cq_entries = 64;
  need(::io_uring_register(static_cast<unsigned>(ring.get()), abi::register_resize_rings, &larger,
                           1),
       "io_uring_register RESIZE_RINGS");
  if (larger.cq_entries != 64) throw probe_error{"the CQ did not get the size that was asked for"};
}

std::uint32_t counter_in_fdinfo(int fd, std::string_view name) {
  std::ifstream fdinfo{"/proc/thread-self/fdinfo/" + std::to_string(fd)};
  for (std::string line; std::getline(fdinfo, line);) {
    if (line.starts_with(name) && line.substr(name.size()).starts_with(':')) {
      return static_cast<std::uint32_t>(std::stoul(line.substr(name.size() + 1)));
    }
  }
  throw probe_error{"/proc/PID/fdinfo of a ring has no line " + std::string{name}};
}

// The checkpoints count SQEs and CQEs with it, from outside the server.
void fdinfo() {
  probe_ring ring;
  for (int n = 0; n < 3; ++n) {
    ring.prepare(1, ::io_uring_prep_nop);
    ring.finish("nop");
  }
  if (counter_in_fdinfo(ring.fd(), "SqTail") != 3 || counter_in_fdinfo(ring.fd(), "CqTail") != 3) {
    throw probe_error{"/proc/PID/fdinfo counts other SQEs and CQEs than went through the ring"};
  }
}

constexpr std::array control_features{
    feature{"timeout", "control", "5.4", "a timeout that runs out", &timeout_op},
    feature{"link", "control", "5.3", "a failure that ends the chain", &link_requests},
    feature{"hardlink", "control", "5.5", "a chain that goes on past a timeout",
            &hardlink_requests},
    feature{"linked_timeout", "control", "5.5", "a recv with a time limit", &linked_timeout},
    feature{"cancel_user_data", "control", "5.5", "a recv canceled by its user_data",
            &cancel_user_data},
    feature{"cancel_fd", "control", "5.19", "a recv canceled by its descriptor", &cancel_fd},
    feature{"cancel_any", "control", "5.19", "everything in flight canceled at once", &cancel_any},
    feature{"sync_cancel", "control", "6.0", "a recv canceled without a completion of the cancel",
            &sync_cancel},
    feature{"msg_ring", "control", "5.18", "a completion sent to another ring", &msg_ring},
    feature{"register_ring_fd", "control", "5.18", "entering the ring by a registered index",
            &register_ring_fd},
    feature{"wait_timeout", "control", "5.11", "a wait that ends without a completion",
            &wait_timeout},
    feature{"fdinfo", "control", "", "SQEs and CQEs counted in /proc/PID/fdinfo", &fdinfo},
    feature{"min_wait", "control", "6.12", "a wait that may end after a minimum time", &min_wait},
    feature{"ring_resize", "control", "6.13", "a larger CQ for a ring in use", &ring_resize},
};

}  // namespace

std::span<const feature> control_probes() {
  return control_features;
}

}  // namespace doctor
