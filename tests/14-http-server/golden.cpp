// SPDX-License-Identifier: MIT
#include "golden.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "client.hpp"
#include "patience.hpp"

#ifndef COURSE_GOLDEN_FOLDER
#error "CMakeLists.txt defines where the golden files are"
#endif

namespace course_test {
namespace {

char byte_of(std::string_view text, std::size_t& at) {
  const char kind = text.at(++at);
  if (kind == 'r') return '\r';
  if (kind == 'n') return '\n';
  if (kind == 't') return '\t';
  if (kind != 'x') return kind;
  const std::string digits{text.substr(at + 1, 2)};
  at += 2;
  return static_cast<char>(std::stoi(digits, nullptr, 16));
}

std::string unescaped(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size(); ++at) {
    bytes += text[at] == '\\' ? byte_of(text, at) : text[at];
  }
  return bytes;
}

// "* 9000 a"
std::string bytes_of_line(std::string_view text) {
  if (!text.starts_with("* ")) return unescaped(text);
  const std::size_t blank = text.find(' ', 2);
  const int times = std::stoi(std::string{text.substr(2, blank - 2)});
  const std::string each = unescaped(text.substr(blank + 1));
  std::string bytes;
  for (int i = 0; i < times; ++i) bytes += each;
  return bytes;
}

// True if the line belongs to what `mark` stands for, and was added to it.
bool add_line(std::string_view line, char mark, std::string& to) {
  if (line.empty() || line[0] != mark) return false;
  const bool has_no_end = line.size() > 1 && line[1] == mark;
  const std::size_t begin = std::min<std::size_t>(line.size(), has_no_end ? 3 : 2);
  to += bytes_of_line(line.substr(begin));
  if (!has_no_end) to += "\r\n";
  return true;
}

void read_line(const std::string& line, std::vector<golden_case>& cases) {
  if (line.empty() || line[0] == '#') return;
  if (line[0] == '[') {
    cases.push_back({});
    cases.back().name = line.substr(1, line.size() - 2);
    return;
  }
  if (cases.empty()) throw std::runtime_error{"a line before the first [name]: " + line};
  golden_case& last = cases.back();
  if (add_line(line, '>', last.request) || add_line(line, '<', last.answer)) return;
  if (line == "= open" || line == "= closes") {
    last.stays_open = line == "= open";
  } else if (line.starts_with("rfc ")) {
    last.rule = line;
  } else {
    throw std::runtime_error{"golden file: what is this line? " + line};
  }
}

// As many bytes as are expected, or all if the connection ends; then what becomes of it.
std::string talk(std::uint16_t port, const golden_case& each, sent_as how, ending& end) {
  client peer{port};
  if (how == sent_as::whole) peer.send_all(each.request);
  if (how == sent_as::bytes) peer.send_byte_by_byte(each.request);
  if (!each.stays_open) {
    std::string all = peer.recv_until_eof();
    end = ending::eof;
    return all;
  }
  const std::size_t date_bytes = 29;
  std::size_t wanted = each.answer.size();
  for (std::size_t at = each.answer.find("Date: *"); at != std::string::npos;
       at = each.answer.find("Date: *", at + 1)) {
    wanted += date_bytes - 1;
  }
  std::string got = peer.recv_exactly(wanted);
  end = ending::still_open;
  // One more request on the same connection shows that nothing is left over.
  peer.send_all("HEAD /empty.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const std::string next = peer.recv_until_eof();
  if (!next.starts_with("HTTP/1.1 200 OK\r\n")) got += "\n[and then: " + next + "]";
  return got;
}

}  // namespace

std::vector<golden_case> golden_cases(std::string_view name) {
  const std::filesystem::path folder{COURSE_GOLDEN_FOLDER};
  std::ifstream file{folder / (std::string{name} + ".txt")};
  if (!file) throw std::runtime_error{"no golden file " + std::string{name}};
  std::vector<golden_case> cases;
  for (std::string line; std::getline(file, line);) read_line(line, cases);
  return cases;
}

std::string without_dates(std::string answer) {
  constexpr std::string_view field = "\r\nDate: ";
  for (std::size_t at = answer.find(field); at != std::string::npos; at = answer.find(field, at)) {
    at += field.size();
    const std::size_t end = answer.find("\r\n", at);
    answer.replace(at, std::min(end, answer.size()) - at, "*");
  }
  return answer;
}

void check_golden(std::string_view name, std::uint16_t port, sent_as how) {
  const std::vector<golden_case> cases = golden_cases(name);
  REQUIRE_FALSE(cases.empty());
  for (const golden_case& each : cases) {
    ending end = ending::still_open;
    std::string answer;
    try {
      answer = without_dates(talk(port, each, how, end));
    } catch (const client_error& broken) {
      answer = std::string{"nothing that could be read: "} + broken.what();
    }
    UNSCOPED_INFO("golden/" << name << ".txt, [" << each.name << "], " << each.rule);
    CHECK(answer == each.answer);
    if (answer != each.answer) return;  // the others would wait in vain, too
  }
}

}  // namespace course_test
