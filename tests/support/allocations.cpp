// SPDX-License-Identifier: MIT
#include "allocations.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define COURSE_FREED_MEMORY_IS_WATCHED
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COURSE_FREED_MEMORY_IS_WATCHED
#endif
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

thread_local bool fences = false;

}  // namespace

course_test::fenced_memory::fenced_memory() noexcept {
  fences = true;
}

course_test::fenced_memory::~fenced_memory() {
  fences = false;
}

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

namespace {

// AddressSanitizer watches what is given back, and says more about it than a page can.
#ifdef COURSE_FREED_MEMORY_IS_WATCHED
constexpr bool fences_are_needed = false;
#else
constexpr bool fences_are_needed = true;
#endif

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t pages_max = 1024;

// Addresses without memory behind them: a page gets some when it is given out, once.
std::byte* fenced_pages() {
  static void* const pages =
      ::mmap(nullptr, pages_max * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : static_cast<std::byte*>(pages);
}

void* take_page(std::size_t bytes) {
  static std::atomic<std::size_t> taken = 0;
  if (!fences_are_needed || !fences || bytes > page_bytes || fenced_pages() == nullptr)
    return nullptr;
  const std::size_t number = taken.fetch_add(1, std::memory_order_relaxed);
  if (number >= pages_max) return nullptr;
  std::byte* const page = fenced_pages() + number * page_bytes;
  return ::mprotect(page, page_bytes, PROT_READ | PROT_WRITE) == 0 ? page : nullptr;
}

// Whether it was a page, which nobody may touch from now on.
bool give_back_page(void* memory) {
  const auto pages = reinterpret_cast<std::uintptr_t>(fenced_pages());
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  if (at < pages || at >= pages + pages_max * page_bytes) return false;
  return ::mprotect(memory, page_bytes, PROT_NONE) == 0;
}

}  // namespace

void* operator new(std::size_t bytes) {
  count_one(given_out);
  if (void* const page = take_page(bytes)) return page;
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc{};
}

void operator delete(void* memory) noexcept {
  if (memory != nullptr) count_one(given_back);
  if (!give_back_page(memory)) std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
  ::operator delete(memory);
}

#endif
