// SPDX-License-Identifier: MIT
// Each operation on files, pipes and folders: what it does, and how it fails.
#include "file_operations.hpp"

#include <stdlib.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

#include "bytes.hpp"
#include "errors.hpp"
#include "io_context.hpp"
#include "large_span.hpp"
#include "path_operations.hpp"
#include "pipe_ends.hpp"
#include "registered_buffers.hpp"
#include "result_of.hpp"
#include "transfers.hpp"
#include "unique_fd.hpp"

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using course_test::bytes_of;
using course_test::make_pipe;
using course_test::pipe_ends;
using course_test::result_of;
using course_test::text_of;
using uring::io_context;
using uring::io_request;
using uring::io_result;

namespace {

// A folder of its own, removed at the end.
struct file_fixture {
  io_context context;
  std::array<std::byte, 256> buffer{};
  std::string folder = made_folder();
  common::unique_fd folder_fd{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};

  file_fixture() = default;
  file_fixture(file_fixture&&) = delete;
  ~file_fixture() { fs::remove_all(folder); }

  template <typename Prepare>
  int result(io_request<Prepare> request) {
    return context.run(result_of(request));
  }

  [[nodiscard]] int in() const { return folder_fd.get(); }

  common::unique_fd file(const char* name, std::string_view content) const {
    std::ofstream{folder + "/" + name} << content;
    return common::unique_fd{::openat(in(), name, O_RDWR | O_CLOEXEC)};
  }

  [[nodiscard]] std::string content(const char* name) const {
    std::ostringstream all;
    all << std::ifstream{folder + "/" + name}.rdbuf();
    return all.str();
  }

