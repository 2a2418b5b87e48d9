// SPDX-License-Identifier: MIT
// The exception of a failed try: it says what was tried and what came.
// Errors   error() is a positive errno, or 0 if no call failed but the kernel did something else
//          than it documents.
// Rule     liburing and CQEs answer with -errno, system calls with -1: need() takes the first kind,
//          common::check() the second.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>

namespace doctor {

// For one wait: far more than a loaded machine needs, and far less than a reader would wait.
constexpr std::chrono::milliseconds wait_deadline_ms{2000};

class probe_error : public std::runtime_error {
 public:
  // "recv: EINVAL (Invalid argument)"; `error` is an errno or its negative.
  probe_error(std::string_view tried, int error);
  // The calls worked; `difference` says what the kernel did otherwise.
  explicit probe_error(const std::string& difference);

  [[nodiscard]] int error() const noexcept { return error_; }

 private:
  int error_ = 0;
};

// Passes on what liburing returned or a CQE brought, or throws if it is a negative errno.
int need(int result, std::string_view tried);

// Throws unless `features`, which io_uring_setup filled in, has the bit that `name` names.
void need_bit(unsigned features, unsigned bit, std::string_view name);

}  // namespace doctor
