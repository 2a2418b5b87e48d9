// SPDX-License-Identifier: MIT
// How a failed CHECK prints the chapter's results: by their names.
#pragma once

#include <catch2/catch_tostring.hpp>
#include <string>

#include "echo.hpp"

template <>
struct Catch::StringMaker<blocking::sent> {
  static std::string convert(blocking::sent value) {
    return value == blocking::sent::all ? "sent::all" : "sent::failed";
  }
};

template <>
struct Catch::StringMaker<blocking::ending> {
  static std::string convert(blocking::ending value) {
    return value == blocking::ending::peer_finished ? "ending::peer_finished" : "ending::peer_gone";
  }
};
