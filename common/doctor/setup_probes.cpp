// SPDX-License-Identifier: MIT
// Rings of every kind, and what the kernel says about itself when it makes one.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "newer_abi.hpp"
#include "probe_error.hpp"
#include "probe_ring.hpp"
#include "probe_sockets.hpp"
#include "probes.hpp"
#include "unique_fd.hpp"

namespace doctor {
namespace {

using common::unique_fd;

void run_nop(probe_ring& ring) {
  ring.prepare(42, ::io_uring_prep_nop);
  const completion done = ring.finish("nop");
  if (done.user_data != 42) throw probe_error{"the NOP came back with another user_data"};
}

// Setup alone proves little: a request has to make the round trip through it.
void ring_with(unsigned flags) {
  probe_ring ring{{.flags = flags}};
  run_nop(ring);
}

unique_fd raw_setup(unsigned entries, ::io_uring_params& params) {
  const auto fd = ::syscall(__NR_io_uring_setup, entries, &params);
  if (fd == -1) throw probe_error{"io_uring_setup", errno};
  return unique_fd{static_cast<int>(fd)};
}

// One mapping of a ring file, as bytes to which the kernel's offsets apply.
class ring_mapping {
 public:
  ring_mapping(int fd, std::uint64_t offset, std::size_t bytes) : bytes_{bytes} {
    start_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
                    static_cast<::off_t>(offset));
    if (start_ == MAP_FAILED) throw probe_error{"mmap of the ring", errno};
  }
  ring_mapping(ring_mapping&&) = delete;
  ~ring_mapping() { ::munmap(start_, bytes_); }

  template <typename T>
  [[nodiscard]] T* at(std::uint32_t offset) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(start_) + offset);
  }

 private:
  void* start_;
  std::size_t bytes_;
};

// What chapter 04 builds, in its shortest form: both rings in one mapping, one NOP through them.
void raw_ring() {
  ::io_uring_params params{};
  const unique_fd fd = raw_setup(4, params);
  need_bit(params.features, IORING_FEAT_SINGLE_MMAP, "IORING_FEAT_SINGLE_MMAP");
  const std::size_t sq_bytes = params.sq_off.array + params.sq_entries * sizeof(std::uint32_t);
  const std::size_t cq_bytes = params.cq_off.cqes + params.cq_entries * sizeof(::io_uring_cqe);
  const ring_mapping rings{fd.get(), IORING_OFF_SQ_RING, std::max(sq_bytes, cq_bytes)};
  const ring_mapping sqes{fd.get(), IORING_OFF_SQES, params.sq_entries * sizeof(::io_uring_sqe)};

  auto* const nop = sqes.at<::io_uring_sqe>(0);
  std::memset(nop, 0, sizeof *nop);
  nop->opcode = IORING_OP_NOP;
  nop->user_data = 42;
  *rings.at<std::uint32_t>(params.sq_off.array) = 0;
  // Pairs with the kernel's acquire of the SQ tail: it sees the SQE that the tail covers.
  std::atomic_ref{*rings.at<std::uint32_t>(params.sq_off.tail)}.store(1, std::memory_order_release);
  const auto entered =
      ::syscall(__NR_io_uring_enter, fd.get(), 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0);
  if (entered == -1) throw probe_error{"io_uring_enter", errno};

  // Pairs with the kernel's release of the CQ tail.
  const std::uint32_t cq_tail =
      std::atomic_ref{*rings.at<std::uint32_t>(params.cq_off.tail)}.load(std::memory_order_acquire);
  const auto* const cqe = rings.at<::io_uring_cqe>(params.cq_off.cqes);
  if (entered != 1 || cq_tail != 1 || cqe->user_data != 42) {
    throw probe_error{"the NOP did not come back through the hand-made ring"};
  }
}

void cqsize() {
  probe_ring ring{{.flags = IORING_SETUP_CQSIZE, .sq_entries = 4, .cq_entries = 64}};
  if (ring.native()->cq.ring_entries != 64) {
    throw probe_error{"asked for 64 CQ entries, got " +
                      std::to_string(ring.native()->cq.ring_entries)};
  }
  run_nop(ring);
}

// Tried with the CQ, to save locked memory: the largest SQ and its SQEs take three times as much.
void clamp() {
  constexpr unsigned too_many = 1U << 24;
  probe_ring ring{{.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP, .cq_entries = too_many}};
  if (ring.native()->cq.ring_entries >= too_many) throw probe_error{"the size was not cut down"};
}

void attach_wq() {
  const probe_ring first;
  probe_ring second{{.flags = IORING_SETUP_ATTACH_WQ, .wq_fd = static_cast<unsigned>(first.fd())}};
  run_nop(second);
}

void r_disabled() {
  probe_ring ring{{.flags = IORING_SETUP_R_DISABLED}};
  // Not io_uring_enable_rings(): liburing 2.3 declares it and forgets to export it.
  need(::io_uring_register(static_cast<unsigned>(ring.fd()), IORING_REGISTER_ENABLE_RINGS, nullptr,
                           0),
       "io_uring_register ENABLE_RINGS");
  run_nop(ring);
}

// The first request is refused when it is submitted; the flag says that the second goes in anyway.
void submit_all() {
  probe_ring ring{{.flags = IORING_SETUP_SUBMIT_ALL}};
  ring.prepare(1, ::io_uring_prep_nop).opcode = 0xff;
  ring.prepare(2, ::io_uring_prep_nop);
  if (need(::io_uring_submit(ring.native()), "io_uring_enter") != 2) {
    throw probe_error{"a refused request still ends the batch"};
  }
  if (ring.wait().res != -EINVAL) throw probe_error{"opcode 255 was not refused"};
  need(ring.wait().res, "nop");
}

