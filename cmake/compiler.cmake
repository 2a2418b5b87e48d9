# What every C++ target of the course is compiled with, in one INTERFACE target: course-options.
# Its warnings alone are course-warnings, for programs that bring their own flags.

if(NOT COURSE_TREE MATCHES "^(chapters|solutions)$")
  message(FATAL_ERROR "COURSE_TREE is '${COURSE_TREE}'; it takes chapters or solutions.")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12
    OR CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
  message(FATAL_ERROR "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} is too old: the "
    "course needs GCC 12 or Clang 16. Pick another with CXX=g++-12 (or clang++-16) cmake ...")
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# One folder for all programs, so that the tool and the tests find them by name alone.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

# A second compile of the same source takes no time where ccache is installed. It must keep the
# sources' whole paths, whatever its configuration says: a task's message is made of __FILE__. The
# sloppiness is what precompiled headers need. In its depend mode it takes the includes from the
# dependency file that Ninja asks for anyway, and saves a run of the preprocessor: a tenth of a
# first compile.
find_program(CCACHE_PROGRAM ccache)
mark_as_advanced(CCACHE_PROGRAM)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR= CCACHE_DEPEND=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${CCACHE_PROGRAM})
endif()

# Of a precompiled header Clang reads what a file uses, and GCC all of it: Clang's may hold more.
set(COURSE_MORE_PRECOMPILED "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(COURSE_MORE_PRECOMPILED <array> <atomic> <condition_variable> <coroutine> <deque> <fstream>
    <future> <list> <memory> <optional> <random> <ranges> <system_error> <variant>)
endif()

add_library(course-warnings INTERFACE)
target_compile_options(course-warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<BOOL:${COURSE_WERROR}>:-Werror>
  # GCC 12 and 13 see an overlap in `"text" + std::string` that is none (their bug 105651).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,14>>:-Wno-restrict>)

if(COURSE_TREE STREQUAL "chapters")
  # A task that is not written yet uses neither its parameters nor what is prepared for it.
  target_compile_options(course-warnings INTERFACE
    -Wno-unused-parameter -Wno-unused-variable -Wno-unused-but-set-variable
    $<$<CXX_COMPILER_ID:Clang>:-Wno-unused-private-field>)
endif()

add_library(course-options INTERFACE)
target_link_libraries(course-options INTERFACE course-warnings)
if(CCACHE_PROGRAM)
  # GCC has to show ccache which precompiled header it used; Clang must not refuse one that comes
  # from the cache because it is older than this build's copy of its source.
  target_compile_options(course-options INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
    "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endif()
# GCC makes a coroutine's symmetric transfer a tail call below -O2 only with this flag.
target_compile_options(course-options INTERFACE -foptimize-sibling-calls)

if(COURSE_SANITIZE STREQUAL "address")
  set(sanitizers address,undefined)
elseif(COURSE_SANITIZE STREQUAL "thread")
  set(sanitizers thread)
elseif(COURSE_SANITIZE STREQUAL "fuzzer")
  set(sanitizers address,undefined)  # -fsanitize=fuzzer itself goes to the fuzz targets alone
elseif(NOT COURSE_SANITIZE STREQUAL "")
  message(FATAL_ERROR
    "COURSE_SANITIZE is '${COURSE_SANITIZE}'; it takes address, thread or fuzzer.")
endif()
if(sanitizers)
  target_compile_options(course-options INTERFACE
    -fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(COURSE_SANITIZE STREQUAL "address")
    # To look at an address, this check opens a pipe: with no descriptor left it finds a defect
    # where there is none, and servers run out of descriptors on purpose here.
    target_compile_options(course-options INTERFACE -fno-sanitize=vptr)
  endif()
  target_link_options(course-options INTERFACE -fsanitize=${sanitizers})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Under its sanitizers GCC keeps no tail call at all, unless the stack is left unchecked.
    target_compile_options(course-options INTERFACE --param=asan-stack=0)
  endif()
endif()