 private:
  static std::string made_folder() {
    std::string name = (fs::temp_directory_path() / "ring-by-ring-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) common::throw_errno("mkdtemp " + name);
    return name;
  }
};

}  // namespace

TEST_CASE("07 read and write take an offset, or the descriptor's own") {
  file_fixture test;
  const common::unique_fd file = test.file("a", "0123456789");
  const std::span<std::byte> three = std::span{test.buffer}.first(3);
  CHECK(test.result(uring::read_op(test.context, file.get(), three, 4)) == 3);
  CHECK(text_of(three) == "456");
  CHECK(test.result(uring::read_op(test.context, file.get(), three)) == 3);
  CHECK(test.result(uring::read_op(test.context, file.get(), three)) == 3);
  UNSCOPED_INFO("an offset leaves the descriptor's own where it is; without one it moves");
  CHECK(text_of(three) == "345");
  CHECK(test.result(uring::read_op(test.context, file.get(), test.buffer, 10)) == 0);

  CHECK(test.result(uring::write_op(test.context, file.get(), bytes_of("AB"), 8)) == 2);
  CHECK(test.content("a") == "01234567AB");
  CHECK(test.result(uring::read_op(test.context, -1, test.buffer)) == -EBADF);
  CHECK(test.result(uring::write_op(test.context, test.in(), bytes_of("x"))) == -EBADF);
}

TEST_CASE("07 a file's read and write of 4 GiB are short, not empty") {
  file_fixture test;
  const course_test::large_span large;
  const common::unique_fd file = test.file("a", "0123456789");
  UNSCOPED_INFO("a read of 0 bytes would be taken for the end of the file");
  CHECK(test.result(uring::read_op(test.context, file.get(), large.bytes(), 4)) == 6);
  const common::unique_fd nowhere{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
  UNSCOPED_INFO("and write_all() would go on forever if a write took nothing");
  CHECK(test.result(uring::write_op(test.context, nowhere.get(), large.bytes())) > 0);
}

TEST_CASE("07 readv and writev take several buffers in one operation") {
  file_fixture test;
  const common::unique_fd file = test.file("a", "");
  std::string one = "one";
  std::string two = "two";
  const std::array<::iovec, 2> out{uring::to_iovec(std::as_writable_bytes(std::span{one})),
                                   uring::to_iovec(std::as_writable_bytes(std::span{two}))};
  CHECK(test.result(uring::writev_op(test.context, file.get(), out, 0)) == 6);
  CHECK(test.content("a") == "onetwo");
  const std::array<::iovec, 2> in{uring::to_iovec(std::span{test.buffer}.subspan(100, 2)),
                                  uring::to_iovec(std::span{test.buffer}.first(10))};
  CHECK(test.result(uring::readv_op(test.context, file.get(), in, 0)) == 6);
  CHECK(text_of(std::span{test.buffer}.subspan(100, 2)) == "on");
  CHECK(text_of(std::span{test.buffer}.first(4)) == "etwo");
  CHECK(test.result(uring::readv_op(test.context, -1, in, 0)) == -EBADF);
  CHECK(test.result(uring::writev_op(test.context, -1, out, 0)) == -EBADF);
}

TEST_CASE("07 read_fixed and write_fixed use the registered buffers, each by its index") {
  file_fixture test;
  const common::unique_fd file = test.file("a", "0123456789");
  std::array<std::byte, 8> other{};
  const std::array<std::span<std::byte>, 2> both{test.buffer, other};
  uring::fixed_buffer kept{};
  {
    const uring::registered_buffers registered{test.context, both};
    REQUIRE(registered.size() == 2);
    CHECK(registered[0].bytes.data() == test.buffer.data());
    CHECK(registered[1].bytes.size() == other.size());
    kept = registered[0];
    const uring::fixed_buffer part{.bytes = registered[0].bytes.subspan(16, 4), .index = 0};
    CHECK(test.result(uring::read_fixed_op(test.context, file.get(), part, 2)) == 4);
    CHECK(text_of(part.bytes) == "2345");
    CHECK(test.result(uring::read_fixed_op(test.context, file.get(), registered[1], 0)) == 8);
    CHECK(text_of(other) == "01234567");
    CHECK(test.result(uring::write_fixed_op(test.context, file.get(), part, 0)) == 4);
    CHECK(test.content("a") == "2345456789");

    UNSCOPED_INFO("the bytes of one buffer under the other's index are refused");
    const uring::fixed_buffer mixed_up{.bytes = registered[1].bytes, .index = 0};
    CHECK(test.result(uring::read_fixed_op(test.context, file.get(), mixed_up, 0)) == -EFAULT);
    std::array<std::byte, 4> elsewhere{};
    UNSCOPED_INFO("memory that is not registered is refused");
    const uring::fixed_buffer unknown{.bytes = elsewhere, .index = 0};
    CHECK(test.result(uring::read_fixed_op(test.context, file.get(), unknown, 0)) == -EFAULT);
    CHECK_THROWS_WITH((uring::registered_buffers{test.context, both}), ContainsSubstring("EBUSY"));
  }
  UNSCOPED_INFO("without a registration there is no entry 0");
  CHECK(test.result(uring::write_fixed_op(test.context, file.get(), kept, 0)) == -EFAULT);
  const uring::registered_buffers again{test.context, both};
}

TEST_CASE("07 openat makes a descriptor, and close gives it back") {
  file_fixture test;
  const int fd =
      test.result(uring::openat_op(test.context, test.in(), "new", O_CREAT | O_WRONLY, 0640));
  REQUIRE(fd >= 0);
  CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(test.result(uring::close_op(test.context, fd)) == 0);
  CHECK(test.result(uring::close_op(test.context, fd)) == -EBADF);
  CHECK(fs::exists(test.folder + "/new"));
  CHECK(test.result(uring::openat_op(test.context, test.in(), "none", O_RDONLY)) == -ENOENT);
}

TEST_CASE("07 fsync and sync_file_range bring a file to the disk") {
  file_fixture test;
  const common::unique_fd file = test.file("a", "content");
  CHECK(test.result(uring::fsync_op(test.context, file.get())) == 0);
  CHECK(test.result(uring::fsync_op(test.context, file.get(), IORING_FSYNC_DATASYNC)) == 0);
  CHECK(test.result(uring::fsync_op(test.context, -1)) == -EBADF);
  const int flags = SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  CHECK(test.result(uring::sync_file_range_op(test.context, file.get(), 0, 0, flags)) == 0);
  const pipe_ends pipe = make_pipe();
  CHECK(test.result(uring::sync_file_range_op(test.context, pipe.write.get(), 0, 0, flags)) ==
        -ESPIPE);
}

TEST_CASE("07 splice moves bytes through a pipe, and tee leaves them there") {
  file_fixture test;
  const common::unique_fd file = test.file("a", "0123456789");
  const pipe_ends first = make_pipe();
  const pipe_ends second = make_pipe();
  CHECK(test.result(uring::splice_op(test.context, file.get(), 2, first.write.get(), -1, 5)) == 5);
  CHECK(test.result(uring::tee_op(test.context, first.read.get(), second.write.get(), 5)) == 5);
  for (const int end : {first.read.get(), second.read.get()}) {
    CHECK(test.result(uring::read_op(test.context, end, test.buffer)) == 5);
    CHECK(text_of(std::span{test.buffer}.first(5)) == "23456");
  }
  const common::unique_fd other = test.file("b", "");
  UNSCOPED_INFO("neither of the two is a pipe");
  CHECK(test.result(uring::splice_op(test.context, file.get(), 0, other.get(), 0, 5)) == -EINVAL);
  CHECK(test.result(uring::tee_op(test.context, file.get(), first.write.get(), 5)) == -EINVAL);
}

TEST_CASE("07 statx fills in the fields that are asked for") {
  file_fixture test;
  const common::unique_fd file = test.file("a", "0123456789");
  struct ::statx status{};
  CHECK(test.result(uring::statx_op(test.context, test.in(), "a", 0, STATX_SIZE, status)) == 0);
  CHECK(status.stx_size == 10);
  CHECK(test.result(uring::statx_op(test.context, test.in(), "none", 0, STATX_SIZE, status)) ==
        -ENOENT);
}

TEST_CASE("07 names are made, linked, moved and removed") {
  file_fixture test;
  const int in = test.in();
  (void)test.file("a", "content");
  CHECK(test.result(uring::mkdirat_op(test.context, in, "sub", 0750)) == 0);
  CHECK(test.result(uring::mkdirat_op(test.context, in, "sub", 0750)) == -EEXIST);
  CHECK(test.result(uring::linkat_op(test.context, in, "a", in, "sub/hard")) == 0);
  CHECK(test.result(uring::linkat_op(test.context, in, "none", in, "x")) == -ENOENT);
  CHECK(test.result(uring::symlinkat_op(test.context, "a", in, "soft")) == 0);
  CHECK(test.result(uring::symlinkat_op(test.context, "a", in, "soft")) == -EEXIST);
  CHECK(test.content("sub/hard") == "content");
  CHECK(test.content("soft") == "content");

  CHECK(test.result(uring::renameat_op(test.context, in, "a", in, "b")) == 0);
  CHECK(test.result(uring::renameat_op(test.context, in, "a", in, "c")) == -ENOENT);
  CHECK(test.content("b") == "content");
  UNSCOPED_INFO("RENAME_NOREPLACE, as every flag, goes on to the kernel");
  CHECK(test.result(uring::renameat_op(test.context, in, "b", in, "soft", 1)) == -EEXIST);

  CHECK(test.result(uring::unlinkat_op(test.context, in, "soft")) == 0);
  CHECK(test.result(uring::unlinkat_op(test.context, in, "soft")) == -ENOENT);
  CHECK(test.result(uring::unlinkat_op(test.context, in, "sub", AT_REMOVEDIR)) == -ENOTEMPTY);
  CHECK(test.result(uring::unlinkat_op(test.context, in, "sub/hard")) == 0);
  CHECK(test.result(uring::unlinkat_op(test.context, in, "sub", AT_REMOVEDIR)) == 0);
  CHECK_FALSE(fs::exists(test.folder + "/sub"));
}

TEST_CASE("07 a result is a count, or an error that can be thrown") {
  CHECK(io_result{0}.or_throw("read") == 0);
  CHECK(io_result{17}.or_throw("read") == 17);
  CHECK(io_result{17}.error() == 0);
  CHECK_FALSE(static_cast<bool>(io_result{-ENOENT}));
  CHECK(io_result{-ENOENT}.error() == ENOENT);
  CHECK_THROWS_WITH(io_result{-ENOENT}.or_throw("open x"),
                    "open x: ENOENT (No such file or directory)");
  for (const int error : {EINTR, EAGAIN}) CHECK(io_result{-error}.is_passing());
  for (const int res : {0, 1, -ECANCELED, -ECONNRESET, -ETIME}) {
    CHECK_FALSE(io_result{res}.is_passing());
  }
}
