// SPDX-License-Identifier: MIT
// The store tap: a ring without liburing, as chapter 04 makes it. The linker leads syscall() and
// mmap() here. What is mapped of the ring becomes read-only, so that each store into it is a fault:
// the store is let through as a single step, and told. (On x86-64; elsewhere stores are not seen.)
// Owns     nothing; of several such rings the last one is watched.
// Threads  the one that has made the ring.
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <span>
#include <tuple>
#include <utility>

#include "recording.hpp"

namespace course_trace {

namespace {

using mapping = std::span<std::byte>;

struct raw_ring {
  int fd = -1;
  ::io_uring_params params{};
  std::array<mapping, 3> parts{};  // the SQ's ring, the CQ's, the SQEs
  ::io_uring queues{};
  unsigned named = 0;            // how many SQEs the array was told
  unsigned filled = 0;           // how many of them are filled in, too
  unsigned* stored = nullptr;    // where the last store went
  const void* before = nullptr;  // and the one before it: an SQE as a whole
};
raw_ring raw;

bool is_in_array(const unsigned* place) {
  const auto& sq = raw.queues.sq;
  return place >= sq.array && place < sq.array + sq.ring_entries;
}

#ifdef __x86_64__
constexpr ::greg_t single_step = 0x100;  // the processor's trap flag

::greg_t& flags_of(void* context) {
  return static_cast<::ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
}

void protect(int access) {
  for (const mapping& each : raw.parts) {
    if (!each.empty()) ::mprotect(each.data(), each.size(), access);
  }
}

void write_store(const void* whole, const char* where, std::ptrdiff_t slot) {
  if (std::exchange(raw.before, whole) == whole) return;  // several stores fill in one SQE
  if (const locked to; const ring_state* const ring = to.find(&raw)) {
    to->write("store", "'ring':%d,'into':'%s','slot':%td,'value':%u", ring->number, where, slot,
              *raw.stored);
  }
}

void on_store(int signal, ::siginfo_t* info, void* context) {
  const auto* const place = static_cast<std::byte*>(info->si_addr);
  const auto has = [&](const mapping& each) {
    return place >= each.data() && place < each.data() + each.size();
  };
  if (std::ranges::none_of(raw.parts, has)) {
    ::signal(signal, SIG_DFL);  // it faults again, and is the crash that it would be without us
    return;
  }
  raw.stored = static_cast<unsigned*>(info->si_addr);
  if (is_in_array(raw.stored) || raw.stored == raw.queues.sq.ktail) {
    raw.filled = raw.named;  // before the next one is named, or all are shown
  }
  protect(PROT_READ | PROT_WRITE);
  flags_of(context) |= single_step;
}

void on_stored(int /*signal*/, ::siginfo_t* /*info*/, void* context) {
  const int error = errno;
  flags_of(context) &= ~single_step;
  const auto& [sq, cq] = std::tie(raw.queues.sq, raw.queues.cq);
  if (is_in_array(raw.stored)) {
    ++raw.named;
    write_store(raw.stored, "array", raw.stored - sq.array);
  } else if (raw.stored == sq.ktail) {
    write_store(raw.stored, "SQ tail", 0);
  } else if (raw.stored == cq.khead) {
    write_store(raw.stored, "CQ head", 0);
  } else {
    const auto* const first = reinterpret_cast<const std::byte*>(sq.sqes);
    const auto slot = (reinterpret_cast<const std::byte*>(raw.stored) - first) /
                      static_cast<std::ptrdiff_t>(sizeof(::io_uring_sqe));
    write_store(sq.sqes + slot, "SQE", slot);
  }
  protect(PROT_READ);
  errno = error;
}

void watch_stores() {
  struct ::sigaction action{};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = on_store;
  ::sigaction(SIGSEGV, &action, nullptr);
  action.sa_sigaction = on_stored;
  ::sigaction(SIGTRAP, &action, nullptr);
  protect(PROT_READ);
}
#endif

// A ring is whole when its SQEs and all of its indices are mapped.
void begin(const locked& to) {
  const ::io_uring_params& params = raw.params;
  const bool has_one = (params.features & IORING_FEAT_SINGLE_MMAP) != 0;
  const auto& [sq_ring, own_ring, sqes] = raw.parts;
  const mapping& cq_ring = has_one ? sq_ring : own_ring;
  if (sq_ring.empty() || cq_ring.empty() || sqes.empty()) return;
  const auto index = [](const mapping& part, unsigned offset) {
    return reinterpret_cast<unsigned*>(part.data() + offset);
  };
  const auto& [sq, cq] = std::tie(raw.queues.sq, raw.queues.cq);
  sq.khead = index(sq_ring, params.sq_off.head);
  sq.ktail = index(sq_ring, params.sq_off.tail);
  sq.kflags = index(sq_ring, params.sq_off.flags);
  sq.array = index(sq_ring, params.sq_off.array);
  sq.sqes = reinterpret_cast<::io_uring_sqe*>(sqes.data());
  sq.ring_entries = params.sq_entries;
  sq.ring_mask = params.sq_entries - 1;
  cq.khead = index(cq_ring, params.cq_off.head);
  cq.ktail = index(cq_ring, params.cq_off.tail);
  cq.cqes = reinterpret_cast<::io_uring_cqe*>(cq_ring.data() + params.cq_off.cqes);
  cq.ring_entries = params.cq_entries;
  cq.ring_mask = params.cq_entries - 1;
#ifdef __x86_64__
  to->add(&raw, raw.queues, &raw.filled, true);
  watch_stores();
#else
  to->add(&raw, raw.queues, sq.ktail, true);
#endif
}

}  // namespace

}  // namespace course_trace

using course_trace::locked;
using course_trace::raw;

extern "C" {

COURSE_WRAPPED(void*, mmap, void* at, std::size_t bytes, int access, int flags, int fd,
               ::off_t offset) {
  void* const start = __real_mmap(at, bytes, access, flags, fd, offset);
  const auto part = static_cast<std::size_t>(offset) / IORING_OFF_CQ_RING;  // 0, 1 or 2
  if (fd < 0 || fd != raw.fd || start == MAP_FAILED || part >= raw.parts.size()) return start;
  raw.parts.at(part) = {static_cast<std::byte*>(start), bytes};
  if (const locked to; to && to.find(&raw) == nullptr) course_trace::begin(to);
  return start;
}

COURSE_WRAPPED(long, syscall, long number, ...) {
  std::array<long, 6> words{};
  std::va_list rest;
  va_start(rest, number);
  for (long& each : words) each = va_arg(rest, long);
  va_end(rest);
  const bool enters = number == __NR_io_uring_enter && words[0] == raw.fd;
  const auto tell = [&](const char* kind, const char* what, long value) {
    const int error = errno;
    if (const locked to; const auto* const ring = to.find(&raw)) {
      to->write_indices(kind, *ring, what, static_cast<int>(value));
    }
    errno = error;
  };
  if (enters) tell("enter", "wait", words[2]);
  const long result =
      __real_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
  if (enters) tell("entered", "res", result < 0 ? -errno : result);
  if (number != __NR_io_uring_setup || result < 0) return result;
  if (const locked to; to) {
    to->remove(&raw);
    raw = {};
    raw.fd = static_cast<int>(result);
    raw.params = *reinterpret_cast<const ::io_uring_params*>(words[1]);
  }
  return result;
}

}  // extern "C"
