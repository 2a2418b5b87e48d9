// SPDX-License-Identifier: MIT
#include "child_process.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <system_error>

#include "captured_output.hpp"
#include "child_report.hpp"
#include "errors.hpp"
#include "patience.hpp"
#include "pipe_ends.hpp"

namespace course_test {
namespace {

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& each : strings) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(const std::vector<std::string>& added) {
  std::vector<std::string> all = added;  // first: getenv() takes the first of two
  for (char** each = environ; *each != nullptr; ++each) all.emplace_back(*each);
  return all;
}

// Everything that the child needs between fork() and exec(), made before: after fork() in a program
// with threads, no allocation is safe.
struct launch {
  std::string path;
  std::vector<std::string> argument_strings;
  std::vector<std::string> environment_strings;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  ::rlimit fds{};
  ::pid_t parent = ::getpid();
  int stdout_fd = -1;
  int stderr_fd = -1;
  int failure_fd = -1;  // takes errno if exec() fails; closed by a successful exec()
};

launch prepare(const std::filesystem::path& path, const std::vector<std::string>& arguments,
               const child_options& options) {
  launch made;
  made.path = path.string();
  made.argument_strings = arguments;
  made.argument_strings.insert(made.argument_strings.begin(), made.path);
  made.environment_strings = environment_with(options.environment);
  made.arguments = pointers_to(made.argument_strings);
  made.environment = pointers_to(made.environment_strings);
  common::check(::getrlimit(RLIMIT_NOFILE, &made.fds), "getrlimit RLIMIT_NOFILE");
  if (options.fd_limit) made.fds.rlim_max = *options.fd_limit;
  made.fds.rlim_cur = made.fds.rlim_max;
  return made;
}

// In the child. Only calls that signal-safety(7) lists, and their like.
[[noreturn]] void exec_child(const launch& with) {
  const auto fail = [&with] {
    const int error = errno;
    [[maybe_unused]] const auto written = ::write(with.failure_fd, &error, sizeof error);
    ::_exit(127);
  };
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != with.parent) ::_exit(127);  // the test died before the line above
  ::sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const int null = ::open("/dev/null", O_RDONLY);
  if (null == -1 || ::dup2(null, STDIN_FILENO) == -1) fail();
  if (::dup2(with.stdout_fd, STDOUT_FILENO) == -1) fail();
  if (::dup2(with.stderr_fd, STDERR_FILENO) == -1) fail();
  // What a debugger or CTest left open in us would count against the child's limit.
  ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
  if (::setrlimit(RLIMIT_NOFILE, &with.fds) == -1) fail();
  ::execve(with.path.c_str(), with.arguments.data(), with.environment.data());
  fail();
  ::_exit(127);
}

// Returns when the child has called exec(), or throws what went wrong there.
::pid_t start_child(launch& with) {
  pipe_ends failure = make_pipe();
  with.failure_fd = failure.write.get();
  const ::pid_t pid = common::check(::fork(), "fork");
  if (pid == 0) exec_child(with);
  ::setpgid(pid, pid);  // the child calls this as well: one of the two comes first
  failure.write.reset();
  int error = 0;
  if (::read(failure.read.get(), &error, sizeof error) != sizeof error) return pid;
  ::waitpid(pid, nullptr, 0);
  throw std::system_error{error, std::generic_category(),
                          "start " + with.path + (error == ENOENT ? " (is it built?)" : "")};
}

// Readable when the process has ended.
common::unique_fd open_pidfd(::pid_t pid) {
  const long fd = common::check(::syscall(SYS_pidfd_open, pid, 0U), "pidfd_open");
  return common::unique_fd{static_cast<int>(fd)};
}

bool holds_sanitizer_report(const std::string& text) {
  return text.find("Sanitizer: ") != std::string::npos ||
         text.find(": runtime error: ") != std::string::npos;
}

}  // namespace

