// SPDX-License-Identifier: MIT
// Task 04.2: which operations the kernel supports, and how it refuses a probe.
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <exception>
#include <string>
#include <system_error>
#include <thread>

#include "child_process.hpp"
#include "feature_probe.hpp"
#include "live_ring.hpp"
#include "probe.hpp"
#include "refuse_calls.hpp"

using uring::probe_answer;

namespace {

probe_answer ask_kernel(int ring_fd) {
  probe_answer answer;
  UNSCOPED_INFO(
      "with EINVAL the kernel refuses the question: the count is a number of entries, opcodes_max, "
      "and not of bytes");
  REQUIRE_NOTHROW(answer = uring::ask(ring_fd));
  return answer;
}

}  // namespace

TEST_CASE("04.2 the kernel supports NOP and READV, and no operation 255", "[04.2]") {
  course_test::require_feature("raw_ring");
  const uring::ring_memory memory{4};
  const probe_answer answer = ask_kernel(memory.view().fd);
  CHECK(uring::knows(answer, IORING_OP_NOP));
  CHECK(uring::knows(answer, IORING_OP_READV));
  CHECK_FALSE(uring::knows(answer, 255));
}

TEST_CASE("04.2 all opcodes are asked for, not a few", "[04.2]") {
  course_test::require_feature("raw_ring");
  const uring::ring_memory memory{4};
  const probe_answer answer = ask_kernel(memory.view().fd);
  UNSCOPED_INFO(
      "the count is the room in the answer, not the header's number of operations: the kernel "
      "fills in no more than that");
  CHECK(unsigned{answer.get().ops_len} > unsigned{answer.get().last_op});
  UNSCOPED_INFO(
      "SEND_ZC came with Linux 6.0, which is older than the kernel that this course asks for");
  CHECK(uring::knows(answer, IORING_OP_SEND_ZC));
}

TEST_CASE("04.2 the kernel can be asked a second time", "[04.2]") {
  course_test::require_feature("raw_ring");
  const uring::ring_memory memory{4};
  (void)ask_kernel(memory.view().fd);
  probe_answer second;
  UNSCOPED_INFO(
      "asked again, the kernel said no: it takes only an answer that is all zeros, so each call of "
      "ask() needs a new one");
  REQUIRE_NOTHROW(second = uring::ask(memory.view().fd));
  CHECK(uring::knows(second, IORING_OP_NOP));
}

TEST_CASE("04.2 an operation is known only if it is marked as supported", "[04.2]") {
  probe_answer answer;
  answer.get().last_op = 2;
  answer.get().ops_len = 3;
  answer.get().ops[0] = {.op = 0, .resv = 0, .flags = IO_URING_OP_SUPPORTED, .resv2 = 0};
  answer.get().ops[1] = {.op = 1, .resv = 0, .flags = 0, .resv2 = 0};
  answer.get().ops[2] = {.op = 2, .resv = 0, .flags = IO_URING_OP_SUPPORTED, .resv2 = 0};
  answer.get().ops[3] = {.op = 3, .resv = 0, .flags = IO_URING_OP_SUPPORTED, .resv2 = 0};
  CHECK(uring::knows(answer, 0));
  UNSCOPED_INFO("an opcode below last_op can be left out of a kernel: look at its flags");
  CHECK_FALSE(uring::knows(answer, 1));
  UNSCOPED_INFO(
      "the last entry counts, too: ops_len is a number of entries (here 3), last_op an opcode (2)");
  CHECK(uring::knows(answer, 2));
  UNSCOPED_INFO("the kernel filled in ops_len entries; the entries behind them are not its answer");
  CHECK_FALSE(uring::knows(answer, 3));
  answer.get().ops[0].flags = IO_URING_OP_SUPPORTED | 2;
  UNSCOPED_INFO(
      "the flags have another bit as well: look at one bit with &, do not compare with ==");
  CHECK(uring::knows(answer, 0));
}

TEST_CASE("04.2 a refused question is thrown with its cause", "[04.2]") {
  course_test::require_feature("raw_ring");
  int error = 0;
  std::string sentence;
  std::exception_ptr other;
  std::thread filtered{[&] {
    try {
      const uring::ring_memory memory{4};
      // As before 5.6. Not EPERM: that is 1, and a result of -1 hides who asks for -1 alone.
      course_test::refuse_io_uring_register(IORING_REGISTER_PROBE, EINVAL);
      (void)uring::ask(memory.view().fd);
    } catch (const std::system_error& refusal) {
      error = refusal.code().value();
      sentence = refusal.what();
    } catch (...) {
      other = std::current_exception();
    }
  }};
  filtered.join();
  if (other) std::rethrow_exception(other);
  UNSCOPED_INFO(
      "register_with() returns -errno, here -EINVAL: each negative result is a refusal, not -1 "
      "alone");
  CHECK(error == EINVAL);
  UNSCOPED_INFO("say what was refused: refused{\"io_uring_register PROBE\", result}");
  CHECK(sentence.starts_with("io_uring_register"));
  UNSCOPED_INFO(sentence);
  CHECK(sentence.find("EINVAL") != std::string::npos);
}

TEST_CASE("04.2 the doctor comes to the same answers", "[04.2]") {
  course_test::require_feature("raw_ring");
  const uring::ring_memory memory{4};
  const probe_answer answer = ask_kernel(memory.view().fd);
  struct named {
    const char* feature;
    unsigned opcode;
  };
  for (const named& each :
       {named{"op_accept", IORING_OP_ACCEPT}, named{"op_send", IORING_OP_SEND},
        named{"op_msg_ring", IORING_OP_MSG_RING}, named{"op_sendmsg_zc", IORING_OP_SENDMSG_ZC}}) {
    const doctor::feature* const known = doctor::find_feature(each.feature);
    REQUIRE(known != nullptr);
    UNSCOPED_INFO(each.feature);
    CHECK(uring::knows(answer, each.opcode) == doctor::try_feature(*known).ok);
  }
}

TEST_CASE("04.2 the probe program shows sizes, features and operations", "[04.2]") {
  course_test::require_feature("raw_ring");
  const auto run = course_test::run_program(course_test::program("04-probe"), {});
  CHECK(run.status == course_test::exited(0));
  CHECK(run.stdout_text.starts_with("asked for 5 entries: got 8 SQEs and 16 CQEs\n"));
  CHECK(run.stdout_text.find("features: SINGLE_MMAP NODROP") != std::string::npos);
  CHECK(run.stdout_text.find("operations: NOP READV WRITEV FSYNC") != std::string::npos);
}
