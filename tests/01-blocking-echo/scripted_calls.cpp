// SPDX-License-Identifier: MIT
#include "scripted_calls.hpp"

#include <errno.h>
#include <sys/socket.h>

#include <atomic>
#include <system_error>
#include <thread>

namespace course_test {
namespace {

struct script {
  std::atomic<int> accept_error = 0;
  std::atomic<std::size_t> accept_failures_max = 0;
  std::atomic<std::size_t> accept_failures = 0;
  std::atomic<std::size_t> accepts_begun = 0;
  std::atomic<bool> refuse_threads = false;
  std::atomic<std::chrono::milliseconds> thread_delay_ms{};
};
script now;

bool accept_fails() {
  const int error = now.accept_error;
  if (error == 0 || now.accept_failures >= now.accept_failures_max) {
    ++now.accepts_begun;
    return false;
  }
  ++now.accept_failures;
  errno = error;
  return true;
}

}  // namespace
}  // namespace course_test

// What the linker calls ours and theirs. A std::thread starts in the library, by a function of its
// own, to which it passes a thread to fill in and a std::unique_ptr by address.
using start_function = void (*)();
extern "C" {
int real_accept(int, ::sockaddr*, ::socklen_t*) asm("__real_accept");
int real_accept4(int, ::sockaddr*, ::socklen_t*, int) asm("__real_accept4");
void real_start(std::thread*, void*, start_function) asm(
    "__real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE");
int our_accept(int, ::sockaddr*, ::socklen_t*) asm("__wrap_accept");
int our_accept4(int, ::sockaddr*, ::socklen_t*, int) asm("__wrap_accept4");
void our_start(std::thread*, void*, start_function) asm(
    "__wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE");
}

int our_accept(int listener, ::sockaddr* peer, ::socklen_t* bytes) {
  return course_test::accept_fails() ? -1 : real_accept(listener, peer, bytes);
}

int our_accept4(int listener, ::sockaddr* peer, ::socklen_t* bytes, int flags) {
  return course_test::accept_fails() ? -1 : real_accept4(listener, peer, bytes, flags);
}

void our_start(std::thread* started, void* work, start_function depend) {
  if (course_test::now.refuse_threads) {
    throw std::system_error{EAGAIN, std::generic_category()};
  }
  real_start(started, work, depend);
  const std::chrono::milliseconds delay = course_test::now.thread_delay_ms;
  if (delay.count() > 0) std::this_thread::sleep_for(delay);
}

namespace course_test {

std::size_t accepts_begun() {
  return now.accepts_begun;
}

failing_accepts::failing_accepts(int error, std::size_t failures_max) {
  now.accept_failures = 0;
  now.accept_failures_max = failures_max;
  now.accept_error = error;
}

failing_accepts::~failing_accepts() {
  now.accept_error = 0;
}

std::size_t failing_accepts::failures() const {
  return now.accept_failures;
}

refused_threads::refused_threads() {
  now.refuse_threads = true;
}

refused_threads::~refused_threads() {
  now.refuse_threads = false;
}

fast_threads::fast_threads(std::chrono::milliseconds later) {
  now.thread_delay_ms = later;
}

fast_threads::~fast_threads() {
  now.thread_delay_ms = std::chrono::milliseconds{0};
}

}  // namespace course_test
