// SPDX-License-Identifier: MIT
#include "observe.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "recording.hpp"

namespace course_trace {

namespace {

constexpr unsigned events_max = 2000;
constexpr std::uint64_t numbers_max = 0x10000;  // smaller words are no addresses

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 20> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

bool is_mapped(std::uint64_t word) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  unsigned char resident = 0;
  return ::mincore(reinterpret_cast<void*>(word / page * page), 1, &resident) == 0;
}

// Makes ping of "uring::task<> {anonymous}::ping(…)". GCC and Clang write names differently.
std::string bare_name(std::string_view signature) {
  constexpr std::string_view clang_anonymous = "(anonymous namespace)::";
  if (const auto at = signature.find(clang_anonymous); at != std::string_view::npos) {
    signature.remove_prefix(at + clang_anonymous.size());
  }
  signature = signature.substr(0, signature.find('('));
  const auto is_of_name = [](char each) { return std::isalnum(each) != 0 || each == '_'; };
  const auto before = std::find_if_not(signature.rbegin(), signature.rend(), is_of_name);
  return {before.base(), signature.end()};
}

std::string line_of(const std::source_location& place) {
  return std::string{::basename(place.file_name())} + ':' + std::to_string(place.line());
}

// Which coroutines' functions are on a thread's stack, the innermost last. One that was jumped to
// has taken the place of the one before it; one that was called lies deeper.
struct stack_entry {
  const void* stack;
  void* frame;
};
thread_local std::vector<stack_entry> on_stack;
thread_local std::pair<void*, std::size_t> last_allocated;

int depth() {
  return on_stack.empty() ? 0 : static_cast<int>(on_stack.size()) - 1;
}

void leave_stack(const void* frame) {
  const auto is_its = [&](const stack_entry& each) { return each.frame == frame; };
  const auto last = std::find_if(on_stack.rbegin(), on_stack.rend(), is_its);
  if (last != on_stack.rend()) on_stack.erase(std::prev(last.base()), on_stack.end());
}

// The frame may be gone by now: then its end was told before.
void back(const locked& to, const void* frame) {
  const int number = to->frame_of(frame);
  if (number != 0) to->write("back", "'f':%d,'depth':%d", number, depth());
  leave_stack(frame);
}

}  // namespace

// Never destroyed: destructors of static objects still cause events.
recording* recording::instance() noexcept {
  static recording* const only = []() -> recording* {
    const char* const path = std::getenv("COURSE_TRACE");
    if (path == nullptr) return nullptr;
    const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    ::unsetenv("COURSE_TRACE");  // programs that this one starts must not write there
    if (file < 0) return nullptr;
    auto* const made = new recording{file};
    made->begin();
    return made;
  }();
  return only;
}

void recording::begin() {
  std::ifstream command_line{"/proc/self/cmdline"};
  std::string program;
  std::getline(command_line, program, '\0');
  std::string args;
  for (std::string word; std::getline(command_line, word, '\0');) {
    for (char& each : word) each = each == '"' || each == '\\' || each < ' ' ? '?' : each;
    args += (args.empty() ? "\"" : ",\"") + word + '"';
  }
  ::utsname kernel{};
  ::uname(&kernel);
  const std::string line = R"({"trace":1,"program":")" + program.substr(program.rfind('/') + 1) +
                           R"(","args":[)" + args + R"(],"kernel":")" + kernel.release +
                           R"(","cxx":"GCC or Clang )" __VERSION__ "\"}\n";
  (void)!::write(file_, line.data(), line.size());
}

void recording::write(const char* kind, const char* fields, ...) {
  if (count_ > events_max) return;
  if (++count_ > events_max) kind = "full", fields = "'more':true";
  std::array<char, 1024> line{};
  int end =
      std::snprintf(line.data(), line.size(), "{'n':%u,'th':%d,'e':'%s',", count_, thread(), kind);
  std::va_list values;
  va_start(values, fields);
  end += std::vsnprintf(&line.at(static_cast<std::size_t>(end)), 900, fields, values);
  va_end(values);
  const auto bytes = std::min(static_cast<std::size_t>(end), line.size() - 2);
  std::replace(line.begin(), line.end(), '\'', '"');
  line.at(bytes) = '}';
  line.at(bytes + 1) = '\n';
  (void)!::write(file_, line.data(), bytes + 2);
}

int recording::thread() noexcept {
  static std::atomic<int> threads{0};
  thread_local const int number = threads++;
  return number;
}

std::string recording::name_of(std::uint64_t word) {
  const auto after = frames_.upper_bound(word);
  if (after != frames_.begin()) {
    const auto& [start, frame] = *std::prev(after);
    if (word - start < std::max<std::size_t>(frame.bytes, 1)) {
      return 'f' + std::to_string(frame.number) + '+' + hexadecimal(word - start);
    }
  }
  if (word < numbers_max) return std::to_string(word);
  if (!is_mapped(word)) return hexadecimal(word);
  const auto [known, is_new] = addresses_.try_emplace(word);
  if (is_new) known->second = 'a' + std::to_string(addresses_.size());
  return known->second;
}

int recording::frame_of(const void* frame) const noexcept {
  const auto found = frames_.find(reinterpret_cast<std::uintptr_t>(frame));
  return found == frames_.end() ? 0 : found->second.number;
}

int recording::make_frame(void* frame, std::size_t bytes) {
  frames_[reinterpret_cast<std::uintptr_t>(frame)] = {bytes, ++frames_made_};
  return frames_made_;
}

void allocates(void* frame, std::size_t bytes) noexcept {
  last_allocated = {frame, bytes};
}

void makes(void* frame, const std::source_location& place) noexcept {
  const locked to;
  if (!to) return;
  const std::size_t bytes = last_allocated.first == frame ? last_allocated.second : 0;
  const int by = on_stack.empty() ? 0 : to->frame_of(on_stack.back().frame);
  to->write("frame", "'f':%d,'fn':'%s','by':%d", to->make_frame(frame, bytes),
            bare_name(place.function_name()).c_str(), by);
}

void suspends(void* frame, const std::source_location& place) noexcept {
  const locked to;
  if (to) to->write("suspend", "'f':%d,'at':'%s'", to->frame_of(frame), line_of(place).c_str());
}

void jumps(void* from, void* next) noexcept {
  const locked to;
  if (!to) return;
  const int number = to->frame_of(next);
  // std::noop_coroutine() leads back, as does a coroutine that nobody watches.
  if (number == 0) return back(to, from);
  to->write("jump", "'from':%d,'to':%d", to->frame_of(from), number);
}

void gives_back(void* frame) noexcept {
  if (const locked to; to) back(to, frame);
}

void resumes(void* frame, const void* stack, const std::source_location* place) noexcept {
  const locked to;
  if (!to) return;
  while (!on_stack.empty() && on_stack.back().stack <= stack) on_stack.pop_back();
  on_stack.push_back({stack, frame});
  const std::string at = place == nullptr ? "" : ",'at':'" + line_of(*place) + '\'';
  to->write(place == nullptr ? "start" : "resume", "'f':%d,'depth':%d%s", to->frame_of(frame),
            depth(), at.c_str());
}

void notes(const char* kind, void* frame) noexcept {
  if (const locked to; to) to->write(kind, "'f':%d", to->frame_of(frame));
}

void destroys(void* frame) noexcept {
  if (const locked to; to) {
    to->write("destroy", "'f':%d", to->frame_of(frame));
    to->forget_frame(frame);
    leave_stack(frame);
  }
}

}  // namespace course_trace
