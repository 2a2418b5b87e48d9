// SPDX-License-Identifier: MIT
// 04-cat_raw: cat, through a ring that we made.
//
//   ./course run 04:cat_raw -- README.md
#include <memory>

#include "cat_files.hpp"
#include "raw_ring.hpp"
#include "ring_memory.hpp"

namespace {

struct ring {
  uring::ring_memory memory{1};
  uring::raw_ring queues{memory.view()};
};

}  // namespace

int main(int argc, char** argv) {
  return cat::run(argc, argv, [] {
    return [both = std::make_shared<ring>()](int fd, const cat::blocks& into) {
      uring::raw_ring& queues = both->queues;
      // --8<-- [start:read]
      ::io_uring_sqe& sqe = *queues.try_get_sqe();  // never null: one read at a time
      sqe.opcode = IORING_OP_READV;
      sqe.fd = fd;
      sqe.addr = reinterpret_cast<std::uint64_t>(into.data());
      sqe.len = cat::blocks::count;
      sqe.off = static_cast<std::uint64_t>(-1);  // from the descriptor's own offset
      return queues.wait().res;
      // --8<-- [end:read]
    };
  });
}
