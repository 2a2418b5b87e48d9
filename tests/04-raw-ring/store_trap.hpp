// SPDX-License-Identifier: MIT
// A word that calls the test back at the first store to it, before the store happens.
// Owns     one page of memory, and the process's SIGSEGV handler while it is armed.
// Lifetime as long as the object; one trap a process is armed at a time.
// Threads  the thread that stores runs the script.
// Errors   std::system_error from the constructor and arm().
// Rule     the page may be read all the time and not be written: the store faults, the handler runs
//          the script, makes the page writable, and the store is tried again. So the script sees
//          exactly what is in memory when the index changes, in the order of the machine's code.
// See      mprotect(2), sigaction(2)
#pragma once

#include <cstdint>
#include <functional>

namespace course_test {

class store_trap {
 public:
  explicit store_trap(std::uint32_t value = 0);
  store_trap(store_trap&&) = delete;  // the handler knows its address
  ~store_trap();

  [[nodiscard]] std::uint32_t* word() const noexcept { return word_; }

  // The next store to the word runs `script` first, in a signal handler: copy and compare, no more.
  void arm(std::function<void()> script);
  [[nodiscard]] bool sprung() const noexcept { return sprung_; }

  // For the handler: runs the script and lets the store happen.
  void spring();

 private:
  void protect(int access) const;

  std::uint32_t* word_;
  std::function<void()> script_;
  bool sprung_ = false;
};

}  // namespace course_test
