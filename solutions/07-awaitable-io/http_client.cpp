// SPDX-License-Identifier: MIT
// 07-http_client: asks a server for one path, and writes the body to standard output or to a file.
//
//   ./course run 07:http_client -- localhost / --port 8000
//   ./course run 07:http_client -- localhost /index.html --port 8000 --out index.html
#include <cstdint>
#include <string>

#include "download.hpp"
#include "http_get.hpp"
#include "io_context.hpp"
#include "program_main.hpp"

int main(int argc, char** argv) {
  uring::http::get_request request;
  std::string file;
  common::flag_set flags{"Chapter 07: one GET over HTTP/1.1."};
  flags.add_argument("HOST", request.host, "Name or address of the server");
  flags.add_argument("PATH", request.path, "What to ask for, such as /index.html");
  flags.add("--port", request.port, "Port of the server");
  flags.add("--out", file, "File for the body, complete or not at all; else standard output");
  return common::program_main(argc, argv, flags, [&] {
    uring::io_context context;
    uring::download into{context, file};
    context.run(uring::http::get(context, request, into));
  });
}