void no_sqarray() {
  ::io_uring_params params{};
  params.flags = abi::setup_no_sqarray;
  const unique_fd fd = raw_setup(4, params);
  if (params.sq_off.array != 0) throw probe_error{"the ring still has an SQ array"};
}

void feature_bit(unsigned bit, const char* name) {
  ::io_uring_params params{};
  const unique_fd fd = raw_setup(4, params);
  need_bit(params.features, bit, name);
}

// Four completions for a CQ of two: the kernel keeps what does not fit, and brings it when asked.
void nodrop() {
  feature_bit(IORING_FEAT_NODROP, "IORING_FEAT_NODROP");
  probe_ring ring{{.flags = IORING_SETUP_CQSIZE, .sq_entries = 1, .cq_entries = 2}};
  for (std::uint64_t n = 0; n < 4; ++n) {
    ring.prepare(n, ::io_uring_prep_nop);
    ring.submit();
  }
  std::uint64_t sum = 0;
  for (int n = 0; n < 4; ++n) sum += ring.wait().user_data;
  if (sum != 0 + 1 + 2 + 3) throw probe_error{"completions beyond the CQ's size were lost"};
}

// A recv on an empty blocking socket waits for the data; it neither fails nor blocks the submit.
void fast_poll() {
  feature_bit(IORING_FEAT_FAST_POLL, "IORING_FEAT_FAST_POLL");
  std::array<char, 8> buffer{};
  const loopback_pair sockets;
  probe_ring ring;
  ring.prepare(1, ::io_uring_prep_recv, sockets.here.get(), buffer.data(), buffer.size(), 0);
  ring.submit();
  put(sockets.there.get(), "hello");
  if (need(ring.wait().res, "recv") != 5) throw probe_error{"recv brought fewer bytes than came"};
}

void cqe_skip() {
  feature_bit(IORING_FEAT_CQE_SKIP, "IORING_FEAT_CQE_SKIP");
  probe_ring ring;
  ring.prepare(1, ::io_uring_prep_nop).flags |= IOSQE_CQE_SKIP_SUCCESS;
  ring.prepare(2, ::io_uring_prep_nop);
  if (ring.finish("nop").user_data != 2) throw probe_error{"the skipped CQE came all the same"};
}

constexpr unsigned defer = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;

constexpr std::array setup_features{
    feature{"ring", "setup", "5.1", "a ring without flags, and a NOP through it",
            [] { ring_with(0); }},
    feature{"raw_ring", "setup", "5.4", "a ring and a NOP, by syscall(2) and mmap(2)", &raw_ring},
    feature{"cqsize", "setup", "", "a CQ larger than twice the SQ", &cqsize},
    feature{"clamp", "setup", "", "sizes beyond the limit are cut to the limit", &clamp},
    feature{"attach_wq", "setup", "", "two rings that share their worker threads", &attach_wq},
    feature{"r_disabled", "setup", "5.10", "a ring that is enabled later", &r_disabled},
    feature{"submit_all", "setup", "5.18", "a refused request does not end the batch", &submit_all},
    feature{"coop_taskrun", "setup", "5.19", "completions without interrupting the program",
            [] { ring_with(IORING_SETUP_COOP_TASKRUN); }},
    feature{"taskrun_flag", "setup", "5.19",
            "COOP_TASKRUN, and a flag that is set while work waits",
            [] { ring_with(IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG); }},
    feature{"single_issuer", "setup", "6.0", "a ring that one thread alone submits to",
            [] { ring_with(IORING_SETUP_SINGLE_ISSUER); }},
    feature{"defer_taskrun", "setup", "6.1", "completion work waits for the ring's thread",
            [] { ring_with(defer); }},
    feature{"sqpoll", "setup", "5.13", "a kernel thread that submits for the program",
            [] { ring_with(IORING_SETUP_SQPOLL); }},
    feature{"no_sqarray", "setup", "6.6", "a ring without the array of SQE indices", &no_sqarray},

    feature{"single_mmap", "kernel", "5.4", "one mapping for both rings",
            [] { feature_bit(IORING_FEAT_SINGLE_MMAP, "IORING_FEAT_SINGLE_MMAP"); }},
    feature{"nodrop", "kernel", "5.5", "completions beyond the CQ's size are kept", &nodrop},
    feature{"submit_stable", "kernel", "5.5",
            "a request's arguments may change once the request is submitted",
            [] { feature_bit(IORING_FEAT_SUBMIT_STABLE, "IORING_FEAT_SUBMIT_STABLE"); }},
    feature{"fast_poll", "kernel", "5.7", "a recv waits for data without a thread", &fast_poll},
    feature{"ext_arg", "kernel", "5.11", "io_uring_enter takes a timeout",
            [] { feature_bit(IORING_FEAT_EXT_ARG, "IORING_FEAT_EXT_ARG"); }},
    feature{"native_workers", "kernel", "5.12", "worker threads belong to the process",
            [] { feature_bit(IORING_FEAT_NATIVE_WORKERS, "IORING_FEAT_NATIVE_WORKERS"); }},
    feature{"cqe_skip", "kernel", "5.17", "a request that reports only its failure", &cqe_skip},
    feature{"linked_file", "kernel", "5.17", "a link may use the file that the one before it opens",
            [] { feature_bit(IORING_FEAT_LINKED_FILE, "IORING_FEAT_LINKED_FILE"); }},
};

}  // namespace

std::span<const feature> setup_probes() {
  return setup_features;
}

}  // namespace doctor
