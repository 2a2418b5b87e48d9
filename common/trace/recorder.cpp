// SPDX-License-Identifier: MIT
#include "recorder.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "recording.hpp"

namespace course_trace {

namespace {

constexpr std::size_t events_max = 2000;
constexpr std::uint64_t numbers_max = 0x10000;  // smaller words are no addresses

void append_text(std::string& to, std::string_view text) {
  to += '"';
  for (const char each : text) {
    if (each == '"' || each == '\\') to += '\\';
    to += static_cast<unsigned char>(each) < ' ' ? ' ' : each;
  }
  to += '"';
}

void append_key(std::string& to, std::string_view key) {
  to += ',';
  append_text(to, key);
  to += ':';
}

std::string hexadecimal(std::uint64_t value) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), digits[value % digits.size()]);
  } while ((value /= digits.size()) != 0);
  return "0x" + text;
}

bool is_mapped(std::uint64_t word) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  unsigned char resident = 0;
  return ::mincore(reinterpret_cast<void*>(word / page * page), 1, &resident) == 0;
}

std::vector<std::string> command_line() {
  std::ifstream file{"/proc/self/cmdline"};
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

// Of "uring::task<> {anonymous}::ping(…)" ping; GCC and Clang call their functions differently.
std::string_view bare_name(std::string_view signature) {
  constexpr std::string_view clang_anonymous = "(anonymous namespace)::";
  std::size_t from = signature.find(clang_anonymous);
  from = from == std::string_view::npos ? 0 : from + clang_anonymous.size();
  const std::size_t end = std::min(signature.find('(', from), signature.size());
  std::size_t begin = end;
  const auto is_of_name = [&](char each) { return std::isalnum(each) != 0 || each == '_'; };
  while (begin > from && is_of_name(signature[begin - 1])) --begin;
  return signature.substr(begin, end - begin);
}

std::string line_of(const std::source_location& place) {
  const std::string_view path = place.file_name();
  const std::size_t slash = path.find_last_of('/');
  const auto file = slash == std::string_view::npos ? path : path.substr(slash + 1);
  return std::string{file} + ':' + std::to_string(place.line());
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
  for (auto each = on_stack.end(); each != on_stack.begin();) {
    if ((--each)->frame == frame) return static_cast<void>(on_stack.erase(each, on_stack.end()));
  }
}

// The frame may be gone by now: then its end was told before.
void back(const locked& to, const void* frame) {
  const int number = to->frame_of(frame);
  if (number != 0) to->write(event{"back"}.number("f", number).number("depth", depth()));
  leave_stack(frame);
}

}  // namespace

event& event::number(std::string_view key, std::int64_t value) {
  append_key(rest_, key);
  rest_ += std::to_string(value);
  return *this;
}

event& event::text(std::string_view key, std::string_view value) {
  append_key(rest_, key);
  append_text(rest_, value);
  return *this;
}

event& event::numbers(std::string_view key, std::initializer_list<unsigned> values) {
  append_key(rest_, key);
  char before = '[';
  for (const unsigned each : values) {
    rest_ += before + std::to_string(each);
    before = ',';
  }
  rest_ += ']';
  return *this;
}

event& event::texts(std::string_view key, const std::vector<std::string_view>& values) {
  append_key(rest_, key);
  rest_ += '[';
  for (const std::string_view each : values) {
    if (rest_.back() != '[') rest_ += ',';
    append_text(rest_, each);
  }
  rest_ += ']';
  return *this;
}

std::string event::line(std::size_t count, int thread) const {
  return "{\"n\":" + std::to_string(count) + ",\"th\":" + std::to_string(thread) + ",\"e\":\"" +
         kind_ + '"' + rest_ + "}\n";
}

// Lives to the end: destructors of statics are still events.
recording* recording::instance() noexcept {
  static recording* const only = [] {
    const char* const path = std::getenv("COURSE_TRACE");
    if (path == nullptr) return static_cast<recording*>(nullptr);
    const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    ::unsetenv("COURSE_TRACE");  // what this program starts must not write there, too
    if (file < 0) return static_cast<recording*>(nullptr);
    auto* const made = new recording{file};
    made->begin();
    return made;
  }();
  return only;
}

void recording::begin() {
  const std::vector<std::string> words = command_line();
  const std::string program = words.empty() ? "" : words.front();
  ::utsname kernel{};
  ::uname(&kernel);
  std::string line = "{\"trace\":1";
  append_key(line, "program");
  append_text(line, program.substr(program.find_last_of('/') + 1));
  append_key(line, "args");
  for (std::size_t i = 1; i < words.size(); ++i) append_text(line += i == 1 ? '[' : ',', words[i]);
  line += words.size() > 1 ? "]" : "[]";
  append_key(line, "kernel");
  append_text(line, kernel.release);
  append_key(line, "cxx");
#ifdef __clang__
  append_text(line, __VERSION__);
#else
  append_text(line, "g++ " __VERSION__);
#endif
  line += "}\n";
  (void)!::write(file_, line.data(), line.size());
}

void recording::write(const event& happened) {
  look();
  write_only(happened);
}

void recording::write_only(const event& happened) {
  if (count_ > events_max) return;
  const bool is_full = ++count_ > events_max;
  const std::string line = (is_full ? event{"full"} : happened).line(count_, thread());
  (void)!::write(file_, line.data(), line.size());
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
  to->write(event{"frame"}
                .number("f", to->make_frame(frame, bytes))
                .text("fn", bare_name(place.function_name()))
                .number("by", by));
}

void suspends(void* frame, const std::source_location& place) noexcept {
  if (const locked to; to) {
    to->write(event{"suspend"}.number("f", to->frame_of(frame)).text("at", line_of(place)));
  }
}

void jumps(void* from, void* next) noexcept {
  const locked to;
  if (!to) return;
  const int number = to->frame_of(next);
  // std::noop_coroutine() leads back, as does a coroutine that nobody watches.
  if (number == 0) return back(to, from);
  to->write(event{"jump"}.number("from", to->frame_of(from)).number("to", number));
}

void gives_back(void* frame) noexcept {
  if (const locked to; to) back(to, frame);
}

void resumes(void* frame, const void* stack, const std::source_location* place) noexcept {
  const locked to;
  if (!to) return;
  while (!on_stack.empty() && on_stack.back().stack <= stack) on_stack.pop_back();
  on_stack.push_back({stack, frame});
  event happened{place == nullptr ? "start" : "resume"};
  happened.number("f", to->frame_of(frame));
  if (place != nullptr) happened.text("at", line_of(*place));
  to->write(happened.number("depth", depth()));
}

void throws(void* frame) noexcept {
  if (const locked to; to) to->write(event{"throw"}.number("f", to->frame_of(frame)));
}

void ends(void* frame) noexcept {
  if (const locked to; to) to->write(event{"end"}.number("f", to->frame_of(frame)));
}

void destroys(void* frame) noexcept {
  if (const locked to; to) {
    to->write(event{"destroy"}.number("f", to->frame_of(frame)));
    to->forget_frame(frame);
    leave_stack(frame);
  }
}

}  // namespace course_trace
