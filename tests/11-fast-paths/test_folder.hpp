// SPDX-License-Identifier: MIT
// A folder of a test's own, with files in it.
// Owns     the folder and all that is in it at the end.
// Lifetime as long as the object.
// Threads  one at a time.
// Errors   std::system_error, std::filesystem::filesystem_error.
#pragma once

#include <fcntl.h>
#include <stdlib.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "errors.hpp"
#include "unique_fd.hpp"

namespace course_test {

class test_folder {
 public:
  test_folder() = default;
  test_folder(test_folder&&) = delete;
  ~test_folder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::string path(const std::string& name) const { return path_ + "/" + name; }

  // Makes the file, or gives it another content.
  std::string add(const std::string& name, std::string_view content) const {
    std::ofstream{path(name), std::ios::binary} << content;
    return path(name);
  }

  [[nodiscard]] std::string content(const std::string& name) const {
    std::ostringstream all;
    all << std::ifstream{path(name), std::ios::binary}.rdbuf();
    return all.str();
  }

  // What is there, hidden files too: "a b c".
  [[nodiscard]] std::string names() const {
    std::vector<std::string> found;
    for (const auto& each : std::filesystem::directory_iterator{path_}) {
      found.push_back(each.path().filename().string());
    }
    std::ranges::sort(found);
    std::string all;
    for (const std::string& each : found) all += all.empty() ? each : " " + each;
    return all;
  }

  [[nodiscard]] common::unique_fd open(const std::string& name, int flags = O_RDWR) const {
    return common::unique_fd{
        common::check(::open(path(name).c_str(), flags | O_CLOEXEC, 0644), path(name))};
  }

 private:
  static std::string made() {
    std::string name = (std::filesystem::temp_directory_path() / "ring-by-ring-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) common::throw_errno("mkdtemp " + name);
    return name;
  }

  std::string path_ = made();
};

// Bytes of which no block is like another.
[[nodiscard]] inline std::string noise(std::size_t bytes) {
  std::string made(bytes, '\0');
  std::uint64_t state = 88172645463325252U + bytes;
  for (char& each : made) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    each = static_cast<char>(state);
  }
  return made;
}

}  // namespace course_test
