// SPDX-License-Identifier: MIT
#include "site_folder.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <fstream>
#include <stdexcept>

#include "bytes.hpp"
#include "errors.hpp"
#include "unique_fd.hpp"

namespace course_test {
namespace {

constexpr ::time_t changed_s = 1'000'000'000;  // Sun, 09 Sep 2001 01:46:40 GMT

std::filesystem::path new_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "course-site-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) common::throw_errno("mkdtemp");
  return name;
}

void set_time(const std::filesystem::path& file, ::time_t seconds) {
  const ::timespec both[2] = {{.tv_sec = seconds, .tv_nsec = 0}, {.tv_sec = seconds, .tv_nsec = 0}};
  common::check(::utimensat(AT_FDCWD, file.c_str(), both, 0), "utimensat");
}

void make_socket(const std::filesystem::path& file) {
  const common::unique_fd fd{
      common::check(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")};
  ::sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = file.string();
  if (name.size() >= sizeof address.sun_path) throw std::runtime_error{"too long: " + name};
  name.copy(address.sun_path, name.size());
  common::check(::bind(fd.get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address),
                "bind");
}

}  // namespace

site_folder::site_folder() : folder_{new_folder()} {
  namespace files = std::filesystem;
  files::create_directories(root() / "docs");
  files::create_directories(root() / "no-index" / "below");
  files::create_directories(root() / "folder-index" / "index.html");
  write("index.html", "<!doctype html><title>home</title>\n");
  write("hello.txt", "hello world\n");
  write("empty.txt", "");
  write("digits.txt", "0123456789");
  write("style.css", "body { color: black }\n");
  write("page.HTML", "<p>upper case</p>\n");
  write("no-ending", "bytes\n");
  write("a b+c.txt", "a name with a blank\n");
  write("caf\xc3\xa9.txt", "a name in UTF-8\n");
  write("docs/index.html", "<!doctype html><title>docs</title>\n");
  write("large.bin", large());
  std::ofstream{beside("secret.txt")} << secret;
  files::create_symlink("hello.txt", root() / "link-inside.txt");
  files::create_symlink("../secret.txt", root() / "link-outside.txt");
  files::create_symlink(beside("secret.txt"), root() / "link-absolute.txt");
  files::create_symlink("..", root() / "link-to-parent");
  files::create_symlink("/proc/self/cwd", root() / "link-magic");
  files::create_symlink("link-circle", root() / "link-circle");
  common::check(::mkfifo((root() / "fifo").c_str(), 0600), "mkfifo");
  make_socket(root() / "socket");
}

site_folder::~site_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void site_folder::write(std::string_view name, std::string_view text) const {
  const std::filesystem::path file = root() / name;
  std::ofstream{file, std::ios::binary}.write(text.data(),
                                              static_cast<std::streamsize>(text.size()));
  set_time(file, changed_s);
}

void site_folder::touch(std::string_view name, int later_s) const {
  set_time(root() / name, changed_s + later_s);
}

std::string site_folder::large() {
  return pattern(7, large_bytes);
}

}  // namespace course_test
