// SPDX-License-Identifier: MIT
// 06-costs: counts what an awaited call takes from the heap.
//
//   ./course run 06:costs
#include <array>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <new>

#include "sync_wait.hpp"
#include "task.hpp"

namespace {

struct heap_use {
  std::size_t allocations = 0;
  std::size_t bytes = 0;
};
heap_use total;

}  // namespace

void* operator new(std::size_t bytes) {
  ++total.allocations;
  total.bytes += bytes;
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc{};
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace {

constexpr std::size_t calls = 1000;

// If Clang inlined this coroutine, it could put the frame into the caller's frame.
[[gnu::noinline]] uring::task<int> small(int number) {
  co_return number;
}

uring::task<> pause() {
  co_return;
}

// These are not inlined either, so that the compiler cannot know what is in the buffer.
using kibibyte = std::array<char, 1024>;
[[gnu::noinline]] void fill(kibibyte& buffer, int with) {
  buffer.fill(static_cast<char>(with));
}
[[gnu::noinline]] int first_of(const kibibyte& buffer) {
  return buffer[0];
}

[[gnu::noinline]] uring::task<int> buffer_across_await(int number) {
  kibibyte buffer;
  fill(buffer, number);
  co_await pause();
  co_return first_of(buffer);
}

[[gnu::noinline]] uring::task<int> buffer_before_await(int number) {
  {
    kibibyte buffer;
    fill(buffer, number);
    number = first_of(buffer);
  }
  co_await pause();
  co_return number;
}

// Returns how many bytes the frame took. The task is destroyed before it has run.
template <typename Coroutine>
std::size_t frame_bytes(Coroutine& coroutine) {
  const std::size_t before = total.bytes;
  const auto never_run = coroutine(1);
  return total.bytes - before;
}

uring::task<double> allocations_per_call() {
  const std::size_t before = total.allocations;
  int sum = 0;
  for (std::size_t i = 0; i < calls; ++i) sum += co_await small(1);
  const auto made = static_cast<double>(total.allocations - before);
  co_return made / sum;
}

}  // namespace

// Built with its own flags and without sanitizers, because some sanitizers replace operator new.
// NOLINTNEXTLINE(bugprone-exception-escape): without memory the program ends, and says so.
int main() {
  std::cout << "allocations per call: " << uring::sync_wait(allocations_per_call()) << '\n'
            << "frame bytes, one int: " << frame_bytes(small) << '\n'
            << "frame bytes, 1 KiB across an await: " << frame_bytes(buffer_across_await) << '\n'
            << "frame bytes, 1 KiB before an await: " << frame_bytes(buffer_before_await) << '\n';
}
