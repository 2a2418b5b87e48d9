// SPDX-License-Identifier: MIT
// Where the taps report what they see: a line of JSON for each event, in the order of all threads.
// Owns     the file that the environment's COURSE_TRACE names. Without it nothing is recorded.
// Threads  any; a mutex orders them.
// Errors   none reach the program that is watched: what cannot be written is lost.
// Rule     a line is written at once, so that a crash leaves everything that went before it. An
//          address becomes a number: of a frame f1, f2, … (one for each lifetime), else a1, a2, …
#pragma once

#include <cstddef>
#include <source_location>

namespace course_trace {

// ---- what observe.hpp notices; `frame` is what coroutine_handle::address() gives ----

void allocates(void* frame, std::size_t bytes) noexcept;
void makes(void* frame, const std::source_location& place) noexcept;
void suspends(void* frame, const std::source_location& place) noexcept;
void jumps(void* from, void* next) noexcept;  // await_suspend has returned a handle
void gives_back(void* frame) noexcept;        // to the code that resumed it
void resumes(void* frame, const void* stack, const std::source_location* place) noexcept;
void throws(void* frame) noexcept;  // an exception has left the body
void ends(void* frame) noexcept;    // the body is over, and the frame still there
void destroys(void* frame) noexcept;

}  // namespace course_trace
