// SPDX-License-Identifier: MIT
// This file is empty: test-headers exists for its precompiled header, and CMake wants a source.
