// SPDX-License-Identifier: MIT
// 14-installed: nginx or h2o, if it is installed, with one worker, on the same files, and set up to
// do well. This process becomes that server, so that its CPU time is the server's. A child prints
// the first line that every server of the course prints, as soon as a server listens on the port.
//
//   ./course run 14:installed -- nginx --port 8080 --root site
#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "errors.hpp"
#include "flags.hpp"
#include "listen.hpp"
#include "program_main.hpp"
#include "unique_fd.hpp"

namespace {

namespace files = std::filesystem;

struct place {
  std::string address;  // 127.0.0.1:8080
  files::path root;
  files::path own;  // a folder for its settings, and for what it writes beside them
};

std::string settings_of_nginx(const place& at) {
  std::ostringstream text;
  text << "daemon off; master_process off; error_log stderr crit;\n"
       << "pid " << at.own / "nginx.pid" << ";\n"
       << "events { worker_connections 20000; }\n"
       << "http {\n"
       << "  access_log off; sendfile on; keepalive_requests 1000000000;\n"
       << "  open_file_cache max=1000; open_file_cache_valid 1s;\n"
       << "  types { text/html html; text/plain txt; text/css css; }\n";
  for (const char* const kind : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"}) {
    text << "  " << kind << "_temp_path " << at.own / kind << ";\n";
  }
  text << "  server { listen " << at.address << "; root " << at.root << "; }\n}\n";
  return text.str();
}

std::string settings_of_h2o(const place& at) {
  const std::size_t colon = at.address.rfind(':');
  const ::passwd* const user = ::getpwuid(::getuid());
  std::ostringstream text;
  text << "num-threads: 1\nmax-connections: 20000\n";
  if (user != nullptr) text << "user: " << user->pw_name << "\n";
  text << "listen: {host: " << at.address.substr(0, colon)
       << ", port: " << at.address.substr(colon + 1) << "}\n"
       << "hosts: {default: {paths: {/: {file.dir: " << at.root << "}}}}\n";
  return text.str();
}

// The program's whole path. Many users do not have /usr/sbin in their PATH.
files::path find_program(const std::string& name) {
  const char* const said = std::getenv("PATH");
  std::istringstream folders{std::string{said == nullptr ? "" : said} + ":/usr/sbin"};
  for (std::string folder; std::getline(folders, folder, ':');) {
    const files::path file = files::path{folder} / name;
    if (::access(file.c_str(), X_OK) == 0 && files::is_regular_file(file)) return file;
  }
  throw std::runtime_error{name + " is not installed, so it is left out (Debian and Ubuntu: apt " +
                           "install " + name + ")"};
}

// Whether a server listens at this address.
bool is_up(const ::sockaddr_in& at) {
  const common::unique_fd probe{
      common::check(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")};
  return ::connect(probe.get(), reinterpret_cast<const ::sockaddr*>(&at), sizeof at) == 0;
}

// Runs in a process that no other waits for. It gives up when the server has had enough time.
void announce_when_up(const place& at, const ::sockaddr_in& address) {
  constexpr int tries_max = 1000;
  constexpr std::chrono::milliseconds pause_ms{10};
  const ::pid_t child = common::check(::fork(), "fork");
  if (child != 0) {
    (void)::waitpid(child, nullptr, 0);
    return;
  }
  if (::fork() != 0) ::_exit(0);
  int tries = 0;
  while (!is_up(address)) {
    if (++tries == tries_max) ::_exit(1);
    std::this_thread::sleep_for(pause_ms);
  }
  const std::string line = "listening on " + at.address + "\n";
  ::_exit(::write(STDOUT_FILENO, line.data(), line.size()) == -1 ? 1 : 0);
}

// Does not return.
void become(const std::string& name, const place& at, const ::sockaddr_in& address) {
  const files::path program = find_program(name);
  files::create_directories(at.own);
  const files::path file = at.own / "settings";
  std::ofstream{file} << (name == "nginx" ? settings_of_nginx(at) : settings_of_h2o(at));
  std::vector<std::string> words{name, "-c", file.string()};
  if (name == "nginx") words.insert(words.end(), {"-p", at.own.string(), "-e", "stderr"});
  std::vector<char*> all;
  all.reserve(words.size() + 1);
  for (std::string& each : words) all.push_back(each.data());
  all.push_back(nullptr);
  announce_when_up(at, address);
  ::execv(program.c_str(), all.data());
  common::throw_errno("exec " + program.string());
}

// A port that is free now, or the one that was asked for.
::sockaddr_in address_of(const common::server_flags& server) {
  const common::unique_fd probe = common::listen_on(server.host, server.port);
  ::sockaddr_in address{};
  ::socklen_t bytes = sizeof address;
  common::check(::getsockname(probe.get(), reinterpret_cast<::sockaddr*>(&address), &bytes),
                "getsockname");
  return address;
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 14: a server that is installed here, set up for the same files."};
  std::string name;
  std::string root = ".";
  common::server_flags server;
  flags.add_argument("SERVER", name, "nginx or h2o");
  flags.add("--root", root, "The folder that is served");
  common::add_server_flags(flags, server, {.threads_max = 1});
  return common::program_main(argc, argv, flags, [&] {
    if (name != "nginx" && name != "h2o") throw std::invalid_argument{"takes nginx or h2o"};
    const ::sockaddr_in address = address_of(server);
    const files::path beside = files::read_symlink("/proc/self/exe").parent_path();
    become(name,
           {.address = server.host + ":" + std::to_string(ntohs(address.sin_port)),
            .root = files::absolute(root),
            .own = beside / ("installed-" + name)},
           address);
  });
}
