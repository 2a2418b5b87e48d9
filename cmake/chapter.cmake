# How a chapter and its tests become targets. Each solutions/NN-slug/CMakeLists.txt calls
# course_chapter() and course_program(); each tests/NN-slug/CMakeLists.txt calls course_tests().

# course_chapter(02 epoll-echo BUILDS_ON 01)
#
# chapter-NN       headers of the tree being built (COURSE_TREE)
# chapter-NN-base  what later chapters build on: the reference, or the student's with COURSE_CARRY
function(course_chapter number slug)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "BUILDS_ON;LINKS")
  set(folder "${number}-${slug}")
  set(base_tree solutions)
  if(COURSE_CARRY)
    set(base_tree ${COURSE_TREE})
  endif()
  foreach(pair IN ITEMS "chapter-${number}|${COURSE_TREE}" "chapter-${number}-base|${base_tree}")
    string(REPLACE "|" ";" pair "${pair}")
    list(POP_FRONT pair target tree)
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE "${CMAKE_SOURCE_DIR}/${tree}/${folder}")
    target_link_libraries(${target} INTERFACE common course-options Threads::Threads ${arg_LINKS})
    foreach(earlier IN LISTS arg_BUILDS_ON)
      target_link_libraries(${target} INTERFACE chapter-${earlier}-base)
    endforeach()
  endforeach()
endfunction()

# course_program(02 server server.cpp) makes the target and the file 02-server.
# course_program(06 traps traps.cpp OWN_FLAGS -O0 -fsanitize=address)
#
# With OWN_FLAGS a program shows what happens under these, in every preset: it takes the chapter's
# headers and neither its options nor `common`, whose sanitizer may be another one.
function(course_program number name)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "OWN_FLAGS")
  set(target ${number}-${name})
  add_executable(${target} ${arg_UNPARSED_ARGUMENTS})
  if(arg_OWN_FLAGS)
    target_sources(${target} PRIVATE "${CMAKE_SOURCE_DIR}/common/runtime/todo.cpp")
    target_include_directories(${target} PRIVATE
      $<TARGET_PROPERTY:chapter-${number},INTERFACE_INCLUDE_DIRECTORIES>)
    target_compile_options(${target} PRIVATE
      $<TARGET_PROPERTY:course-warnings,INTERFACE_COMPILE_OPTIONS> ${arg_OWN_FLAGS})
    target_link_options(${target} PRIVATE ${arg_OWN_FLAGS})
    target_link_libraries(${target} PRIVATE Threads::Threads fmt::fmt)
  else()
    target_link_libraries(${target} PRIVATE chapter-${number})
    if(COURSE_PROGRAM_HEADERS)
      target_precompile_headers(${target} REUSE_FROM program-headers)
    endif()
  endif()
  if(COURSE_TRACE)
    target_link_libraries(${target} PRIVATE course-trace)
  endif()
  set_property(GLOBAL APPEND PROPERTY COURSE_PROGRAMS_${number} ${target})
endfunction()

# course_tests(02 loop_test.cpp server_test.cpp) makes the program 02-cases; every case is a CTest
# test of its own, labeled with the chapter; its name starts with its task. 02-tests is that and
# whatever else the chapter's tests run: its programs and the echo contract.
function(course_tests number)
  add_executable(${number}-cases ${ARGN})
  target_link_libraries(${number}-cases PRIVATE chapter-${number} test-support)
  course_reuse_test_headers(${number}-cases)
  get_property(programs GLOBAL PROPERTY COURSE_PROGRAMS_${number})
  add_custom_target(${number}-tests DEPENDS ${number}-cases ${programs})
  course_discover_tests(${number}-cases ${number})
endfunction()

# A program of tests takes the precompiled headers of all tests, and so has to have their options.
function(course_reuse_test_headers target)
  target_compile_options(${target} PRIVATE ${COURSE_TESTS_OPTIONS})
  target_precompile_headers(${target} REUSE_FROM test-headers)
endfunction()

# Each case of a Catch2 program becomes a CTest test with a label and the time limit of all tests.
function(course_discover_tests target label)
  catch_discover_tests(${target} DISCOVERY_MODE PRE_TEST
    PROPERTIES TIMEOUT ${COURSE_TEST_TIMEOUT_S} LABELS ${label})
endfunction()

# course_fuzz(13 fuzz_main.cpp) makes 13-fuzz, which ./course fuzz 13 runs; in the presets for that.
function(course_fuzz number)
  if(NOT COURSE_SANITIZE STREQUAL "fuzzer")
    return()
  endif()
  add_executable(${number}-fuzz ${ARGN})
  target_link_libraries(${number}-fuzz PRIVATE chapter-${number})
  target_compile_options(${number}-fuzz PRIVATE -O1 -fsanitize=fuzzer)
  target_link_options(${number}-fuzz PRIVATE -fsanitize=fuzzer)
endfunction()

