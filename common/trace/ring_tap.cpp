// SPDX-License-Identifier: MIT
// The ring tap: the linker leads the program's calls of liburing here (-Wl,--wrap), and from here
// to the library. What is inlined (get_sqe, prepare, reap) is read from the rings' memory.
#include <algorithm>

#include "recording.hpp"

namespace course_trace {

namespace {

// By opcode, and by the number of the flag's bit.
constexpr std::string_view op_names =
    "NOP READV WRITEV FSYNC READ_FIXED WRITE_FIXED POLL_ADD POLL_REMOVE SYNC_FILE_RANGE SENDMSG "
    "RECVMSG TIMEOUT TIMEOUT_REMOVE ACCEPT ASYNC_CANCEL LINK_TIMEOUT CONNECT FALLOCATE OPENAT "
    "CLOSE FILES_UPDATE STATX READ WRITE FADVISE MADVISE SEND RECV OPENAT2 EPOLL_CTL SPLICE "
    "PROVIDE_BUFFERS REMOVE_BUFFERS TEE SHUTDOWN RENAMEAT UNLINKAT MKDIRAT SYMLINKAT LINKAT "
    "MSG_RING FSETXATTR SETXATTR FGETXATTR GETXATTR SOCKET URING_CMD SEND_ZC SENDMSG_ZC "
    "READ_MULTISHOT WAITID FUTEX_WAIT FUTEX_WAKE FUTEX_WAITV FIXED_FD_INSTALL FTRUNCATE BIND "
    "LISTEN RECV_ZC ";
constexpr std::string_view sqe_flags =
    "FIXED_FILE DRAIN LINK HARDLINK ASYNC BUFFER_SELECT CQE_SKIP ";
constexpr std::string_view cqe_flags = "BUFFER MORE SOCK_NONEMPTY NOTIF ";

constexpr std::string_view word_of(std::string_view words, unsigned number) {
  for (; number > 0 && !words.empty(); --number) words.remove_prefix(words.find(' ') + 1);
  return words.substr(0, words.find(' '));
}
static_assert(word_of(op_names, IORING_OP_MSG_RING) == "MSG_RING");

std::vector<std::string_view> flags_in(unsigned bits, std::string_view names) {
  std::vector<std::string_view> found;
  for (unsigned bit = 0; !word_of(names, bit).empty(); ++bit) {
    if ((bits & 1U << bit) != 0) found.push_back(word_of(names, bit));
  }
  return found;
}

bool is_multishot(const ::io_uring_sqe& sqe) {
  switch (sqe.opcode) {
    case IORING_OP_ACCEPT:
      return (sqe.ioprio & IORING_ACCEPT_MULTISHOT) != 0;
    case IORING_OP_RECV:
    case IORING_OP_RECVMSG:
      return (sqe.ioprio & IORING_RECV_MULTISHOT) != 0;
    case IORING_OP_POLL_ADD:
      return (sqe.len & IORING_POLL_ADD_MULTI) != 0;
    default:
      return false;
  }
}

// The kernel writes what this reads: a plain load might be moved.
unsigned load(const unsigned* from) {
  return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

event with_indices(event happened, const ring_state& ring) {
  const ::io_uring_cq& cq = ring.queues.cq;
  happened.number("ring", ring.number);
  happened.numbers("sq", {load(ring.queues.sq.khead), load(ring.prepared)});
  return happened.numbers("cq", {load(cq.khead), load(cq.ktail)});
}

}  // namespace

void recording::look() {
  for (buffers_state& each : buffers) {
    const ring_state* const whose = find(each.ring);
    if (whose != nullptr && whose->thread == thread()) look_at(each);
  }
  for (ring_state& each : rings_) {
    if (each.thread == thread()) look_at(each);
  }
}

void recording::look_at(buffers_state& ring) {
  const std::uint16_t tail = __atomic_load_n(&ring.memory->tail, __ATOMIC_ACQUIRE);
  for (; ring.tail_seen != tail; ++ring.tail_seen) {
    const ::io_uring_buf& entry = ring.memory->bufs[ring.tail_seen & ring.mask];
    write_only(event{"recycle"}.number("group", ring.group).number("id", entry.bid));
  }
}

void recording::look_at(ring_state& ring) {
  for (const unsigned end = load(ring.prepared); ring.sqes_seen != end;) {
    write_sqe(ring, ring.sqes_seen++);
  }
  if (const unsigned head = load(ring.queues.sq.khead); head != ring.taken_seen) {
    ring.taken_seen = head;
    event happened{"take"};
    happened.number("ring", ring.number).numbers("sq", {head, ring.sqes_seen});
    write_only(happened);
  }
  const ::io_uring_cq& cq = ring.queues.cq;
  for (const unsigned end = load(cq.ktail); ring.cqes_seen != end;) {
    write_cqe(ring, ring.cqes_seen++);
  }
  if (const unsigned head = load(cq.khead); head != ring.head_seen) {
    ring.head_seen = head;
    write_only(event{"reap"}.number("ring", ring.number).numbers("cq", {head, load(cq.ktail)}));
  }
}

void recording::write_sqe(const ring_state& ring, unsigned index) {
  const ::io_uring_sq& sq = ring.queues.sq;
  unsigned slot = index & sq.ring_mask;
  const ::io_uring_sqe& sqe = sq.sqes[ring.prepared == sq.ktail ? sq.array[slot] : slot];
  event happened{"sqe"};
  happened.number("ring", ring.number)
      .number("slot", slot)
      .text("op", word_of(op_names, sqe.opcode));
  happened.number("fd", sqe.fd).number("len", sqe.len);
  auto flags = flags_in(sqe.flags, sqe_flags);
  if (is_multishot(sqe)) flags.emplace_back("MULTISHOT");
  if (!flags.empty()) happened.texts("flags", flags);
  if ((sqe.flags & IOSQE_BUFFER_SELECT) != 0) happened.number("group", sqe.buf_group);
  const std::string user = name_of(sqe.user_data);
  user_data_[sqe.user_data] = user;
  happened.text("user", user);
  if (sqe.opcode == IORING_OP_ASYNC_CANCEL) {
    const auto target = user_data_.find(sqe.addr);
    happened.text("target", target == user_data_.end() ? name_of(sqe.addr) : target->second);
  } else if (sqe.addr != 0) {
    happened.text("addr", name_of(sqe.addr));
  }
  write_only(happened);
}

void recording::write_cqe(const ring_state& ring, unsigned index) {
  const unsigned slot = index & ring.queues.cq.ring_mask;
  const ::io_uring_cqe& cqe = ring.queues.cq.cqes[slot];
  const auto known = user_data_.find(cqe.user_data);
  event happened{"cqe"};
  happened.number("ring", ring.number).number("slot", slot);
  happened.text("user", known == user_data_.end() ? name_of(cqe.user_data) : known->second);
  happened.number("res", cqe.res).texts("flags", flags_in(cqe.flags, cqe_flags));
  if ((cqe.flags & IORING_CQE_F_BUFFER) != 0) {
    happened.number("buffer", cqe.flags >> IORING_CQE_BUFFER_SHIFT);
  }
  write_only(happened);
}

ring_state& recording::add(const void* key, const ::io_uring& queues, const unsigned* prepared) {
  rings_.push_back({key, rings_made_++, thread(), queues, prepared});
  ring_state& made = rings_.back();
  made.sqes_seen = load(prepared);
  made.taken_seen = load(queues.sq.khead);
  made.cqes_seen = load(queues.cq.ktail);
  made.head_seen = load(queues.cq.khead);
  event happened{"ring"};
  happened.number("ring", made.number).number("sq", queues.sq.ring_entries);
  write(happened.number("cq", queues.cq.ring_entries));
  return made;
}

ring_state* recording::find(const void* key) noexcept {
  const auto found = std::ranges::find(rings_, key, &ring_state::key);
  return found == rings_.end() ? nullptr : &*found;
}

void recording::remove(const void* key) {
  const ring_state* const found = find(key);
  if (found == nullptr) return;
  write(event{"exit"}.number("ring", found->number));
  std::erase_if(buffers, [&](const buffers_state& each) { return each.ring == key; });
  std::erase_if(rings_, [&](const ring_state& each) { return each.key == key; });
}

namespace {

// Whether liburing will enter the kernel, as it decides itself.
bool will_enter(const ring_state& ring, unsigned wait, bool asks_for_events) {
  const auto& sq = ring.queues.sq;
  const auto& cq = ring.queues.cq;
  const unsigned flags = load(sq.kflags);
  const bool polls = (ring.queues.flags & IORING_SETUP_SQPOLL) != 0;
  const bool submits =
      load(ring.prepared) != load(sq.khead) && (!polls || (flags & IORING_SQ_NEED_WAKEUP) != 0);
  return submits || asks_for_events || wait > load(cq.ktail) - load(cq.khead) ||
         (flags & (IORING_SQ_CQ_OVERFLOW | IORING_SQ_TASKRUN)) != 0;
}

// One call of liburing that may enter the kernel, told before and after.
template <typename Call>
int told(const ::io_uring* which, unsigned wait, bool asks_for_events, const Call& call) {
  bool enters = false;
  if (const locked to; to) {
    ring_state* const ring = to->find(which);
    if (ring != nullptr) {
      ring->thread = recording::thread();
      to->look();
      enters = will_enter(*ring, wait, asks_for_events);
      const event happened{enters ? "enter" : "no_enter"};
      to->write_only(with_indices(happened, *ring).number("wait", wait));
    }
  }
  const int res = call();
  if (const locked to; to && enters) {
    if (const ring_state* const ring = to->find(which); ring != nullptr) {
      to->write(with_indices(event{"entered"}.number("res", res), *ring));
    }
  }
  return res;
}

int added(::io_uring* ring, int result) {
  const locked to;
  if (to && result == 0) to->add(ring, *ring, &ring->sq.sqe_tail);
  return result;
}

}  // namespace

}  // namespace course_trace

using course_trace::event;
using course_trace::locked;
using course_trace::told;

// The linker gives these names: NAME, called by the program, is __wrap_NAME, and the library's own
// is __real_NAME.
#define COURSE_WRAPPED(result, name, ...) \
  result __real_##name(__VA_ARGS__);      \
  result __wrap_##name(__VA_ARGS__);      \
  result __wrap_##name(__VA_ARGS__)

extern "C" {

COURSE_WRAPPED(int, io_uring_queue_init, unsigned entries, ::io_uring* ring, unsigned flags) {
  return course_trace::added(ring, __real_io_uring_queue_init(entries, ring, flags));
}

COURSE_WRAPPED(int, io_uring_queue_init_params, unsigned entries, ::io_uring* ring,
               ::io_uring_params* params) {
  return course_trace::added(ring, __real_io_uring_queue_init_params(entries, ring, params));
}

COURSE_WRAPPED(void, io_uring_queue_exit, ::io_uring* ring) {
  if (const locked to; to) to->remove(ring);
  __real_io_uring_queue_exit(ring);
}

COURSE_WRAPPED(int, io_uring_submit, ::io_uring* ring) {
  return told(ring, 0, false, [&] { return __real_io_uring_submit(ring); });
}

COURSE_WRAPPED(int, io_uring_submit_and_wait, ::io_uring* ring, unsigned count) {
  return told(ring, count, count > 0, [&] { return __real_io_uring_submit_and_wait(ring, count); });
}

COURSE_WRAPPED(int, io_uring_submit_and_wait_timeout, ::io_uring* ring, ::io_uring_cqe** first,
               unsigned count, ::__kernel_timespec* limit, ::sigset_t* mask) {
  return told(ring, count, false, [&] {
    return __real_io_uring_submit_and_wait_timeout(ring, first, count, limit, mask);
  });
}

COURSE_WRAPPED(int, __io_uring_get_cqe, ::io_uring* ring, ::io_uring_cqe** first, unsigned submit,
               unsigned count, ::sigset_t* mask) {
  return told(ring, count, false,
              [&] { return __real___io_uring_get_cqe(ring, first, submit, count, mask); });
}

COURSE_WRAPPED(int, io_uring_get_events, ::io_uring* ring) {
  return told(ring, 0, true, [&] { return __real_io_uring_get_events(ring); });
}

COURSE_WRAPPED(int, io_uring_register_sync_cancel, ::io_uring* ring,
               ::io_uring_sync_cancel_reg* which) {
  const int res = __real_io_uring_register_sync_cancel(ring, which);
  if (const locked to; to) {
    const auto* const found = to->find(ring);
    if (found != nullptr)
      to->write(event{"canceled"}.number("ring", found->number).number("res", res));
  }
  return res;
}

COURSE_WRAPPED(int, io_uring_register_buf_ring, ::io_uring* ring, ::io_uring_buf_reg* which,
               unsigned flags) {
  const int res = __real_io_uring_register_buf_ring(ring, which, flags);
  const locked to;
  const auto* const found = to && res == 0 ? to->find(ring) : nullptr;
  if (found == nullptr) return res;
  const auto* const memory = reinterpret_cast<const ::io_uring_buf_ring*>(which->ring_addr);
  to->buffers.push_back({memory, which->ring_entries - 1, which->bgid, ring, 0});
  to->write(event{"buffers"}.number("group", which->bgid).number("entries", which->ring_entries));
  return res;
}

COURSE_WRAPPED(int, io_uring_unregister_buf_ring, ::io_uring* ring, int group) {
  if (const locked to; to) {
    to->look();
    std::erase_if(to->buffers, [&](const auto& each) { return each.group == group; });
  }
  return __real_io_uring_unregister_buf_ring(ring, group);
}

}  // extern "C"