std::filesystem::path program(const std::string& name) {
  const char* const folder = std::getenv("COURSE_PROGRAM_DIR");
  return std::filesystem::path{folder != nullptr ? folder : COURSE_PROGRAM_DIR} / name;
}

struct child_process::state {
  std::string name;
  captured_output output;
  ::pid_t pid = -1;
  common::unique_fd pidfd;
  std::optional<exit_status> ended;
  bool stopped_by_test = false;
  bool reported = false;

  // Waits for the end, reaps the child, and keeps what it said and how it ended.
  exit_status wait(milliseconds deadline) {
    if (ended) return *ended;
    ::pollfd end{.fd = pidfd.get(), .events = POLLIN, .revents = 0};
    int ready = -1;
    do {
      ready = ::poll(&end, 1, static_cast<int>(deadline.count()));
    } while (ready == -1 && errno == EINTR);
    if (ready == 0) return exit_status::running();
    ::kill(-pid, SIGKILL);  // what it started itself; its number is ours until the next line
    int status = 0;
    common::check(::waitpid(pid, &status, 0), "waitpid");
    pidfd.reset();
    output.finish();
    ended = exit_status::from_wait_status(status);
    return *ended;
  }

  std::string describe() {
    std::string text = name + " (pid " + std::to_string(pid) + ") ";
    if (wait(milliseconds{0}) == exit_status::running()) return text + "is running";
    if (!stopped_by_test) text += "ended by itself: it ";
    return text + ended->describe() + (stopped_by_test ? " when the test stopped it" : "");
  }
};

child_process::child_process(const std::filesystem::path& path,
                             const std::vector<std::string>& arguments,
                             const child_options& options)
    : state_{std::make_shared<state>()} {
  launch with = prepare(path, arguments, options);
  with.stdout_fd = state_->output.stdout_writer();
  with.stderr_fd = state_->output.stderr_writer();
  state_->name = path.filename().string();
  state_->pid = start_child(with);
  state_->pidfd = open_pidfd(state_->pid);
  state_->output.start();
  report_on_failure([state = state_]() -> std::optional<child_report> {
    if (state->reported) return {};
    return child_report{state->describe(), state->output.stderr_text()};
  });
}

child_process::child_process(child_process&&) noexcept = default;

child_process::~child_process() {
  if (!state_) return;
  // If a child's crash has failed the test, give it time to end by itself before it is killed.
  const bool failing = std::uncaught_exceptions() > 0;
  if (state_->wait(milliseconds{failing ? 200 : 0}) == exit_status::running()) {
    send_signal(SIGTERM);
    if (state_->wait(kill_deadline) == exit_status::running()) {
      ::kill(-state_->pid, SIGKILL);
      [[maybe_unused]] const exit_status end = state_->wait(kill_deadline);
    }
  }
  if (failing || !holds_sanitizer_report(stderr_text())) return;
  FAIL_CHECK("a sanitizer found a defect in " << describe() << "; its report is below");
}

::pid_t child_process::pid() const noexcept {
  return state_->pid;
}

bool child_process::alive() {
  return state_->wait(milliseconds{0}) == exit_status::running();
}

void child_process::send_signal(int signal) {
  if (!alive()) return;
  if (signal != SIGSTOP && signal != SIGCONT) state_->stopped_by_test = true;
  ::kill(state_->pid, signal);
}

exit_status child_process::wait_for_exit(milliseconds deadline) {
  return state_->wait(deadline * patience());
}

std::string child_process::stdout_text() const {
  return state_->output.stdout_text();
}

std::string child_process::stderr_text() const {
  return state_->output.stderr_text();
}

std::string child_process::describe() {
  return state_->describe();
}

void child_process::leave_out_of_report() noexcept {
  state_->reported = true;
}

finished_program run_program(const std::filesystem::path& path,
                             const std::vector<std::string>& arguments, milliseconds deadline,
                             const child_options& options) {
  child_process child{path, arguments, options};
  const exit_status status = child.wait_for_exit(deadline);
  return {status, child.stdout_text(), child.stderr_text()};
}

}  // namespace course_test
