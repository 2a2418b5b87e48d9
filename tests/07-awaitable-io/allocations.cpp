// SPDX-License-Identifier: MIT
#include "allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> count = 0;

}  // namespace

std::size_t course_test::allocations() noexcept {
  return count.load(std::memory_order_relaxed);
}

#if defined(__SANITIZE_THREAD__)
#define COURSE_OPERATOR_NEW_IS_TAKEN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COURSE_OPERATOR_NEW_IS_TAKEN
#endif
#endif

#ifndef COURSE_OPERATOR_NEW_IS_TAKEN

void* operator new(std::size_t bytes) {
  count.fetch_add(1, std::memory_order_relaxed);
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc{};
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

#endif
