// SPDX-License-Identifier: MIT
// The ring tap: the linker leads the program's calls of liburing here (-Wl,--wrap), and from here
// to the library. What is inlined (get_sqe, prepare, reap) is read from the rings' memory.
#include <unistd.h>

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
    "FIXED_FILE DRAIN LINK HARDLINK ASYNC BUFFER_SELECT CQE_SKIP MULTISHOT ";
constexpr unsigned multishot_flag = 1U << 7;  // ours: in the kernel each operation has its own
constexpr std::string_view cqe_flags = "BUFFER MORE SOCK_NONEMPTY NOTIF ";

constexpr std::string_view word_of(std::string_view words, unsigned number) {
  for (; number > 0 && !words.empty(); --number) words.remove_prefix(words.find(' ') + 1);
  return words.substr(0, words.find(' '));
}
static_assert(word_of(op_names, IORING_OP_MSG_RING) == "MSG_RING");

// As JSON: ["MORE","NOTIF"]
std::string flags_in(unsigned bits, std::string_view names) {
  std::string found;
  for (unsigned bit = 0; !word_of(names, bit).empty(); ++bit) {
    if ((bits & 1U << bit) == 0) continue;
    found.append(found.empty() ? "'" : ",'").append(word_of(names, bit)).append("'");
  }
  return '[' + found + ']';
}

bool is_multishot(const ::io_uring_sqe& sqe) {
  const unsigned op = sqe.opcode;
  return (op == IORING_OP_ACCEPT && (sqe.ioprio & IORING_ACCEPT_MULTISHOT) != 0) ||
         (op == IORING_OP_POLL_ADD && (sqe.len & IORING_POLL_ADD_MULTI) != 0) ||
         ((op == IORING_OP_RECV || op == IORING_OP_RECVMSG) &&
          (sqe.ioprio & IORING_RECV_MULTISHOT) != 0);
}

// The kernel writes what this reads: a plain load might be moved.
unsigned load(const unsigned* from) {
  return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

}  // namespace

void recording::look() {
  for (buffers_state& each : buffers) {
    const ring_state* const whose = find(each.ring);
    if (whose == nullptr || whose->thread != thread()) continue;
    const std::uint16_t tail = __atomic_load_n(&each.memory->tail, __ATOMIC_ACQUIRE);
    for (; each.tail_seen != tail; ++each.tail_seen) {
      write("recycle", "'group':%d,'id':%d", each.group,
            each.memory->bufs[each.tail_seen & each.mask].bid);
    }
  }
  for (ring_state& each : rings_) {
    if (each.thread == thread()) look_at(each);
  }
}

// In the order in which it must have happened: an SQE before it is taken, a CQE before it is
// reaped; and as in every loop of ours, CQEs are reaped before new requests are made of them.
void recording::look_at(ring_state& ring) {
  const ::io_uring_cq& cq = ring.queues.cq;
  const unsigned prepared = load(ring.prepared);
  if (const unsigned head = load(ring.queues.sq.khead); head != ring.taken_seen) {
    while (static_cast<int>(head - ring.sqes_seen) > 0) write_sqe(ring, ring.sqes_seen++);
    ring.taken_seen = head;
    write("take", "'ring':%d,'sq':[%u,%u]", ring.number, head, prepared);
  }
  for (const unsigned end = load(cq.ktail); ring.cqes_seen != end;) {
    write_cqe(ring, ring.cqes_seen++);
  }
  if (const unsigned head = load(cq.khead); head != ring.head_seen) {
    ring.head_seen = head;
    write("reap", "'ring':%d,'cq':[%u,%u]", ring.number, head, load(cq.ktail));
  }
  while (ring.sqes_seen != prepared) write_sqe(ring, ring.sqes_seen++);
}

