// SPDX-License-Identifier: MIT
// A root with one of everything that a server meets, made anew for a test; the golden answers are
// about these files.
// Owns     the folder, and a secret beside the root that no path may reach.
// Errors   std::system_error.
// Rule     every file was changed at the same moment, so that its entity tag is the same each time.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace course_test {

class site_folder {
 public:
  static constexpr std::size_t large_bytes = 300'000;
  static constexpr std::string_view secret = "the secret beside the root\n";

  site_folder();
  site_folder(site_folder&&) = delete;
  ~site_folder();

  [[nodiscard]] std::filesystem::path root() const { return folder_ / "root"; }
  [[nodiscard]] std::filesystem::path beside(std::string_view name) const { return folder_ / name; }

  // Writes a file of the root, with the time that all have.
  void write(std::string_view name, std::string_view text) const;
  // Changes a file's time by so many seconds.
  void touch(std::string_view name, int later_s) const;
  // What large.bin holds: no two of its kilobytes are the same.
  [[nodiscard]] static std::string large();

 private:
  std::filesystem::path folder_;
};

}  // namespace course_test
