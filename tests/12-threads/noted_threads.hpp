// SPDX-License-Identifier: MIT
// Which threads have been somewhere.
// Threads  any.
#pragma once

#include <cstddef>
#include <mutex>
#include <set>
#include <thread>

namespace course_test {

class noted_threads {
 public:
  void note() {
    const std::lock_guard lock{mutex_};
    ids_.insert(std::this_thread::get_id());
  }

  [[nodiscard]] std::size_t count() const {
    const std::lock_guard lock{mutex_};
    return ids_.size();
  }
  [[nodiscard]] bool has(std::thread::id id) const {
    const std::lock_guard lock{mutex_};
    return ids_.contains(id);
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::thread::id> ids_;
};

}  // namespace course_test
