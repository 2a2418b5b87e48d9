// SPDX-License-Identifier: MIT
// What a path of the root turns out to be, asked of the kernel itself.
#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "fd_scope.hpp"
#include "site_folder.hpp"
#include "site_root.hpp"
#include "unique_fd.hpp"

using course_test::site_folder;
using uring::http::examine;
using uring::http::found_file;
using uring::http::how_to_open;
using uring::http::site_root;
using uring::http::status_of_refusal;

namespace {

struct served {
  site_folder folder;
  site_root root{folder.root().string()};

  [[nodiscard]] int status(const std::string& name) const { return root.find(name).status; }
};

// Opens the other end of a FIFO after a while, so that a reader that waits for it does not hang.
class late_writer {
 public:
  explicit late_writer(std::string fifo)
      : fifo_{std::move(fifo)}, thread_{[this] { open_it_late(); }} {}
  late_writer(late_writer&&) = delete;
  ~late_writer() { is_over_ = true; }

  [[nodiscard]] bool came() const noexcept { return came_; }

 private:
  static constexpr std::chrono::milliseconds step_ms{5};
  static constexpr int steps_max = 400;

  void open_it_late() {
    for (int step = 0; step < steps_max && !is_over_; ++step) std::this_thread::sleep_for(step_ms);
    if (is_over_) return;
    came_ = true;
    const common::unique_fd writer{::open(fifo_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC)};
    while (!is_over_) std::this_thread::sleep_for(step_ms);
  }

  std::string fifo_;
  std::atomic<bool> is_over_ = false;
  std::atomic<bool> came_ = false;
  std::jthread thread_;
};

}  // namespace

TEST_CASE("14.1 no path leads out of the root, not even a link's", "[14.1]") {
  const served here;
  for (const char* const name :
       {"../secret.txt", "docs/../../secret.txt", "link-outside.txt", "link-absolute.txt",
        "link-to-parent/secret.txt", "link-to-parent"}) {
    UNSCOPED_INFO(name << ": the kernel followed it out of the root: is RESOLVE_BENEATH set?");
    CHECK(here.status(name) == 403);
  }
  UNSCOPED_INFO("a path that begins with a slash begins at the root of the machine");
  CHECK(here.status("/etc/passwd") == 403);
}

TEST_CASE("14.1 a link within the root is followed", "[14.1]") {
  const served here;
  UNSCOPED_INFO("RESOLVE_NO_SYMLINKS or O_NOFOLLOW refuses it; a site may have links of its own");
  CHECK(here.status("link-inside.txt") == 200);
}

TEST_CASE("14.1 what is mounted in the root is served", "[14.1]") {
  UNSCOPED_INFO(
      "/proc is mounted in /, as another disk may be in a site: it is beneath the root, "
      "and RESOLVE_NO_XDEV would refuse it");
  CHECK(site_root{"/"}.find("proc/version").status == 200);
}

TEST_CASE("14.1 magic links and circles are refused", "[14.1]") {
  const served here;
  UNSCOPED_INFO("an errno of ELOOP is for what may not be followed, and so is 403");
  CHECK(here.status("link-circle") == 403);
  UNSCOPED_INFO("the links in /proc lead anywhere: RESOLVE_NO_MAGICLINKS");
  CHECK((how_to_open().resolve & RESOLVE_NO_MAGICLINKS) != 0);
  UNSCOPED_INFO("RESOLVE_BENEATH is what keeps paths inside of the root");
  CHECK((how_to_open().resolve & RESOLVE_BENEATH) != 0);
}

TEST_CASE("14.1 a FIFO without a writer makes nobody wait", "[14.1]") {
  const served here;
  const late_writer writer{(here.folder.root() / "fifo").string()};
  UNSCOPED_INFO("a FIFO is no regular file: S_ISREG is false");
  CHECK(here.status("fifo") == 403);
  UNSCOPED_INFO("open(2) of a FIFO waits for a writer, unless O_NONBLOCK is given");
  CHECK_FALSE(writer.came());
}

TEST_CASE("14.1 only regular files are served", "[14.1]") {
  const served here;
  UNSCOPED_INFO("a socket cannot be opened: ENXIO is 403, something is there");
  CHECK(here.status("socket") == 403);
  UNSCOPED_INFO("a folder is opened like a file, and has no bytes: 301, its slash is missing");
  CHECK(here.status("docs") == 301);
  UNSCOPED_INFO("a device is no regular file");
  CHECK(site_root{"/dev"}.find("null").status == 403);
  const std::string socket = (here.folder.root() / "socket").string();
  common::unique_fd opened{::open(socket.c_str(), O_PATH | O_CLOEXEC)};
  REQUIRE(opened.valid());
  const found_file examined = examine(std::move(opened));
  UNSCOPED_INFO(
      "it is a socket: its S_IFSOCK has the bits of S_IFREG and S_IFDIR, as a block device's "
      "S_IFBLK has those of S_IFDIR, so ask S_ISREG() and S_ISDIR(), and do not mask");
  CHECK(examined.status == 403);
  CHECK(here.status("hello.txt") == 200);
}

TEST_CASE("14.1 each refusal of the kernel has its status", "[14.1]") {
  for (const int error : {ENOENT, ENOTDIR, ENAMETOOLONG}) {
    UNSCOPED_INFO("errno " << error << ": nothing has this name");
    CHECK(status_of_refusal(error) == 404);
  }
  for (const int error : {EACCES, EPERM, EXDEV, ELOOP, ENXIO}) {
    UNSCOPED_INFO("errno " << error << ": something is there that is not for clients");
    CHECK(status_of_refusal(error) == 403);
  }
  for (const int error : {EMFILE, ENFILE, ENOMEM}) {
    UNSCOPED_INFO("errno " << error << ": the client may try again later, and this says so: 503");
    CHECK(status_of_refusal(error) == 503);
  }
  for (const int error : {EIO, EINVAL, ENOSYS}) {
    UNSCOPED_INFO("errno " << error << ": it is our fault, and not the client's");
    CHECK(status_of_refusal(error) == 500);
  }
}

TEST_CASE("14.1 what is opened is not for child programs, and no terminal becomes ours", "[14.1]") {
  const served here;
  const found_file found = here.root.find("hello.txt");
  UNSCOPED_INFO("O_CLOEXEC is missing: a program that this one starts would inherit the file");
  CHECK((::fcntl(found.fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
  UNSCOPED_INFO("O_NOCTTY is missing: a terminal in the root would send us its signals");
  CHECK((how_to_open().flags & O_NOCTTY) != 0);
  UNSCOPED_INFO("a file is opened to be read");
  CHECK((how_to_open().flags & O_ACCMODE) == O_RDONLY);
}

TEST_CASE("14.1 a file comes with its descriptor and its facts", "[14.1]") {
  const served here;
  const found_file found = here.root.find("hello.txt");
  UNSCOPED_INFO("the descriptor was closed on the way: move it into the result");
  CHECK(found.fd.valid());
  UNSCOPED_INFO("facts_of() makes them of what statx() has said");
  CHECK(found.facts.bytes == 12);
  CHECK(found.facts.modified_s == 1'000'000'000);
}

TEST_CASE("14.1 what is not served is closed", "[14.1]") {
  const served here;
  const course_test::fd_scope before;
  for (int i = 0; i < 3; ++i) {
    (void)here.status("fifo");
    (void)here.status("docs");
    (void)here.status("hello.txt");
  }
  UNSCOPED_INFO("a descriptor stays open for each folder or FIFO that somebody asks for");
  CHECK(before.leaked() == "");
}