# course_echo_contract(02)                                 "02 contract: one byte comes back", ...
# course_echo_contract(05 NAME "coop" ARGS --ring-flags coop)    "05 contract (coop): one byte ..."
# course_echo_contract(03 PROGRAM callbacks EXCEPT "idle clients cost no CPU")
#                                                    "03 contract (callbacks): one byte comes back"
#
# Runs the echo contract (tests/support/contract_*.cpp) against a chapter's server: a CTest test for
# each case, labeled with the chapter and "contract". EXCEPT names cases, whole and exactly, that
# this server cannot keep. Call it after course_tests(): building NN-tests builds this as well.
function(course_echo_contract number)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME;PROGRAM" "ARGS;EXCEPT")
  set(program ${number}-server)
  if(arg_PROGRAM)
    set(program ${number}-${arg_PROGRAM})
    if(NOT arg_NAME)
      set(arg_NAME ${arg_PROGRAM})
    endif()
  endif()
  set(prefix "${number} contract: ")
  if(arg_NAME)
    set(prefix "${number} contract (${arg_NAME}): ")
  endif()
  list(JOIN arg_ARGS " " server_args)
  string(MAKE_C_IDENTIFIER "contract_${program}_${arg_NAME}" id)
  course_contract_folder(folder)
  # CTest reads this before each run; the cases are whatever echo-contract held when it was built.
  set(script "${CMAKE_CURRENT_BINARY_DIR}/${id}.cmake")
  file(CONFIGURE OUTPUT "${script}" @ONLY CONTENT [==[
set(cases_file [=[@folder@/echo-contract-cases.txt]=])
set(contract [=[@folder@/echo-contract]=])
set(server [=[@CMAKE_RUNTIME_OUTPUT_DIRECTORY@/@program@]=])
set(server_args [=[@server_args@]=])
set(prefix [=[@prefix@]=])
set(labels [=[@number@;contract]=])
set(except [=[@arg_EXCEPT@]=])
set(sanitize [=[@COURSE_SANITIZE@]=])
set(timeout_s [=[@COURSE_TEST_TIMEOUT_S@]=])
include([=[@CMAKE_SOURCE_DIR@/cmake/contract_tests.cmake]=])
]==])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${script}")
  if(TARGET ${number}-tests AND NOT COURSE_CONTRACT_FOLDER)
    add_dependencies(${number}-tests echo-contract)
  endif()
endfunction()

# Where echo-contract is, with the list of its cases.
function(course_contract_folder variable)
  set(folder "${COURSE_CONTRACT_FOLDER}")
  if(NOT folder)
    set(folder "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  endif()
  set(${variable} "${folder}" PARENT_SCOPE)
endfunction()

# course_ring_contract(05)
#
# The echo contract under every set of ring flags, and with rings that are soon full.
function(course_ring_contract number)
  course_echo_contract(${number})
  foreach(flags IN ITEMS coop defer sqpoll)
    course_echo_contract(${number} NAME ${flags} ARGS --ring-flags ${flags})
  endforeach()
  course_echo_contract(${number} NAME "tiny rings" ARGS --sq 4 --cq 8)
  course_echo_contract(${number} NAME "defer, tiny rings"
    ARGS --ring-flags defer --sq 4 --cq 8)
endfunction()

# course_echo_defect(05 first-loop "one MiB comes back unchanged" SAYS "missing bytes" ARGS --sq 4)
#
# A program that a page shows for its defects: a CTest test "05 first-loop fails: one MiB comes back
# unchanged" that passes when this case of the echo contract fails, and says so: more patience would
# only be waited for in vain. A defect that needs luck to show, such as a short send, has three
# chances.
function(course_echo_defect number program case)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "SAYS" "ARGS")
  list(JOIN arg_ARGS " " server_args)
  set(server "$<TARGET_FILE:${number}-${program}>")
  course_contract_folder(folder)
  course_defect_test("${number} ${program} fails: ${case}" "${number};contract"
    "FAILED:.*${arg_SAYS}"
    COMMAND sh -c [["$@" && "$@" && "$@"]] sh "${folder}/echo-contract" "${case}"
    ENVIRONMENT "COURSE_SERVER=${server};COURSE_SERVER_ARGS=${server_args};COURSE_PATIENCE=1;\
COURSE_SANITIZE=${COURSE_SANITIZE}")
endfunction()

# course_defect(06 traps "the captures are gone" SAYS "heap-use-after-free" ARGS capturing-lambda)
#
# The same for a program that shows a defect by itself: a CTest test "06 traps shows: the captures
# are gone" that passes when the program prints that.
function(course_defect number program defect)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "SAYS" "ARGS")
  course_defect_test("${number} ${program} shows: ${defect}" "${number}" "${arg_SAYS}"
    COMMAND ${number}-${program} ${arg_ARGS})
endfunction()

# A test that passes when its command prints `says`, however that command ends.
function(course_defect_test test labels says)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "ENVIRONMENT" "COMMAND")
  add_test(NAME "${test}" COMMAND ${arg_COMMAND})
  set_tests_properties("${test}" PROPERTIES
    ENVIRONMENT "${arg_ENVIRONMENT}"
    PASS_REGULAR_EXPRESSION "${says}"
    LABELS "${labels}"
    TIMEOUT ${COURSE_TEST_TIMEOUT_S})
endfunction()
