// SPDX-License-Identifier: MIT
// The coroutine tap: watches every coroutine of a program that is compiled with it, unedited.
// Owns     nothing; what it notices goes to the recording, if there is one.
// Lifetime a watched awaiter lives in the awaiting frame, as the awaiter inside it would.
// Errors   none reach the program that is watched: what cannot be written is lost.
// Rule     the compiler asks std::coroutine_traits for a coroutine's promise. The answer given here
//          derives from the coroutine's own promise, has its size and its address (the standard
//          does not promise that: hence the assertions), and wraps whatever is awaited. Builds with
//          COURSE_TRACE put this header before every other, by -include; no other build has it.
#pragma once
#pragma GCC system_header  // it is part of files whose warnings are not its own

#include <coroutine>
#include <cstddef>
#include <new>
#include <source_location>
#include <type_traits>
#include <utility>

namespace course_trace {

// What recorder.cpp is told; `frame` is what coroutine_handle::address() gives.
void allocates(void* frame, std::size_t bytes) noexcept;
void makes(void* frame, const std::source_location& place) noexcept;
void suspends(void* frame, const std::source_location& place) noexcept;
void jumps(void* from, void* next) noexcept;  // await_suspend has returned a handle
void gives_back(void* frame) noexcept;        // to the code that resumed it
void resumes(void* frame, const void* stack, const std::source_location* place) noexcept;
void destroys(void* frame) noexcept;
// "throw": an exception has left the body. "end": it is over, and the frame still there.
void notes(const char* kind, void* frame) noexcept;

template <typename Awaitable>
[[gnu::always_inline]] inline decltype(auto) awaiter_of(Awaitable&& awaited) {
  if constexpr (requires { std::forward<Awaitable>(awaited).operator co_await(); }) {
    return std::forward<Awaitable>(awaited).operator co_await();
  } else if constexpr (requires { operator co_await(std::forward<Awaitable>(awaited)); }) {
    return operator co_await(std::forward<Awaitable>(awaited));
  } else {
    return static_cast<Awaitable&&>(awaited);
  }
}

template <typename Awaitable>
using awaiter_for = decltype(awaiter_of(std::declval<Awaitable>()));

enum class at { start, await, end };  // at the first line, in the body, at the end

// Around an awaiter. After its await_suspend the frame may be gone, and this object with it.
// __builtin_frame_address is that of the coroutine's own function, hence always_inline.
template <typename Inner, typename Own, at Where>
struct watched {
  Inner inner;
  void* frame;
  std::source_location place;
  bool is_suspended = false;

  [[gnu::always_inline]] inline bool await_ready() noexcept(Where != at::await) {
    if constexpr (Where == at::end) notes("end", frame);
    return static_cast<bool>(inner.await_ready());
  }

  template <typename Promise>
  auto await_suspend(std::coroutine_handle<Promise> self) noexcept(Where != at::await) {
    const auto own = std::coroutine_handle<Own>::from_address(self.address());
    using returned = decltype(inner.await_suspend(own));
    is_suspended = true;
    if constexpr (Where == at::await) suspends(self.address(), place);
    if constexpr (std::is_void_v<returned>) {
      inner.await_suspend(own);
      if constexpr (Where != at::start) gives_back(own.address());
    } else if constexpr (std::is_same_v<returned, bool>) {
      const bool stays = inner.await_suspend(own);
      if (stays && Where != at::start) gives_back(own.address());
      return stays;
    } else {
      const auto next = inner.await_suspend(own);
      if constexpr (Where != at::start) jumps(own.address(), next.address());
      return next;
    }
  }

  [[gnu::always_inline]] inline decltype(auto) await_resume() noexcept(Where == at::end) {
    if (Where == at::start || is_suspended) {
      resumes(frame, __builtin_frame_address(0), Where == at::start ? nullptr : &place);
    }
    return inner.await_resume();
  }
};

template <typename Own>
struct promise : Own {
  using handle = std::coroutine_handle<promise>;

  promise()
    requires std::is_default_constructible_v<Own>
  = default;
  // [dcl.fct.def.coroutine]: a promise is made of the coroutine's parameters, if it can be.
  template <typename... Parameters>
    requires(sizeof...(Parameters) > 0 && std::is_constructible_v<Own, Parameters&...>)
  explicit promise(Parameters&... parameters) : Own(parameters...) {}
  ~promise() { destroys(handle::from_promise(*this).address()); }

  [[gnu::noinline]] static void* operator new(std::size_t bytes) {
    void* const frame = ::operator new(bytes);
    allocates(frame, bytes);
    return frame;
  }
  [[gnu::noinline]] static void operator delete(void* frame, std::size_t) {
    ::operator delete(frame);
  }

  auto initial_suspend(std::source_location place = std::source_location::current()) {
    static_assert(sizeof(promise) == sizeof(Own) && alignof(promise) == alignof(Own));
    void* const frame = handle::from_promise(*this).address();
    if (static_cast<void*>(static_cast<Own*>(this)) != this) __builtin_trap();
    makes(frame, place);
    using inner = decltype(Own::initial_suspend());
    return watched<inner, Own, at::start>{Own::initial_suspend(), frame, place};
  }
  auto final_suspend() noexcept {
    using inner = decltype(Own::final_suspend());
    void* const frame = handle::from_promise(*this).address();
    return watched<inner, Own, at::end>{Own::final_suspend(), frame, {}};
  }
  template <typename Awaitable>
  auto await_transform(Awaitable&& awaited,
                       std::source_location place = std::source_location::current()) {
    return watched<awaiter_for<Awaitable>, Own, at::await>{
        awaiter_of(std::forward<Awaitable>(awaited)), handle::from_promise(*this).address(), place};
  }
  void unhandled_exception() noexcept(noexcept(std::declval<Own&>().unhandled_exception())) {
    notes("throw", handle::from_promise(*this).address());
    Own::unhandled_exception();
  }
};

template <typename Returned>
concept course_coroutine = requires { typename Returned::promise_type; };

}  // namespace course_trace

template <typename Returned, typename... Parameters>
  requires course_trace::course_coroutine<Returned>
struct std::coroutine_traits<Returned, Parameters...> {
  using promise_type = course_trace::promise<typename Returned::promise_type>;
};
