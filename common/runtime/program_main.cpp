// SPDX-License-Identifier: MIT
#include "program_main.hpp"

#include <signal.h>

#include <exception>
#include <new>

#include "log.hpp"

namespace common {

int program_main(int argc, char** argv, flag_set& flags, const std::function<void()>& work) {
  if (const auto exit_code = flags.parse(argc, argv)) return *exit_code;
  ::signal(SIGPIPE, SIG_IGN);
  try {
    work();
  } catch (const std::bad_alloc&) {
    log("there is not enough memory for what the flags ask for");
    return 1;
  } catch (const std::exception& error) {
    log(error.what());
    return 1;
  }
  return 0;
}

void add_server_flags(flag_set& flags, server_flags& values, const server_limits& limits) {
  flags.add("--host", values.host, "Address to listen on");
  flags.add("--port", values.port, "Port to listen on; 0 lets the kernel choose");
  flags.add("--threads", values.threads, 1, limits.threads_max, "Threads that run a loop");
}

int server_main(int argc, char** argv, flag_set& flags, const server_limits& limits,
                const std::function<void(const server_flags&, const stop_signal&)>& serve) {
  server_flags values;
  add_server_flags(flags, values, limits);
  return program_main(argc, argv, flags, [&] {
    const stop_signal stop;
    serve(values, stop);
  });
}

}  // namespace common
