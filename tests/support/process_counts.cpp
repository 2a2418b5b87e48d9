// SPDX-License-Identifier: MIT
#include "process_counts.hpp"

#include <time.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace course_test {
namespace {

std::filesystem::path proc(::pid_t pid, const char* name) {
  return std::filesystem::path{"/proc"} / std::to_string(pid) / name;
}

[[noreturn]] void throw_gone(::pid_t pid, const char* what) {
  throw std::runtime_error{std::string{"cannot read the "} + what + " of process " +
                           std::to_string(pid) + ": it has ended"};
}

std::filesystem::directory_iterator list(::pid_t pid, const char* name) {
  std::error_code error;
  std::filesystem::directory_iterator entries{proc(pid, name), error};
  if (error) throw_gone(pid, name);
  return entries;
}

std::size_t count(std::filesystem::directory_iterator entries) {
  std::size_t counted = 0;
  for ([[maybe_unused]] const auto& each : entries) ++counted;
  return counted;
}

// The number behind "Name:" in a file such as /proc/PID/status; in whatever unit it has there.
bool read_number(const std::filesystem::path& path, const std::string& name, std::size_t& number) {
  std::ifstream file{path};
  for (std::string word; file >> word;) {
    if (word == name) return static_cast<bool>(file >> number);
  }
  return false;
}

// One bit of a mask in /proc/PID/status, such as "SigCgt:".
bool in_signal_mask(::pid_t pid, const std::string& name, int signal) {
  std::ifstream file{proc(pid, "status")};
  for (std::string word; file >> word;) {
    if (word != name) continue;
    unsigned long long mask = 0;
    file >> std::hex >> mask;
    return (mask >> (signal - 1) & 1U) != 0;
  }
  throw_gone(pid, "signals");
}

}  // namespace

std::size_t open_fd_count(::pid_t pid) {
  const std::size_t entries = count(list(pid, "fd"));
  return pid == ::getpid() ? entries - 1 : entries;  // one of ours reads the folder
}

std::map<int, std::string> open_fds(::pid_t pid) {
  std::map<int, std::string> found;
  for (const auto& each : list(pid, "fd")) {
    std::error_code closed_meanwhile;
    const auto target = std::filesystem::read_symlink(each.path(), closed_meanwhile);
    if (closed_meanwhile || target == proc(::getpid(), "fd")) continue;
    found.emplace(std::stoi(each.path().filename()), target);
  }
  return found;
}

std::size_t resident_bytes(::pid_t pid) {
  std::size_t kib = 0;
  // Exact, where status and statm may be off by what each CPU has not yet added up.
  if (!read_number(proc(pid, "smaps_rollup"), "Rss:", kib) &&
      !read_number(proc(pid, "status"), "VmRSS:", kib)) {
    throw_gone(pid, "memory");
  }
  return kib * 1024;
}

std::vector<::pid_t> thread_ids(::pid_t pid) {
  std::vector<::pid_t> ids;
  for (const auto& each : list(pid, "task")) ids.push_back(std::stoi(each.path().filename()));
  return ids;
}

std::size_t thread_count(::pid_t pid) {
  return thread_ids(pid).size();
}

std::chrono::microseconds cpu_time(::pid_t pid) {
  ::clockid_t clock{};
  ::timespec used{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) {
    throw_gone(pid, "CPU time");
  }
  return std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::seconds{used.tv_sec} + std::chrono::nanoseconds{used.tv_nsec});
}

std::size_t context_switches(::pid_t pid) {
  std::size_t sum = 0;
  for (const auto& task : list(pid, "task")) {
    for (const char* name : {"voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"}) {
      std::size_t switches = 0;
      if (read_number(task.path() / "status", name, switches)) sum += switches;
    }
  }
  return sum;
}

char process_state(::pid_t pid) {
  std::ifstream file{proc(pid, "status")};
  for (std::string word; file >> word;) {
    if (word != "State:") continue;
    file >> word;
    return word.front();
  }
  return 'X';
}

bool signal_pending(::pid_t pid, int signal) {
  return in_signal_mask(pid, "ShdPnd:", signal);
}

bool signal_blocked(::pid_t thread, int signal) {
  return in_signal_mask(thread, "SigBlk:", signal);
}

bool signal_caught(::pid_t pid, int signal) {
  return in_signal_mask(pid, "SigCgt:", signal);
}

}  // namespace course_test
