// SPDX-License-Identifier: MIT
// Registered files and buffers, pipes, and the calls that open, describe and close files.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "probe_error.hpp"
#include "probe_ring.hpp"
#include "probe_sockets.hpp"
#include "probes.hpp"

namespace doctor {
namespace {

constexpr unsigned buffer_bytes = 8;
using small_buffer = std::array<char, buffer_bytes>;

constexpr std::string_view hello = "hello";
constexpr unsigned hello_bytes = hello.size();

void expect_hello(const small_buffer& buffer, int received) {
  if (std::string_view{buffer.data(), static_cast<std::size_t>(received)} != hello) {
    throw probe_error{"other bytes came out than went in"};
  }
}

void registered_files() {
  small_buffer buffer{};
  const pipe_ends pipe;
  probe_ring ring;
  need(::io_uring_register_files_sparse(ring.native(), 8), "io_uring_register FILES2, sparse");
  const int fd = pipe.read.get();
  need(::io_uring_register_files_update(ring.native(), 3, &fd, 1),
       "io_uring_register FILES_UPDATE");
  put(pipe.write.get(), hello);
  ring.prepare(1, ::io_uring_prep_read, 3, buffer.data(), buffer_bytes, 0U).flags |=
      IOSQE_FIXED_FILE;
  expect_hello(buffer, ring.finish("read from a registered file").res);
}

// As much as the largest program of the course registers: a lower RLIMIT_MEMLOCK would end it
// later.
constexpr std::size_t registered_bytes = std::size_t{1} << 20;

void registered_buffers() {
  std::vector<char> memory(registered_bytes);
  const pipe_ends pipe;
  probe_ring ring;
  const ::iovec region{.iov_base = memory.data(), .iov_len = memory.size()};
  need(::io_uring_register_buffers(ring.native(), &region, 1), "io_uring_register BUFFERS, 1 MiB");
  hello.copy(memory.data(), hello.size());
  char* const target = memory.data() + memory.size() / 2;
  ring.prepare(1, ::io_uring_prep_write_fixed, pipe.write.get(), memory.data(), hello_bytes, 0U, 0);
  ring.finish("write_fixed");
  ring.prepare(2, ::io_uring_prep_read_fixed, pipe.read.get(), target, hello_bytes, 0U, 0);
  ring.finish("read_fixed");
  if (std::string_view{target, hello.size()} != hello) {
    throw probe_error{"other bytes came out than went in"};
  }
}

void splice_between_pipes() {
  small_buffer buffer{};
  const pipe_ends from;
  const pipe_ends to;
  probe_ring ring;
  put(from.write.get(), hello);
  ring.prepare(1, ::io_uring_prep_splice, from.read.get(), -1, to.write.get(), -1, hello_bytes, 0U);
  ring.finish("splice");
  ring.prepare(2, ::io_uring_prep_read, to.read.get(), buffer.data(), buffer_bytes, 0U);
  expect_hello(buffer, ring.finish("read").res);
}

void tee_between_pipes() {
  small_buffer buffer{};
  const pipe_ends from;
  const pipe_ends to;
  probe_ring ring;
  put(from.write.get(), hello);
  ring.prepare(1, ::io_uring_prep_tee, from.read.get(), to.write.get(), hello_bytes, 0U);
  ring.finish("tee");
  for (const int end : {from.read.get(), to.read.get()}) {
    ring.prepare(2, ::io_uring_prep_read, end, buffer.data(), buffer_bytes, 0U);
    expect_hello(buffer, ring.finish("read").res);
  }
}

void open_and_close() {
  probe_ring ring;
  ring.prepare(1, ::io_uring_prep_openat, AT_FDCWD, "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0U);
  const int fd = ring.finish("openat").res;
  ring.prepare(2, ::io_uring_prep_close, fd);
  ring.finish("close");
  if (::fcntl(fd, F_GETFD) != -1) throw probe_error{"close succeeded, but the file is still open"};
}

void statx_op() {
  struct ::statx about{};
  probe_ring ring;
  ring.prepare(1, ::io_uring_prep_statx, AT_FDCWD, "/", 0, STATX_TYPE, &about);
  ring.finish("statx");
  if (!S_ISDIR(about.stx_mode)) throw probe_error{"statx says that / is no directory"};
}

constexpr std::array file_features{
    feature{"registered_files", "files", "5.19", "a sparse table of files, and a read through it",
            &registered_files},
    feature{"registered_buffers", "files", "5.1",
            "a buffer of 1 MiB, registered, written from and read into", &registered_buffers},
    feature{"splice", "files", "5.7", "bytes from one pipe into another", &splice_between_pipes},
    feature{"tee", "files", "5.8", "bytes copied into a second pipe", &tee_between_pipes},
    feature{"openat_close", "files", "5.6", "a file opened and closed by the ring",
            &open_and_close},
    feature{"statx", "files", "5.6", "a file's attributes, read by the ring", &statx_op},
};

}  // namespace

std::span<const feature> file_probes() {
  return file_features;
}

}  // namespace doctor
