// SPDX-License-Identifier: MIT
// 13-parse: prints what your parser says about the requests in a file, cut into pieces of any size.
//
//   printf 'GET / HTTP/1.1\r\nHost: a\r\n\r\n' | ./course run 13:parse -- - --split 1
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "parse_transcript.hpp"
#include "program_main.hpp"

namespace {

constexpr std::int64_t split_max = 1'000'000'000;

std::string read_all(const std::string& name) {
  std::ifstream file;
  if (name != "-") file.open(name, std::ios::binary);
  if (!file) throw std::runtime_error{name + " cannot be opened: does it exist?"};
  std::istream& from = name == "-" ? std::cin : file;
  return {std::istreambuf_iterator<char>{from}, {}};
}

}  // namespace

int main(int argc, char** argv) {
  std::string file;
  std::int64_t split = split_max;
  common::flag_set flags{"Chapter 13: what the parser says of the requests in a file."};
  flags.add_argument("FILE", file, "The bytes that a client sent; - for standard input");
  flags.add("--split", split, 1, split_max, "Give them to the parser in pieces of so many bytes");
  return common::program_main(argc, argv, flags, [&] {
    const std::string bytes = read_all(file);
    std::cout << uring::http::transcript_of(bytes, static_cast<std::size_t>(split));
  });
}