void recording::write_sqe(const ring_state& ring, unsigned index) {
  const ::io_uring_sq& sq = ring.queues.sq;
  const unsigned slot = index & sq.ring_mask;
  const ::io_uring_sqe& sqe = sq.sqes[ring.is_raw ? sq.array[slot] : slot];
  const std::string op{word_of(op_names, sqe.opcode)};
  const unsigned flags = sqe.flags | (is_multishot(sqe) ? multishot_flag : 0);
  const bool has_fd = sqe.opcode != IORING_OP_NOP;
  const bool cancels = sqe.opcode == IORING_OP_ASYNC_CANCEL;
  const auto known = user_data_.find(sqe.addr);
  const std::string addr = cancels && known != user_data_.end() ? known->second : name_of(sqe.addr);
  const std::string user = user_data_[sqe.user_data] = name_of(sqe.user_data);
  write("sqe", "'ring':%d,'slot':%u,'op':'%s','fd':%d,'len':%u,'flags':%s,'user':'%s','%s':'%s'",
        ring.number, slot, op.c_str(), has_fd ? sqe.fd : -1, sqe.len,
        flags_in(flags, sqe_flags).c_str(), user.c_str(), cancels ? "target" : "addr",
        addr.c_str());
}

void recording::write_cqe(const ring_state& ring, unsigned index) {
  const unsigned slot = index & ring.queues.cq.ring_mask;
  const ::io_uring_cqe& cqe = ring.queues.cq.cqes[slot];
  const auto known = user_data_.find(cqe.user_data);
  const std::string user = known == user_data_.end() ? name_of(cqe.user_data) : known->second;
  const bool lends = (cqe.flags & IORING_CQE_F_BUFFER) != 0;
  const unsigned buffer = cqe.flags >> IORING_CQE_BUFFER_SHIFT;
  write("cqe", "'ring':%d,'slot':%u,'user':'%s','res':%d,'flags':%s%s%s", ring.number, slot,
        user.c_str(), cqe.res, flags_in(cqe.flags, cqe_flags).c_str(), lends ? ",'buffer':" : "",
        lends ? std::to_string(buffer).c_str() : "");
}

void recording::add(const void* key, const ::io_uring& queues, const unsigned* prepared,
                    bool is_raw) {
  rings_.push_back({key, rings_made_, thread(), queues, prepared, is_raw, load(prepared),
                    load(queues.sq.khead), load(queues.cq.ktail), load(queues.cq.khead)});
  write("ring", "'ring':%d,'sq':%u,'cq':%u", rings_made_++, queues.sq.ring_entries,
        queues.cq.ring_entries);
}

void recording::write_indices(const char* kind, const ring_state& ring, const char* what,
                              int value) {
  const auto& sq = ring.queues.sq;
  const auto& cq = ring.queues.cq;
  write(kind, "'ring':%d,'sq':[%u,%u],'cq':[%u,%u],'%s':%d", ring.number, load(sq.khead),
        load(ring.prepared), load(cq.khead), load(cq.ktail), what, value);
}

ring_state* recording::find(const void* key) noexcept {
  const auto found = std::ranges::find(rings_, key, &ring_state::key);
  return found == rings_.end() ? nullptr : &*found;
}

void recording::remove(const void* key) {
  const ring_state* const found = find(key);
  if (found == nullptr) return;
  write("exit", "'ring':%d", found->number);
  std::erase_if(buffers, [&](const buffers_state& each) { return each.ring == key; });
  std::erase_if(rings_, [&](const ring_state& each) { return each.key == key; });
}

