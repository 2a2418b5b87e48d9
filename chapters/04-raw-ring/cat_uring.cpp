// SPDX-License-Identifier: MIT
// 04-cat_uring: cat, through a ring that liburing made.
//
//   ./course run 04:cat_uring -- README.md
#include <liburing.h>

#include <memory>

#include "cat_files.hpp"
#include "refused.hpp"

namespace {

struct ring {
  ring() {
    const int result = ::io_uring_queue_init(1, &native, 0);
    if (result < 0) throw uring::refused{"io_uring_setup", result};
  }
  ring(ring&&) = delete;  // the destructors of two copies would unmap the same memory twice
  ~ring() { ::io_uring_queue_exit(&native); }

  ::io_uring native{};
};

}  // namespace

int main(int argc, char** argv) {
  return cat::run(argc, argv, [] {
    return [both = std::make_shared<ring>()](int fd, const cat::blocks& into) {
      ::io_uring* const queues = &both->native;
      ::io_uring_sqe* const sqe = ::io_uring_get_sqe(queues);  // never null: one read at a time
      ::io_uring_prep_readv(sqe, fd, into.data(), cat::blocks::count,
                            static_cast<std::uint64_t>(-1));
      ::io_uring_cqe* cqe = nullptr;
      while (::io_uring_peek_cqe(queues, &cqe) != 0) {
        const int entry = ::io_uring_submit_and_wait(queues, 1);
        const bool passes = entry == -EINTR || entry == -EAGAIN || entry == -EBUSY;
        if (entry < 0 && !passes) throw uring::refused{"io_uring_enter", entry};
      }
      const int result = cqe->res;
      ::io_uring_cqe_seen(queues, cqe);
      return result;
    };
  });
}
