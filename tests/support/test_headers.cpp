// SPDX-License-Identifier: MIT
// Nothing: test-headers exists for its precompiled header, and CMake wants a source beside it.
