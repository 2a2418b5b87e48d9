// SPDX-License-Identifier: MIT
// loadgen: drives an echo or HTTP server with a closed loop of clients.
//
//   loadgen echo --port 9000 --conns 50 --size 128 --requests 100000
#include "program.hpp"

int main(int argc, char** argv) {
  return loadgen::run_program(argc, argv);
}
