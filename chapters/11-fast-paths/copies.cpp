// SPDX-License-Identifier: MIT
// 11-copies: makes the same copy in four ways, and measures the cost of a block in each.
//
//   ./course run 11:copies -- --by one-answer --count 100000
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <string>

#include "errors.hpp"
#include "io_context.hpp"
#include "linked_copy.hpp"
#include "program_main.hpp"
#include "registered_buffers.hpp"
#include "registered_files.hpp"
#include "ring_options.hpp"
#include "task.hpp"
#include "unique_fd.hpp"

namespace {

using uring::extent;

constexpr std::size_t block_bytes = 4096;
constexpr std::uint64_t file_blocks = 64;  // copied again and again
constexpr std::uint64_t blocks_per_chain = 8;
constexpr unsigned sq_entries_min = 4 * blocks_per_chain;  // a chain may take half of them

using block = std::array<std::byte, block_bytes>;

struct two_files {
  common::unique_fd source;
  common::unique_fd target;
};

common::unique_fd file_in_memory() {
  common::unique_fd file{common::check(::memfd_create("copies", MFD_CLOEXEC), "memfd_create")};
  common::check(::ftruncate(file.get(), file_blocks * block_bytes), "ftruncate");
  return file;
}

common::unique_fd device(const char* path) {
  return common::unique_fd{common::check(::open(path, O_RDWR | O_CLOEXEC), path)};
}

// Files in memory are read and written by the kernel's worker threads. Devices answer at once.
two_files open_files(const std::string& which) {
  if (which == "devices") return {device("/dev/zero"), device("/dev/null")};
  return {file_in_memory(), file_in_memory()};
}

// The next of the `count` - `done` blocks: no more than a chain has, and not past the file's end.
extent next_part(std::uint64_t done, std::uint64_t count) {
  const std::uint64_t at = done % file_blocks;
  const std::uint64_t blocks = std::min({blocks_per_chain, count - done, file_blocks - at});
  return {at * block_bytes, (at + blocks) * block_bytes};
}

void copy_by_calls(const two_files& files, std::uint64_t count) {
  block buffer;
  for (std::uint64_t done = 0; done < count; ++done) {
    const auto at = static_cast<::off_t>(done % file_blocks * block_bytes);
    common::check(::pread(files.source.get(), buffer.data(), buffer.size(), at), "pread");
    common::check(::pwrite(files.target.get(), buffer.data(), buffer.size(), at), "pwrite");
  }
}

uring::task<> copy_by_requests(uring::linked_copy& copy, uring::fixed_buffer buffer,
                               std::uint64_t count) {
  for (std::uint64_t done = 0; done < count; ++done) {
    const std::uint64_t at = done % file_blocks * block_bytes;
    const std::size_t some = co_await copy.copy_some({at, at + block_bytes}, buffer);
    if (some != block_bytes) throw std::runtime_error{"a block was cut short"};
  }
}

uring::task<> copy_by_chains(uring::io_context& context, const uring::linked_copy& copy,
                             uring::fixed_buffer buffer, uring::chain_answers answers,
                             std::uint64_t count) {
  for (std::uint64_t done = 0; done < count;) {
    const extent part = next_part(done, count);
    uring::linked_steps chain{context, copy.steps_of(part, buffer), answers};
    co_await chain;
    const uring::io_result last = chain.result(chain.steps().size() - 1);
    if (last.or_throw("the last write") != block_bytes) throw std::runtime_error{"a short write"};
    done += part.bytes() / block_bytes;
  }
}

// How the copy is made, by the names of the flags.
struct way {
  std::string by = "one-answer";
  std::string files = "memory";
  std::string named_by = "slots";
};

// An empty slot stands for the descriptor itself, see file_of().
uring::file_slot slot_for(uring::registered_files& table, const way& how, int fd) {
  if (how.named_by == "descriptors") return {};
  return table.add(fd);
}

void copy_by_ring(const two_files& files, uring::ring_options options, const way& how,
                  std::uint64_t count) {
  options.sq_entries = std::max(options.sq_entries, sq_entries_min);
  uring::io_context context{options};
  block memory;
  const std::array<std::span<std::byte>, 1> one{memory};
  const uring::registered_buffers buffers{context, one};
  uring::registered_files table{context, 2};
  const uring::file_slot from = slot_for(table, how, files.source.get());
  const uring::file_slot to = slot_for(table, how, files.target.get());
  uring::linked_copy copy{context, uring::file_of(from, files.source.get()),
                          uring::file_of(to, files.target.get())};
  if (how.by == "requests") return context.run(copy_by_requests(copy, buffers[0], count));
  const auto answers = how.by == "links" ? uring::chain_answers::each : uring::chain_answers::one;
  context.run(copy_by_chains(context, copy, buffers[0], answers, count));
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 11: the same copy in four ways."};
  way how;
  flags.add("--by", how.by, {"calls", "requests", "links", "one-answer"},
            "System calls; one request at a time; chains; chains that complete once");
  flags.add("--files", how.files, {"memory", "devices"},
            "Two files in memory, or /dev/zero and /dev/null");
  flags.add("--named-by", how.named_by, {"slots", "descriptors"}, "How requests name files");
  std::int64_t count = 100'000;
  flags.add("--count", count, 1, 1'000'000'000, "How many blocks of 4 KiB");
  const uring::ring_command_line ring{flags};
  return common::program_main(argc, argv, flags, [&] {
    const two_files files = open_files(how.files);
    const auto blocks = static_cast<std::uint64_t>(count);
    const auto began = std::chrono::steady_clock::now();
    if (how.by == "calls") {
      copy_by_calls(files, blocks);
    } else {
      copy_by_ring(files, ring.options(), how, blocks);
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
    std::printf("ns per block: %.1f\n", took.count() / static_cast<double>(blocks));
  });
}
