// SPDX-License-Identifier: MIT
#include "connection.hpp"

#include <catch2/catch_test_macros.hpp>
