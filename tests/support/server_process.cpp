// SPDX-License-Identifier: MIT
#include "server_process.hpp"

#include <charconv>
#include <stdexcept>
#include <string_view>

#include "eventually.hpp"
#include "process_counts.hpp"

namespace course_test {
namespace {

constexpr std::string_view announcement = "listening on ";

std::vector<std::string> with_address(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--host", "127.0.0.1", "--port", "0"});
  return arguments;
}

// The port in "listening on 127.0.0.1:45678\n", or 0 if that is not what the first line says.
std::uint16_t announced_port(std::string_view line) {
  const std::size_t colon = line.rfind(':');
  if (!line.starts_with(announcement) || colon == std::string_view::npos) return 0;
  std::uint16_t port = 0;
  const char* const end = line.data() + line.size();
  const auto parsed = std::from_chars(line.data() + colon + 1, end, port);
  return parsed.ptr == end ? port : 0;
}

std::string quoted_or_nothing(const std::string& text) {
  return text.empty() ? " nothing" : "\n  " + text.substr(0, 4096);
}

std::string why_not_started(bool alive, bool has_line) {
  if (has_line) return "; its first line on stdout must be \"listening on 127.0.0.1:PORT\"";
  if (!alive) return ", before it said where it listens";
  return ", but it printed no \"listening on 127.0.0.1:PORT\" on stdout: without a flush that line "
         "stays in the server's own buffer";
}

std::string start_failure(child_process& child, bool has_line) {
  const bool alive = child.alive();
  return "the server did not start: " + child.describe() + why_not_started(alive, has_line) +
         ".\nIts stdout:" + quoted_or_nothing(child.stdout_text()) +
         "\nIts stderr:" + quoted_or_nothing(child.stderr_text());
}

}  // namespace

server_process::server_process(const std::filesystem::path& path,
                               const std::vector<std::string>& arguments,
                               const child_options& options)
    : child_{path, with_address(arguments), options} {
  std::size_t line_bytes = std::string::npos;
  const bool decided = eventually(start_deadline, [&] {
    const bool ended = !child_.alive();  // asked first, so that the text below is complete
    line_bytes = child_.stdout_text().find('\n');
    return ended || line_bytes != std::string::npos;
  });
  const bool has_line = decided && line_bytes != std::string::npos;
  if (has_line) port_ = announced_port(child_.stdout_text().substr(0, line_bytes));
  if (port_ != 0) return;
  child_.leave_out_of_report();
  throw std::runtime_error{start_failure(child_, has_line)};
}

exit_status server_process::stop(int signal, milliseconds deadline) {
  send_signal(signal);
  return wait_for_exit(deadline);
}

std::size_t server_process::open_fd_count() const {
  return course_test::open_fd_count(pid());
}

std::size_t server_process::resident_bytes() const {
  return course_test::resident_bytes(pid());
}

std::size_t server_process::thread_count() const {
  return course_test::thread_count(pid());
}

std::size_t server_process::context_switches() const {
  return course_test::context_switches(pid());
}

std::chrono::microseconds server_process::cpu_time() const {
  return course_test::cpu_time(pid());
}

}  // namespace course_test