namespace {

// What a call of liburing looks at, to decide whether it has to enter the kernel.
enum class calls { submit, get, flush };

bool will_enter(const ring_state& ring, unsigned wait, calls what, bool submits) {
  const unsigned flags = load(ring.queues.sq.kflags);
  const unsigned ready = load(ring.queues.cq.ktail) - load(ring.queues.cq.khead);
  const bool polls = (ring.queues.flags & IORING_SETUP_SQPOLL) != 0;
  const bool flushes = (flags & (IORING_SQ_CQ_OVERFLOW | IORING_SQ_TASKRUN)) != 0;
  if (what == calls::flush) return true;
  if (submits && (!polls || (flags & IORING_SQ_NEED_WAKEUP) != 0)) return true;
  if (what == calls::submit) return wait > 0 || flushes;
  return wait > ready || (ready == 0 && wait == 0 && !submits && flushes);
}

// One call of liburing that may enter the kernel, told before and after.
template <typename Call>
int told(const ::io_uring* which, unsigned wait, calls what, const Call& call,
         bool may_submit = true) {
  (void)::getppid();  // on the way back from any system call the kernel posts completions
  bool enters = false;
  if (const locked to; ring_state* const ring = to.find(which)) {
    ring->thread = recording::thread();
    to->look();
    const auto decide = [&] {
      const bool is_empty = load(ring->prepared) == load(ring->queues.sq.khead);
      return will_enter(*ring, wait, what, may_submit && !is_empty);
    };
    enters = decide();
    to->write_indices(enters ? "enter" : "no_enter", *ring, "wait", static_cast<int>(wait));
    if (enters && !decide()) {  // a completion came while that was written
      enters = false;
      to->write_indices("no_enter", *ring, "wait", static_cast<int>(wait));
    }
  }
  const int res = call();
  const locked to;
  const ring_state* const ring = enters ? to.find(which) : nullptr;
  if (ring != nullptr) to->write_indices("entered", *ring, "res", res);
  return res;
}

int added(::io_uring* ring, int result) {
  const locked to;
  if (to && result == 0) to->add(ring, *ring, &ring->sq.sqe_tail, false);
  return result;
}

}  // namespace

}  // namespace course_trace

using course_trace::calls;
using course_trace::locked;
using course_trace::told;

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
  return told(ring, 0, calls::submit, [&] { return __real_io_uring_submit(ring); });
}

COURSE_WRAPPED(int, io_uring_submit_and_wait, ::io_uring* ring, unsigned count) {
  return told(ring, count, calls::submit,
              [&] { return __real_io_uring_submit_and_wait(ring, count); });
}

COURSE_WRAPPED(int, io_uring_submit_and_wait_timeout, ::io_uring* ring, ::io_uring_cqe** first,
               unsigned count, ::__kernel_timespec* limit, ::sigset_t* mask) {
  return told(ring, count, calls::get, [&] {
    return __real_io_uring_submit_and_wait_timeout(ring, first, count, limit, mask);
  });
}

COURSE_WRAPPED(int, __io_uring_get_cqe, ::io_uring* ring, ::io_uring_cqe** first, unsigned submit,
               unsigned count, ::sigset_t* mask) {
  return told(
      ring, count, calls::get,
      [&] { return __real___io_uring_get_cqe(ring, first, submit, count, mask); }, submit > 0);
}

COURSE_WRAPPED(int, io_uring_get_events, ::io_uring* ring) {
  return told(ring, 0, calls::flush, [&] { return __real_io_uring_get_events(ring); });
}

COURSE_WRAPPED(int, io_uring_register_sync_cancel, ::io_uring* ring,
               ::io_uring_sync_cancel_reg* which) {
  const int res = __real_io_uring_register_sync_cancel(ring, which);
  if (const locked to; const auto* const found = to.find(ring)) {
    to->write("canceled", "'ring':%d,'res':%d", found->number, res);
  }
  return res;
}

COURSE_WRAPPED(int, io_uring_register_buf_ring, ::io_uring* ring, ::io_uring_buf_reg* which,
               unsigned flags) {
  const int res = __real_io_uring_register_buf_ring(ring, which, flags);
  const locked to;
  if (!to || res != 0) return res;
  const auto* const memory = reinterpret_cast<const ::io_uring_buf_ring*>(which->ring_addr);
  to->buffers.push_back({memory, which->ring_entries - 1, which->bgid, ring, 0});
  to->write("buffers", "'group':%d,'entries':%u", which->bgid, which->ring_entries);
  return res;
}

COURSE_WRAPPED(int, io_uring_unregister_buf_ring, ::io_uring* ring, int group) {
  if (const locked to; to) {
    std::erase_if(to->buffers, [&](const auto& each) { return each.group == group; });
  }
  return __real_io_uring_unregister_buf_ring(ring, group);
}

}  // extern "C"
