// SPDX-License-Identifier: MIT
// This file is empty: program-headers exists for its precompiled header, and CMake wants a source.
