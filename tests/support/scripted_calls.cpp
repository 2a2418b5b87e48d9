// SPDX-License-Identifier: MIT
#include "scripted_calls.hpp"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace course_test {
namespace {

struct call_script {
  std::atomic<int> accept_error = 0;
  std::atomic<std::size_t> accept_failures_max = 0;
  std::atomic<std::size_t> accept_failures = 0;
  std::atomic<std::size_t> accepts_begun = 0;
  std::atomic<int> accept_flags = 0;
  std::atomic<const void*> recv_buffer = nullptr;
  std::atomic<std::size_t> timed_waits_begun = 0;
  std::atomic<bool> refuse_threads = false;
  std::atomic<std::size_t> threads_left = 0;  // to give out before one is refused
  std::function<void()> before_refusal;
  std::atomic<std::chrono::milliseconds> thread_delay_ms{};
  std::atomic<std::chrono::milliseconds> thread_lateness_ms{};
  std::atomic<std::chrono::milliseconds> unlock_delay_ms{};
  std::atomic<bool> hold_threads = false;
  std::atomic<bool> watch_mutexes = false;
  std::atomic<std::size_t> closes_without = 0;
  std::atomic<std::size_t> list_changes_without = 0;
  std::atomic<std::size_t> receives_with = 0;
};
call_script now;

thread_local int mutexes_held = 0;
thread_local bool is_watcher = false;
thread_local bool refuses_memory = false;
thread_local bool is_punctual = false;  // its unlocks are not delayed

bool count(std::atomic<std::size_t>& calls, bool when_held) {
  const bool counts = now.watch_mutexes && !is_watcher && (mutexes_held > 0) == when_held;
  if (counts) ++calls;
  return counts;
}

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

void refuse_thread_if_scripted() {
  if (!now.refuse_threads) return;
  if (now.threads_left == 0) {
    if (now.before_refusal) now.before_refusal();
    throw std::system_error{EAGAIN, std::generic_category()};
  }
  --now.threads_left;
}

// What a std::thread runs, put off until release(), or by a time.
struct held_work : std::thread::_State {
  explicit held_work(std::unique_ptr<std::thread::_State> held) : work{std::move(held)} {}
  void _M_run() override {
    now.hold_threads.wait(true);
    std::this_thread::sleep_for(now.thread_lateness_ms.load());
    work->_M_run();
  }

  std::unique_ptr<std::thread::_State> work;
};

}  // namespace
}  // namespace course_test

// What the linker calls ours and theirs. A std::thread starts in the library, by a function of its
// own, to which it passes a thread to fill in and a std::unique_ptr by address; a std::list is
// linked by functions of the library, too.
using start_function = void (*)();
using thread_work = std::unique_ptr<std::thread::_State>;
using list_node = std::__detail::_List_node_base;
extern "C" {
int real_accept(int, ::sockaddr*, ::socklen_t*) asm("__real_accept");
int real_accept4(int, ::sockaddr*, ::socklen_t*, int) asm("__real_accept4");
::ssize_t real_recv(int, void*, std::size_t, int) asm("__real_recv");
int real_close(int) asm("__real_close");
int real_lock(::pthread_mutex_t*) asm("__real_pthread_mutex_lock");
int real_unlock(::pthread_mutex_t*) asm("__real_pthread_mutex_unlock");
int real_timed_wait(::pthread_cond_t*, ::pthread_mutex_t*, ::clockid_t,
                    const ::timespec*) asm("__real_pthread_cond_clockwait");
void real_hook(list_node*, list_node*) asm("__real__ZNSt8__detail15_List_node_base7_M_hookEPS0_");
void real_unhook(list_node*) asm("__real__ZNSt8__detail15_List_node_base9_M_unhookEv");
void* real_new(std::size_t) asm("__real__Znwm");
void real_start(std::thread*, thread_work*, start_function) asm(
    "__real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE");
int our_accept(int, ::sockaddr*, ::socklen_t*) asm("__wrap_accept");
int our_accept4(int, ::sockaddr*, ::socklen_t*, int) asm("__wrap_accept4");
::ssize_t our_recv(int, void*, std::size_t, int) asm("__wrap_recv");
int our_close(int) asm("__wrap_close");
int our_lock(::pthread_mutex_t*) asm("__wrap_pthread_mutex_lock");
int our_unlock(::pthread_mutex_t*) asm("__wrap_pthread_mutex_unlock");
int our_timed_wait(::pthread_cond_t*, ::pthread_mutex_t*, ::clockid_t,
                   const ::timespec*) asm("__wrap_pthread_cond_clockwait");
void our_hook(list_node*, list_node*) asm("__wrap__ZNSt8__detail15_List_node_base7_M_hookEPS0_");
void our_unhook(list_node*) asm("__wrap__ZNSt8__detail15_List_node_base9_M_unhookEv");
void* our_new(std::size_t) asm("__wrap__Znwm");
void our_start(std::thread*, thread_work*, start_function) asm(
    "__wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE");
}

