// SPDX-License-Identifier: MIT
// The answers to requests on a slot of the table of files.
#include <liburing.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "answers.hpp"
#include "memory_file.hpp"
#include "ring.hpp"
#include "unique_fd.hpp"

namespace uring {
namespace {

void request_read(ring& ring, int file, std::uint8_t flags, std::span<std::byte> bytes) {
  ::io_uring_sqe& read = ring.get_sqe();
  ::io_uring_prep_read(&read, file, bytes.data(), static_cast<unsigned>(bytes.size()), 0);
  read.flags |= flags;
  read.user_data = 1;
}

}  // namespace

void show_slots() {
  std::array<std::byte, 100> buffer{};
  ring own{{}};
  common::unique_fd ten = file_with("0123456789");
  const int fd = ten.get();
  ::io_uring_register_files_sparse(&own.handle(), 2);
  ::io_uring_register_files_update(&own.handle(), 0, &fd, 1);
  request_read(own, 0, IOSQE_FIXED_FILE, buffer);
  show_answers(own, "slot 0, with a file");
  request_read(own, 1, IOSQE_FIXED_FILE, buffer);
  show_answers(own, "slot 1, empty");
  ten.reset();
  request_read(own, 0, IOSQE_FIXED_FILE, buffer);
  show_answers(own, "slot 0, descriptor closed");
  const int none = -1;
  ::io_uring_register_files_update(&own.handle(), 0, &none, 1);
  request_read(own, 0, IOSQE_FIXED_FILE, buffer);
  show_answers(own, "slot 0, cleared");
}

}  // namespace uring
