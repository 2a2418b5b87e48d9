// SPDX-License-Identifier: MIT
// 14-look: prints what each path of a root is, and the status with which it would be answered.
//
//   ./course run 14:look -- docs / /index.md /../README.md
#include <cstdio>
#include <string>
#include <vector>

#include "flags.hpp"
#include "mime_types.hpp"
#include "plain_path.hpp"
#include "program_main.hpp"
#include "site_root.hpp"

namespace {

using namespace uring::http;

void look_at(const site_root& root, const std::string& path) {
  std::string room(path.size() + 1, '\0');
  const plain_path plain = make_plain(path, room);
  if (plain.refused) {
    const std::string why{plain.refused.why};
    std::printf("%d  %s: %s\n", plain.refused.status, path.c_str(), why.c_str());
    return;
  }
  const std::string name = name_in_root(plain.path);
  const found_file found = root.find(name);
  std::printf("%d  %s", status_at(plain.path, found), path.c_str());
  if (found.status == 200) {
    const std::string type{type_of(name)};
    std::printf(": %llu bytes of %s", static_cast<unsigned long long>(found.facts.bytes),
                type.c_str());
  }
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  common::flag_set flags{"Chapter 14: what is at a path, and how it would be answered."};
  std::string folder;
  std::vector<std::string> paths;
  flags.add_argument("ROOT", folder, "The folder that is served");
  flags.add_argument("PATH", paths, "As in a request: it begins with a slash");
  return common::program_main(argc, argv, flags, [&] {
    const site_root root{folder};
    for (const std::string& path : paths) look_at(root, path);
  });
}
