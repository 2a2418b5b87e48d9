// SPDX-License-Identifier: MIT
#include "isolate.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "errors.hpp"
#include "probe_sockets.hpp"

namespace doctor {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// "ok\0error\0reason\0fix\0": the four fields that the child found out, each with its end.
constexpr std::size_t fields = 4;

[[noreturn]] void answer_and_exit(const feature& wanted, int answer) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const finding found = try_feature(wanted);
  std::string message;
  for (const std::string& field :
       {std::string{found.ok ? "1" : "0"}, std::to_string(found.error), found.reason, found.fix}) {
    message += field;
    message += '\0';
  }
  // The message is shorter than a pipe's buffer, so write() never waits. _exit() does not run what
  // the parent has registered with atexit().
  const bool written = ::write(answer, message.data(), message.size()) != -1;
  ::_exit(written ? 0 : 1);
}

// All that the child writes until it closes the pipe; nothing if it has not done so by then.
std::optional<std::string> read_to_end(int answer, milliseconds deadline_ms) {
  const auto deadline = steady_clock::now() + deadline_ms;
  std::string text;
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    ::pollfd waiting{.fd = answer, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) continue;
    std::array<char, 4096> buffer;
    const auto received = ::read(answer, buffer.data(), buffer.size());
    if (received == 0) return text;
    if (received > 0) text.append(buffer.data(), static_cast<std::size_t>(received));
  }
}

// The child has closed its pipe or has been killed, so it ends at once, unless the kernel holds it.
int end_of(::pid_t child) {
  int status = 0;
  for (int waited_ms = 0; waited_ms < 1000; ++waited_ms) {
    const ::pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child || (ended == -1 && errno != EINTR)) break;
    ::poll(nullptr, 0, 1);
  }
  return status;
}

std::vector<std::string> split(const std::string& message) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start < message.size();) {
    parts.emplace_back(message.c_str() + start);
    start += parts.back().size() + 1;
  }
  return parts;
}

finding lost(const feature& wanted, int error, std::string reason) {
  return {.name = wanted.name,
          .ok = false,
          .error = error,
          .reason = std::move(reason),
          .fix = "update the kernel: this try works on every kernel that has the feature"};
}

}  // namespace

finding try_isolated(const feature& wanted, milliseconds deadline_ms) {
  pipe_ends answer;
  const ::pid_t child = common::check(::fork(), "fork");
  if (child == 0) answer_and_exit(wanted, answer.write.get());
  answer.write.reset();

  const auto message = read_to_end(answer.read.get(), deadline_ms);
  if (!message) ::kill(child, SIGKILL);
  const int status = end_of(child);
  if (!message) {
    return lost(wanted, ETIMEDOUT,
                fmt::format("the try did not end within {} ms", deadline_ms.count()));
  }
  std::vector<std::string> parts = split(*message);
  // A field that is empty still has its end, so a whole answer has all four.
  if (parts.size() != fields) {
    const std::string end = WIFSIGNALED(status) ? ::strsignal(WTERMSIG(status)) : "no answer";
    return lost(wanted, 0, fmt::format("the try ended with: {}", end));
  }
  return {.name = wanted.name,
          .ok = parts[0] == "1",
          .error = std::atoi(parts[1].c_str()),
          .reason = std::move(parts[2]),
          .fix = std::move(parts[3])};
}

}  // namespace doctor
