// SPDX-License-Identifier: MIT
#include "thread_clock.hpp"

#include <sys/resource.h>

#include <fstream>

#include "errors.hpp"

namespace loadgen {
namespace {

double seconds(const ::timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double read_waiting_s() {
  std::ifstream schedstat{"/proc/thread-self/schedstat"};
  double running_ns = 0;
  double waiting_ns = 0;
  schedstat >> running_ns >> waiting_ns;
  return waiting_ns / 1e9;
}

}  // namespace

thread_times read_thread_times() {
  ::rusage usage{};
  common::check(::getrusage(RUSAGE_THREAD, &usage), "getrusage");
  return {seconds(usage.ru_utime), seconds(usage.ru_stime), read_waiting_s()};
}

}  // namespace loadgen
