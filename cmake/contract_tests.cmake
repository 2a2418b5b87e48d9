# Read by CTest, through a file that course_echo_contract() writes and that sets the variables used
# here: turns each case of the echo contract into a test of one server.
cmake_policy(VERSION 3.25)  # CTest sets none for what it reads

foreach(needed IN ITEMS "${contract}" "${cases_file}" "${server}")
  if(NOT EXISTS "${needed}")
    # One test that cannot run, and no label: who asks for a label has built what it needs.
    add_test("${prefix}NOT_BUILT" "${needed}")
    return()
  endif()
endforeach()

file(STRINGS "${cases_file}" cases)
foreach(unknown IN LISTS except)
  if(NOT unknown IN_LIST cases)
    message(FATAL_ERROR "course_echo_contract(EXCEPT): there is no case \"${unknown}\".\n"
      "The cases are listed in ${cases_file}.")
  endif()
endforeach()

foreach(case IN LISTS cases)
  if(case IN_LIST except)
    continue()
  endif()
  add_test("${prefix}${case}" "${contract}" "${case}")
  set_tests_properties("${prefix}${case}" PROPERTIES
    ENVIRONMENT
      "COURSE_SERVER=${server};COURSE_SERVER_ARGS=${server_args};COURSE_SANITIZE=${sanitize}"
    LABELS "${labels}"
    SKIP_RETURN_CODE 4
    TIMEOUT ${timeout_s})
endforeach()
