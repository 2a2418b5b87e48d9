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
function(course_program number name)
  add_executable(${number}-${name} ${ARGN})
  target_link_libraries(${number}-${name} PRIVATE chapter-${number})
endfunction()

# course_tests(02 loop_test.cpp server_test.cpp) makes 02-tests; every case is a CTest test of its
# own, labeled with the chapter and with its Catch2 tags (the task it belongs to).
function(course_tests number)
  add_executable(${number}-tests ${ARGN})
  target_link_libraries(${number}-tests PRIVATE chapter-${number} test-support)
  catch_discover_tests(${number}-tests DISCOVERY_MODE PRE_TEST ADD_TAGS_AS_LABELS
    PROPERTIES TIMEOUT 20 LABELS ${number})
endfunction()
