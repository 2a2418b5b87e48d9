// SPDX-License-Identifier: MIT
#include "store_trap.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "errors.hpp"

namespace course_test {
namespace {

store_trap* armed = nullptr;
struct ::sigaction previous;

std::size_t page_bytes() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

void on_fault(int signal, ::siginfo_t* info, void* /*context*/) {
  if (armed == nullptr || info->si_addr != armed->word()) {
    ::sigaction(signal, &previous, nullptr);  // a real crash: it happens again, without us
    return;
  }
  std::exchange(armed, nullptr)->spring();
}

}  // namespace

store_trap::store_trap(std::uint32_t value) {
  void* const page =
      ::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) common::throw_errno("mmap of a page");
  word_ = static_cast<std::uint32_t*>(page);
  *word_ = value;
}

store_trap::~store_trap() {
  if (script_) ::sigaction(SIGSEGV, &previous, nullptr);
  if (armed == this) armed = nullptr;
  ::munmap(word_, page_bytes());
}

void store_trap::arm(std::function<void()> script) {
  script_ = std::move(script);
  sprung_ = false;
  armed = this;
  struct ::sigaction action{};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO;
  common::check(::sigaction(SIGSEGV, &action, &previous), "sigaction SIGSEGV");
  protect(PROT_READ);
}

void store_trap::spring() {
  script_();
  sprung_ = true;
  protect(PROT_READ | PROT_WRITE);
}

void store_trap::protect(int access) const {
  common::check(::mprotect(word_, page_bytes(), access), "mprotect");
}

}  // namespace course_test
