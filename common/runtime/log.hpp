// SPDX-License-Identifier: MIT
// One line on stderr, whole even when many threads write.
// Threads  any.
// Errors   none: a log that cannot be written is dropped.
// Rule     log once that something has ended or was refused. Never log an error and then go on as
//          if there were none.
#pragma once

#include <string_view>

namespace common {

void log(std::string_view message);

}  // namespace common
