// SPDX-License-Identifier: MIT
#include "live.hpp"

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

std::atomic<std::ptrdiff_t> live_blocks = 0;

void count_block(std::ptrdiff_t change) noexcept {
  live_blocks.fetch_add(change, std::memory_order_relaxed);
}

}  // namespace

std::ptrdiff_t course_test::live_allocations() noexcept {
  return live_blocks.load(std::memory_order_relaxed);
}

#ifdef COURSE_OPERATOR_NEW_IS_TAKEN

namespace {

[[maybe_unused]] const int hooks = ::__sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t) { count_block(1); },
    [](const volatile void* memory) {
      if (memory != nullptr) count_block(-1);
    });

}  // namespace

#else

void* operator new(std::size_t bytes) {
  count_block(1);
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc{};
}

void operator delete(void* memory) noexcept {
  if (memory != nullptr) count_block(-1);
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
  ::operator delete(memory);
}

#endif
