// SPDX-License-Identifier: MIT
// One line on stderr, whole even when many threads write.
// Threads  any.
// Errors   none: a log that cannot be written is dropped.
// Rule     log what ended or was refused, once an episode; never log and carry on as if it worked.
#pragma once

#include <string_view>

namespace common {

void log(std::string_view message);

}  // namespace common
