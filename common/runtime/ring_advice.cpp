// SPDX-License-Identifier: MIT
#include "ring_advice.hpp"

#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <vector>

namespace common {
namespace {

std::optional<std::string> first_line(const char* path) {
  std::ifstream file{path};
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

// The value of a "Name:\tvalue" line, such as /proc/thread-self/status has.
std::optional<std::string> status_value(std::string_view name) {
  std::ifstream status{"/proc/thread-self/status"};
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ':') continue;
    const auto start = line.find_first_not_of(" \t", name.size() + 1);
    return start == std::string::npos ? std::string{} : line.substr(start);
  }
  return std::nullopt;
}

place find_place(std::string_view kernel_release) {
  if (kernel_release.find("-microsoft-standard") != std::string_view::npos) return place::wsl2;
  if (kernel_release.find("Microsoft") != std::string_view::npos) return place::wsl1;
  if (::access("/run/.containerenv", F_OK) == 0) return place::podman;
  if (std::getenv("KUBERNETES_SERVICE_HOST") != nullptr) return place::kubernetes;
  if (::access("/.dockerenv", F_OK) == 0) return place::docker;
  // systemd-nspawn, LXC and others say so where systemd asks them to.
  if (std::getenv("container") != nullptr || ::access("/run/systemd/container", F_OK) == 0) {
    return place::other_container;
  }
  return place::bare;
}

seccomp find_filter() {
  const auto mode = status_value("Seccomp");
  if (!mode) return seccomp::unknown;
  return *mode == "0" ? seccomp::off : seccomp::filtered;
}

sysctl find_sysctl() {
  const auto value = first_line("/proc/sys/kernel/io_uring_disabled");
  if (!value) return sysctl::absent;
  return *value == "2" ? sysctl::closed : *value == "1" ? sysctl::privileged_only : sysctl::open;
}

bool has_sys_admin() {
  const auto text = status_value("CapEff").value_or("0");
  std::uint64_t capabilities = 0;
  std::from_chars(text.data(), text.data() + text.size(), capabilities, 16);
  constexpr unsigned cap_sys_admin = 21;  // linux/capability.h
  return (capabilities >> cap_sys_admin & 1) != 0;
}

bool in_io_uring_group() {
  const auto text = first_line("/proc/sys/kernel/io_uring_group").value_or("-1");
  const long wanted = std::strtol(text.c_str(), nullptr, 10);
  if (wanted < 0) return false;
  const int count = std::max(0, ::getgroups(0, nullptr));
  std::vector<::gid_t> groups(static_cast<std::size_t>(count));
  groups.resize(static_cast<std::size_t>(std::max(0, ::getgroups(count, groups.data()))));
  groups.push_back(::getegid());
  return std::ranges::find(groups, static_cast<::gid_t>(wanted)) != groups.end();
}

// A container's sysctl and kernel are its host's, and only the host can change them.
std::string on_host(const machine& here, std::string command) {
  const bool contained = here.where == place::docker || here.where == place::podman ||
                         here.where == place::kubernetes || here.where == place::other_container;
  return contained ? fmt::format("on the host of this container: {}", command) : command;
}

advice about_eperm(const machine& here) {
  if (here.io_uring_disabled == sysctl::closed) {
    return {"kernel.io_uring_disabled is 2: nobody may create a ring on this machine",
            on_host(here, "sudo sysctl kernel.io_uring_disabled=0")};
  }
  if (here.io_uring_disabled == sysctl::privileged_only && !here.exempt) {
    return {"kernel.io_uring_disabled is 1: only root and one group may create a ring",
            on_host(here,
                    "sudo sysctl kernel.io_uring_disabled=0, or let your group in: sudo "
                    "sysctl kernel.io_uring_group=$(id -g)")};
  }
  if (here.filter == seccomp::filtered) {
    return {"a seccomp filter is on this process, and it refuses the call", lift_filter(here)};
  }
  return {"neither seccomp nor kernel.io_uring_disabled forbids it here, so a security module may",
          "see whether SELinux or AppArmor logged a denial: sudo dmesg | tail"};
}

advice about_enosys(const machine& here) {
  if (here.filter == seccomp::filtered) {
    return {"a seccomp filter is on this process, and some (podman's) hide the call in this way",
            lift_filter(here)};
  }
  return {fmt::format("this kernel, {}, has no io_uring: it is older than 5.1 or was built without "
                      "CONFIG_IO_URING",
                      here.kernel_release),
          newer_kernel(here, "6.1")};
}

advice about_enomem(const machine& here) {
  if (here.memlock_bytes == memlock_unlimited) {
    return {
        "the locked-memory limit is unlimited here, so the machine or its container is out of "
        "memory",
        "end what uses the memory, or raise the container's memory limit"};
  }
  const std::string cause = fmt::format(
      "all rings and registered buffers of one user share {} KiB of locked memory (ulimit -l)",
      here.memlock_bytes / 1024);
  if (here.where == place::docker || here.where == place::podman) {
    return {cause, "start the container with --ulimit memlock=-1"};
  }
  return {
      cause,
      "ulimit -l unlimited in this shell; if it refuses, add the line `* - memlock unlimited` to "
      "/etc/security/limits.conf as root and log in again"};
}

}  // namespace

machine read_machine() {
  machine here;
  ::utsname names{};
  if (::uname(&names) == 0) here.kernel_release = names.release;
  here.where = find_place(here.kernel_release);
  here.filter = find_filter();
  here.io_uring_disabled = find_sysctl();
  here.exempt = has_sys_admin() || in_io_uring_group();
  ::rlimit memlock{};
  if (::getrlimit(RLIMIT_MEMLOCK, &memlock) == 0 && memlock.rlim_cur != RLIM_INFINITY) {
    here.memlock_bytes = memlock.rlim_cur;
  }
  return here;
}

std::string lift_filter(const machine& here) {
  switch (here.where) {
    case place::docker:
      return "start the container with `docker run --security-opt seccomp=unconfined …`, or open "
             "the course in its dev container, which does that";
    case place::podman:
      return "start the container with `podman run --security-opt seccomp=unconfined …`";
    case place::kubernetes:
      return "set securityContext.seccompProfile.type: Unconfined in the pod's specification";
    default:
      return "work outside the sandbox that set the filter: in a plain terminal rather than inside "
             "a container, a Flatpak or Snap application, or a service with SystemCallFilter=";
  }
}

std::string newer_kernel(const machine& here, std::string_view wanted) {
  if (here.where == place::wsl1) {
    return "use WSL 2: in PowerShell, `wsl --set-version <distribution> 2`";
  }
  if (here.where == place::wsl2) {
    return "in PowerShell: `wsl --update`, then `wsl --shutdown`";
  }
  return on_host(here,
                 fmt::format("boot Linux {} or newer, or use a virtual machine that does", wanted));
}

std::optional<advice> advise_on_ring(int error, const machine& here) {
  switch (error) {
    case EPERM:
      return about_eperm(here);
    case ENOSYS:
      return about_enosys(here);
    case ENOMEM:
      return about_enomem(here);
    case EACCES:
      return advice{"a security module forbids it",
                    "see what SELinux or AppArmor logged: sudo dmesg | tail"};
    case EMFILE:
      return advice{"this process may open no more files", "ulimit -n 20000"};
    case ENFILE:
      return advice{"this machine may open no more files", "sudo sysctl fs.file-max=1000000"};
    default:
      return std::nullopt;
  }
}

}  // namespace common
