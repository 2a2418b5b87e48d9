// SPDX-License-Identifier: MIT
// What the doctor says about an errno, on machines of every kind.
#include "advice.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <string>

using common::advice;
using common::machine;
using common::place;
using common::seccomp;
using common::sysctl;

namespace {

machine plain() {
  machine here;
  here.kernel_release = "6.18.1-generic";
  here.filter = seccomp::off;
  here.io_uring_disabled = sysctl::open;
  return here;
}

struct row {
  const char* situation;
  int error;
  const char* since;
  machine here;
  const char* cause_holds;
  const char* fix_holds;
};

// A plain machine with one thing changed.
template <typename Change>
machine but(Change change) {
  machine here = plain();
  change(here);
  return here;
}

const row table[] = {
    {"switched off for all", EPERM, "5.1",
     but([](machine& m) { m.io_uring_disabled = sysctl::closed; }), "kernel.io_uring_disabled is 2",
     "sudo sysctl kernel.io_uring_disabled=0"},
    {"switched off for all, and filtered as well", EPERM, "5.1", but([](machine& m) {
       m.io_uring_disabled = sysctl::closed;
       m.filter = seccomp::filtered;
     }),
     "kernel.io_uring_disabled is 2", "sudo sysctl"},
    {"switched off, seen from a container", EPERM, "5.1", but([](machine& m) {
       m.io_uring_disabled = sysctl::closed;
       m.where = place::docker;
     }),
     "kernel.io_uring_disabled is 2", "on the host of this container: sudo sysctl"},
    {"for root only, and we are not", EPERM, "5.1",
     but([](machine& m) { m.io_uring_disabled = sysctl::privileged_only; }),
     "kernel.io_uring_disabled is 1", "kernel.io_uring_group=$(id -g)"},
    {"for root only, and we are", EPERM, "5.1", but([](machine& m) {
       m.io_uring_disabled = sysctl::privileged_only;
       m.exempt = true;
       m.filter = seccomp::filtered;
     }),
     "seccomp", "outside the sandbox"},
    {"docker's profile", EPERM, "5.1", but([](machine& m) {
       m.filter = seccomp::filtered;
       m.where = place::docker;
     }),
     "seccomp", "docker run --security-opt seccomp=unconfined"},
    {"podman's profile, which answers ENOSYS", ENOSYS, "5.1", but([](machine& m) {
       m.filter = seccomp::filtered;
       m.where = place::podman;
     }),
     "seccomp", "podman run --security-opt seccomp=unconfined"},
    {"a pod", EPERM, "5.1", but([](machine& m) {
       m.filter = seccomp::filtered;
       m.where = place::kubernetes;
     }),
     "seccomp", "seccompProfile"},
    {"EPERM without a visible cause", EPERM, "5.1", plain(), "security module", "dmesg"},
    {"a kernel without io_uring", ENOSYS, "5.1",
     but([](machine& m) { m.kernel_release = "4.19.0-generic"; }),
     "4.19.0-generic, has no io_uring", "boot Linux 6.1"},
    {"WSL 1", ENOSYS, "5.1", but([](machine& m) {
       m.kernel_release = "4.4.0-19041-Microsoft";
       m.where = place::wsl1;
     }),
     "has no io_uring", "wsl --set-version"},
    {"an old WSL 2", EINVAL, "6.0", but([](machine& m) {
       m.kernel_release = "5.15.90-microsoft-standard-WSL2";
       m.where = place::wsl2;
     }),
     "Linux has it from 6.0 on, and this is 5.15.90", "wsl --update"},
    {"little locked memory", ENOMEM, "5.1", but([](machine& m) { m.memlock_bytes = 64 * 1024; }),
     "64 KiB of locked memory", "ulimit -l unlimited"},
    {"little locked memory in a container", ENOMEM, "5.1", but([](machine& m) {
       m.memlock_bytes = 64 * 1024;
       m.where = place::docker;
     }),
     "64 KiB of locked memory", "--ulimit memlock=-1"},
    {"no memory at all", ENOMEM, "5.1", plain(), "out of memory", "memory limit"},
    {"an older kernel", EINVAL, "6.12",
     but([](machine& m) { m.kernel_release = "6.1.0-18-amd64"; }),
     "Linux has it from 6.12 on, and this is 6.1.0-18-amd64", "boot Linux 6.12 or newer"},
    {"an older kernel that takes the call and ignores the flag", 0, "6.12",
     but([](machine& m) { m.kernel_release = "6.1.0-18-amd64"; }), "Linux has it from 6.12 on",
     "boot Linux 6.12 or newer"},
    {"a feature whose version the course does not state", EINVAL, "",
     but([](machine& m) { m.kernel_release = "5.4.0"; }), "Linux has it from 6.1 on",
     "boot Linux 6.1 or newer"},
    {"a new kernel without it", EINVAL, "6.12", plain(),
     "but this kernel, 6.18.1-generic, does not", "./course doctor"},
    {"a new kernel, filtered", EINVAL, "6.12",
     but([](machine& m) { m.filter = seccomp::filtered; }), "seccomp", "outside the sandbox"},
    {"no loopback", ENETUNREACH, "5.19", plain(), "127.0.0.1", "ip link set lo up"},
    {"no descriptors", EMFILE, "5.1", plain(), "open no more files", "ulimit -n"},
    {"no answer", ETIMEDOUT, "5.7", plain(), "did not complete it in time", "./course doctor"},
};

}  // namespace

TEST_CASE("an errno becomes its cause on this machine, and a command against it", "[advice]") {
  for (const row& each : table) {
    const advice told = doctor::advise(each.error, each.since, each.here);
    UNSCOPED_INFO(each.situation << "\n  cause: " << told.cause);
    CHECK(told.cause.find(each.cause_holds) != std::string::npos);
    UNSCOPED_INFO(each.situation << "\n  fix: " << told.fix);
    CHECK(told.fix.find(each.fix_holds) != std::string::npos);
  }
}

TEST_CASE("this machine is described as its files describe it", "[advice]") {
  const machine here = common::read_machine();
  CHECK_FALSE(here.kernel_release.empty());
  CHECK(here.filter != seccomp::unknown);
}
