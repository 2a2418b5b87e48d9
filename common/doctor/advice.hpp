// SPDX-License-Identifier: MIT
// Turns the errno of a feature's try into its cause on this machine, and says what to do about it.
// Rule     advise() reads nothing but its arguments, so a test can describe any machine.
// See      common/runtime/ring_advice.hpp, which knows why a ring is refused
#pragma once

#include <string_view>

#include "ring_advice.hpp"

namespace doctor {

using common::advice;
using common::machine;
using common::read_machine;

// `error` is the positive errno of a failed try, or 0 if the kernel did something else than it
// documents; `since` is feature::since.
[[nodiscard]] advice advise(int error, std::string_view since, const machine& here);

}  // namespace doctor
