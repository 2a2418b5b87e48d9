// SPDX-License-Identifier: MIT
#include "allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COURSE_OPERATOR_NEW_IS_TAKEN  // Clang's TSan has its own, and offers a hook instead
#include <sanitizer/allocator_interface.h>
#endif
#endif

namespace {

std::atomic<std::size_t> given_out = 0;
std::atomic<std::size_t> given_back = 0;

void count_one(std::atomic<std::size_t>& more) noexcept {
  more.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

std::size_t course_test::allocations() noexcept {
  return given_out.load(std::memory_order_relaxed);
}

std::ptrdiff_t course_test::live_allocations() noexcept {
  return static_cast<std::ptrdiff_t>(allocations() - given_back.load(std::memory_order_relaxed));
}

#ifdef COURSE_OPERATOR_NEW_IS_TAKEN

namespace {

[[maybe_unused]] const int hooks = ::__sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t) { count_one(given_out); },
    [](const volatile void* memory) {
      if (memory != nullptr) count_one(given_back);
    });

}  // namespace

#else

void* operator new(std::size_t bytes) {
  count_one(given_out);
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc{};
}

void operator delete(void* memory) noexcept {
  if (memory != nullptr) count_one(given_back);
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
  ::operator delete(memory);
}

#endif
