# The libraries of the course: the distribution's where it is new enough, else .deps/.
# `./course start` installs what is missing here; plain CMake only looks, and says what to do.

set(COURSE_DEPS_DIR "${CMAKE_SOURCE_DIR}/.deps")
find_package(Threads REQUIRED)

# Catch2 3.3 brought SKIP. Debian 12 ships 2.13, hence .deps/catch2, which ./course builds once.
find_package(Catch2 3.3 QUIET PATHS "${COURSE_DEPS_DIR}/catch2")
if(NOT Catch2_FOUND)
  message(STATUS "No Catch2 >= 3.3 here (./course start would build one in .deps/); fetching it")
  set(catch2_URL https://github.com/catchorg/Catch2/archive/refs/tags/v3.7.1.tar.gz)
  set(catch2_hash SHA256=c991b247a1a0d7bb9c39aa35faf0fe9e19764213f28ffba3109388e62ee0269c)
  set(catch2_archive "${CMAKE_BINARY_DIR}/catch2-source.tar.gz")
  # FetchContent could download it as well, but without a network it would end in curl's words.
  if(NOT EXISTS "${catch2_archive}")
    file(DOWNLOAD ${catch2_URL} "${catch2_archive}.new" STATUS status INACTIVITY_TIMEOUT 30)
    list(POP_FRONT status code reason)
    if(code EQUAL 0)
      file(SHA256 "${catch2_archive}.new" have)
      if(NOT "SHA256=${have}" STREQUAL catch2_hash)
        set(code 1)
        set(reason "what came is another file")
      endif()
    endif()
    if(NOT code EQUAL 0)
      string(REPLACE "\"" "" reason "${reason}")
      message(FATAL_ERROR "Catch2 3.3 or newer is missing, and it could not be fetched from "
        "${catch2_URL}: ${reason}. Run `./course start`, which gets it another way where it can "
        "and says what is in the way; or install it yourself (Debian 13, Ubuntu 24.04 or newer: "
        "apt install catch2) and configure again.")
    endif()
    file(RENAME "${catch2_archive}.new" "${catch2_archive}")
  endif()
  include(FetchContent)
  FetchContent_Declare(Catch2
    URL "${catch2_archive}" URL_HASH ${catch2_hash} DOWNLOAD_EXTRACT_TIMESTAMP OFF)
  FetchContent_MakeAvailable(Catch2)
  list(APPEND CMAKE_MODULE_PATH "${catch2_SOURCE_DIR}/extras")
endif()
include(Catch)

find_package(fmt QUIET)
find_package(CLI11 QUIET)
foreach(package IN ITEMS fmt CLI11)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "${package} is missing. Run `./course start`, or install it yourself "
      "(Debian and Ubuntu: apt install libfmt-dev libcli11-dev).")
  endif()
endforeach()

# liburing 2.3: needed by the doctor and, from chapter 05 on, by the chapters.
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(liburing QUIET IMPORTED_TARGET liburing>=2.3)
endif()
if(NOT TARGET PkgConfig::liburing)
  message(FATAL_ERROR "liburing 2.3 or newer is missing. Run `./course start`, or install it "
    "yourself (Debian and Ubuntu: apt install liburing-dev pkg-config).")
endif()

# The kernel's structures alone, laid out as C++ needs them: for whoever does without the library.
add_library(liburing-headers INTERFACE)
target_include_directories(liburing-headers INTERFACE
  "$<TARGET_PROPERTY:PkgConfig::liburing,INTERFACE_INCLUDE_DIRECTORIES>")

# Standalone asio 1.22: chapter 03's library, and a peer in chapter 14. Headers only, and SYSTEM
# headers: their warnings are not ours.
find_path(ASIO_INCLUDE_DIR asio.hpp)
if(NOT ASIO_INCLUDE_DIR)
  message(FATAL_ERROR "asio is missing. Run `./course start`, or install it yourself "
    "(Debian and Ubuntu: apt install libasio-dev).")
endif()
add_library(asio INTERFACE)
target_include_directories(asio SYSTEM INTERFACE "${ASIO_INCLUDE_DIR}")
# asio 1.22 does not see by itself that Clang has the coroutines of C++20; our compilers all have.
target_compile_definitions(asio INTERFACE ASIO_NO_DEPRECATED ASIO_HAS_CO_AWAIT)
target_link_libraries(asio INTERFACE Threads::Threads)