int our_accept(int listener, ::sockaddr* peer, ::socklen_t* bytes) {
  course_test::now.accept_flags = 0;
  return course_test::accept_fails() ? -1 : real_accept(listener, peer, bytes);
}

int our_accept4(int listener, ::sockaddr* peer, ::socklen_t* bytes, int flags) {
  course_test::now.accept_flags = flags;
  return course_test::accept_fails() ? -1 : real_accept4(listener, peer, bytes, flags);
}

::ssize_t our_recv(int socket, void* buffer, std::size_t bytes, int flags) {
  course_test::now.recv_buffer = buffer;
  course_test::count(course_test::now.receives_with, true);
  return real_recv(socket, buffer, bytes, flags);
}

int our_close(int fd) {
  if (!course_test::count(course_test::now.closes_without, false)) return real_close(fd);
  // The peer sees the end, but the number stays taken: a second close hits no other descriptor.
  (void)::shutdown(fd, SHUT_RDWR);
  return 0;
}

int our_lock(::pthread_mutex_t* mutex) {
  const int failure = real_lock(mutex);
  if (failure == 0) ++course_test::mutexes_held;
  return failure;
}

int our_unlock(::pthread_mutex_t* mutex) {
  --course_test::mutexes_held;
  const int failure = real_unlock(mutex);
  const std::chrono::milliseconds delay = course_test::now.unlock_delay_ms;
  if (delay.count() > 0 && !course_test::is_punctual) std::this_thread::sleep_for(delay);
  return failure;
}

int our_timed_wait(::pthread_cond_t* condition, ::pthread_mutex_t* mutex, ::clockid_t clock,
                   const ::timespec* limit) {
  ++course_test::now.timed_waits_begun;
  return real_timed_wait(condition, mutex, clock, limit);
}

void our_hook(list_node* node, list_node* before) {
  course_test::count(course_test::now.list_changes_without, false);
  real_hook(node, before);
}

void our_unhook(list_node* node) {
  course_test::count(course_test::now.list_changes_without, false);
  real_unhook(node);
}

void* our_new(std::size_t bytes) {
  if (course_test::refuses_memory) throw std::bad_alloc{};
  return real_new(bytes);
}

void our_start(std::thread* started, thread_work* work, start_function depend) {
  course_test::refuse_thread_if_scripted();
  if (course_test::now.hold_threads || course_test::now.thread_lateness_ms.load().count() > 0) {
    thread_work held = std::make_unique<course_test::held_work>(std::move(*work));
    return real_start(started, &held, depend);
  }
  real_start(started, work, depend);
  const std::chrono::milliseconds delay = course_test::now.thread_delay_ms;
  if (delay.count() > 0) std::this_thread::sleep_for(delay);
}

namespace course_test {

std::size_t accepts_begun() {
  return now.accepts_begun;
}

int last_accept_flags() {
  return now.accept_flags;
}

const void* last_recv_buffer() {
  return now.recv_buffer;
}

std::size_t timed_waits_begun() {
  return now.timed_waits_begun;
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

refused_threads::refused_threads(std::size_t started, std::function<void()> before) {
  now.threads_left = started;
  now.before_refusal = std::move(before);
  now.refuse_threads = true;
}

refused_threads::~refused_threads() {
  now.refuse_threads = false;
  now.before_refusal = nullptr;  // it may refer to what ends with its test
}

refused_memory::refused_memory() {
  refuses_memory = true;
}

refused_memory::~refused_memory() {
  refuses_memory = false;
}

fast_threads::fast_threads(std::chrono::milliseconds later)
    : scripted_delay{now.thread_delay_ms, later} {}

late_threads::late_threads(std::chrono::milliseconds later)
    : scripted_delay{now.thread_lateness_ms, later} {}

slow_unlocks::slow_unlocks(std::chrono::milliseconds later)
    : scripted_delay{now.unlock_delay_ms, later} {
  is_punctual = true;
}

slow_unlocks::~slow_unlocks() {
  is_punctual = false;
}

held_threads::held_threads() {
  now.hold_threads = true;
}

void held_threads::release() {
  now.hold_threads = false;
  now.hold_threads.notify_all();
}

mutex_watch::mutex_watch() {
  now.closes_without = 0;
  now.list_changes_without = 0;
  now.receives_with = 0;
  is_watcher = true;
  now.watch_mutexes = true;
}

mutex_watch::~mutex_watch() {
  now.watch_mutexes = false;
  is_watcher = false;
}

std::size_t mutex_watch::closes_without() const {
  return now.closes_without;
}

std::size_t mutex_watch::list_changes_without() const {
  return now.list_changes_without;
}

std::size_t mutex_watch::receives_with() const {
  return now.receives_with;
}

}  // namespace course_test
