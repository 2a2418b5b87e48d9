// SPDX-License-Identifier: MIT
// 14's server with a root of its own, and what a test says to it.
// Owns     the folder and the server.
// Errors   those of server_process and of client.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "client.hpp"
#include "server_process.hpp"
#include "site_folder.hpp"

namespace course_test {

inline const std::vector<std::string> no_cache{"--cache-bytes-max", "0"};  // of a site_server

class site_server {
 public:
  explicit site_server(const std::vector<std::string>& arguments = {},
                       const child_options& options = {})
      : process{program("14-server"), with_root(arguments), options} {}

  [[nodiscard]] client connect(const client_options& options = {}) const {
    return client{process.port(), options};
  }

  // One GET on a connection of its own: all of the answer.
  [[nodiscard]] std::string get(std::string_view path) const {
    client peer = connect();
    peer.send_all(last_request(path));
    return peer.recv_until_eof();
  }

  [[nodiscard]] static std::string request(std::string_view path) {
    return "GET " + std::string{path} + " HTTP/1.1\r\nHost: a\r\n\r\n";
  }
  [[nodiscard]] static std::string last_request(std::string_view path) {
    return "GET " + std::string{path} + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  }

  // Of /-/counters, by its name.
  [[nodiscard]] long counter(std::string_view name) const {
    const std::string all = get("/-/counters");
    const std::size_t at = all.find("\n" + std::string{name} + " ");
    return at == std::string::npos ? -1 : std::stol(all.substr(at + name.size() + 2));
  }

 private:
  [[nodiscard]] std::vector<std::string> with_root(const std::vector<std::string>& more) const {
    std::vector<std::string> all{"--root", folder.root().string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

 public:
  site_folder folder;
  server_process process;
};

// The status line's number; 0 if there is none.
[[nodiscard]] inline int status_of(std::string_view answer) {
  constexpr std::string_view begin = "HTTP/1.1 ";
  return answer.starts_with(begin) ? std::stoi(std::string{answer.substr(begin.size(), 3)}) : 0;
}

// What stands behind the empty line.
[[nodiscard]] inline std::string body_of(std::string_view answer) {
  const std::size_t end = answer.find("\r\n\r\n");
  return end == std::string_view::npos ? "" : std::string{answer.substr(end + 4)};
}

// Reads the head of one answer, with its empty line, and nothing behind it.
[[nodiscard]] inline std::string recv_head(client& peer) {
  std::string head;
  while (!head.ends_with("\r\n\r\n")) head += peer.recv_exactly(1);
  return head;
}

// Reads one answer whose length is said, and nothing behind it.
[[nodiscard]] inline std::string recv_answer(client& peer,
                                             milliseconds body_deadline = step_deadline) {
  std::string answer = recv_head(peer);
  constexpr std::string_view field = "\r\nContent-Length: ";
  const std::size_t at = answer.find(field);
  if (at == std::string::npos) return answer;
  const std::size_t bytes = std::stoul(answer.substr(at + field.size()));
  answer += peer.recv_exactly(bytes, body_deadline);
  return answer;
}

}  // namespace course_test
