// SPDX-License-Identifier: MIT
// Task 05.1: what a completion says about itself, and which tenant it finds.

#include "slot_table.hpp"

#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <string>
#include <vector>

using uring::operation;
using uring::pack;
using uring::slot_id;
using uring::tag;
using uring::unpack;

namespace {

struct tenant {
  std::string name;
};

std::unique_ptr<tenant> make_tenant(std::string name) {
  return std::make_unique<tenant>(tenant{std::move(name)});
}

std::string in_words(const tag& t) {
  return "operation " + std::to_string(static_cast<int>(t.what)) + ", index " +
         std::to_string(t.whose.index) + ", generation " + std::to_string(t.whose.generation);
}

std::vector<tag> tags_at_the_edges() {
  std::vector<tag> tags;
  for (const operation what : {operation::accept, operation::send, operation::cancel}) {
    for (const std::uint32_t index : {0U, 1U, 0x800000U, slot_id::index_max}) {
      for (const std::uint32_t generation : {0U, 1U, 0x7fffffffU, 0x80000000U, 0xffffffffU}) {
        tags.push_back({what, {index, generation}});
      }
    }
  }
  return tags;
}

}  // namespace

TEST_CASE("05.1 a tag comes back out of its user_data", "[05.1]") {
  for (const tag& each : tags_at_the_edges()) {
    UNSCOPED_INFO(
        "a part spilled into its neighbor (widen to 64 bits before you shift, and cut), or it was "
        "cut too short: the index has 24 bits, the generation all 32");
    CHECK(in_words(unpack(pack(each))) == in_words(each));
  }
}

TEST_CASE("05.1 the parts of user_data stand where the comment says", "[05.1]") {
  UNSCOPED_INFO("from the top: 8 bits of operation, 24 bits of index, 32 bits of generation");
  CHECK(pack({operation::send, {0x030405, 0x06070809}}) == 0x02030405'06070809);
}

TEST_CASE("05.1 the id that insert gave finds its tenant", "[05.1]") {
  uring::slot_table<tenant> table;
  const slot_id ada = table.insert(make_tenant("Ada"));
  const slot_id bob = table.insert(make_tenant("Bob"));
  REQUIRE(table.find(ada) != nullptr);
  REQUIRE(table.find(bob) != nullptr);
  CHECK(table.find(ada)->name == "Ada");
  CHECK(table.find(bob)->name == "Bob");

  table.erase(ada);
  UNSCOPED_INFO(
      "Ada has left, and the last slot is still Bob's: size() counts tenants, and an index may be "
      "larger than that. Compare it with slots_.size()");
  CHECK(table.find(bob) != nullptr);
}

TEST_CASE("05.1 an old id does not find the next tenant of its slot", "[05.1]") {
  uring::slot_table<tenant> table;
  const slot_id ada = table.insert(make_tenant("Ada"));
  table.erase(ada);
  UNSCOPED_INFO("the slot is empty");
  CHECK(table.find(ada) == nullptr);

  const slot_id bob = table.insert(make_tenant("Bob"));
  REQUIRE(bob.index == ada.index);
  UNSCOPED_INFO("Bob has Ada's slot now, but another generation: compare it, too");
  CHECK(table.find(ada) == nullptr);
  REQUIRE(table.find(bob) != nullptr);
  CHECK(table.find(bob)->name == "Bob");
}

TEST_CASE("05.1 an id that was never given out finds nobody", "[05.1]") {
  uring::slot_table<tenant> table;
  UNSCOPED_INFO("an index beyond the table: compare it with slots_.size() before you use it");
  CHECK(table.find({0, 0}) == nullptr);
  (void)table.insert(make_tenant("Ada"));
  UNSCOPED_INFO("an index one past the last: compare it with slots_.size() before you use it");
  CHECK(table.find({1, 0}) == nullptr);
  CHECK(table.find({slot_id::index_max, 0}) == nullptr);
  UNSCOPED_INFO(
      "a generation that the slot has not reached yet: an id is known by equality, so find() asks "
      "whether the generations are the same, not which is older");
  CHECK(table.find({0, 1}) == nullptr);
}
