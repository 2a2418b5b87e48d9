// SPDX-License-Identifier: MIT
// 04-probe: asks this kernel what its io_uring supports, and prints the answer.
//
//   ./course run 04:probe
#include "probe.hpp"

#include <iostream>
#include <string>

#include "opcode_names.hpp"
#include "program_main.hpp"
#include "ring_memory.hpp"

namespace {

// Prints a title and names, as many on a line as fit.
class paragraph {
 public:
  explicit paragraph(std::string title) : line_{std::move(title)} {}
  paragraph(paragraph&&) = delete;
  ~paragraph() { std::cout << line_ << '\n'; }

  void add(const std::string& name) {
    constexpr std::size_t columns = 78;
    if (line_.size() + 1 + name.size() > columns) {
      std::cout << line_ << '\n';
      line_ = " ";
    }
    line_ += ' ' + name;
  }

 private:
  std::string line_;
};

void show_ring(const ::io_uring_params& params) {
  std::cout << "asked for 5 entries: got " << params.sq_entries << " SQEs and " << params.cq_entries
            << " CQEs\n";
  paragraph features{"features:"};
  for (unsigned bit = 0; bit < 32; ++bit) {
    if ((params.features >> bit & 1U) != 0) features.add(uring::feature_name(bit));
  }
}

void show_operations(const uring::probe_answer& answer) {
  paragraph known{"operations:"};
  for (unsigned opcode = 0; opcode < uring::probe_answer::opcodes_max; ++opcode) {
    if (uring::knows(answer, opcode)) known.add(uring::opcode_name(opcode));
  }
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 04: the features and operations of this kernel's io_uring."};
  return common::program_main(argc, argv, flags, [] {
    const uring::ring_memory memory{5};
    show_ring(memory.params());
    show_operations(uring::ask(memory.view().fd));
  });
}
