# SPDX-License-Identifier: Apache-2.0
# Tests of several processes, which must not be able to hang the suite.
include_guard(GLOBAL)

# main() of GoogleTest programs that run as several ranks.
add_library(ranks_main OBJECT ${CMAKE_CURRENT_LIST_DIR}/${LOCKSTEP_MPI_FOLDER}_main.cpp)
target_link_libraries(ranks_main PUBLIC GTest::gtest PRIVATE lockstep_options)
target_include_directories(ranks_main PRIVATE ${PROJECT_SOURCE_DIR})
if(LOCKSTEP_MPI_FOLDER STREQUAL "mpi")
  target_link_libraries(ranks_main PUBLIC MPI::MPI_CXX)
endif()

# lockstep_mpi_test(NAME RANKS n COMMAND program [argument...]
#                   [MPIRUN_OPTIONS option...] [EXPECT [count pattern]...] [ENVIRONMENT name=value...] [LIMIT seconds] [GPU] [WAITING])
# One CTest test that runs `program`, a target or a path, as n ranks of mpirun under the watchdog; in a build without MPI
# they are started in torchrun's environment instead, which the test then is of. EXPECT is the watchdog's --expect. With
# GPU the ranks share the GPUs of this machine, one such test at a time; a program that finds none says "no GPU" and
# counts as skipped. WAITING ranks do little else: others may run beside them.
function(lockstep_mpi_test name)
  cmake_parse_arguments(arg "GPU;WAITING" "RANKS;LIMIT" "COMMAND;MPIRUN_OPTIONS;EXPECT;ENVIRONMENT" ${ARGN})
  if(LOCKSTEP_MPI_FOLDER STREQUAL "mpi")
    lockstep_add_ranks_test(${MPIEXEC_EXECUTABLE} --allow-run-as-root --oversubscribe --bind-to none
                            ${arg_MPIRUN_OPTIONS} -n ${arg_RANKS})
  else()
    string(REPLACE --enable-recovery --recover options "${arg_MPIRUN_OPTIONS}")
    lockstep_add_ranks_test(${LOCKSTEP_BARE_PYTHON} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/torchrun_ranks ${options}
                            ${arg_RANKS})
  endif()
endfunction()

# lockstep_tcp_test(NAME RANKS n COMMAND program [argument...] [STARTER_OPTIONS option...]
#                   [EXPECT [count pattern]...] [ENVIRONMENT name=value...] [LIMIT seconds] [GPU] [WAITING])
# The same without MPI, in torchrun's environment; the options are torchrun_ranks'.
function(lockstep_tcp_test name)
  cmake_parse_arguments(arg "GPU;WAITING" "RANKS;LIMIT" "COMMAND;STARTER_OPTIONS;EXPECT;ENVIRONMENT" ${ARGN})
  lockstep_add_ranks_test(${LOCKSTEP_BARE_PYTHON} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/torchrun_ranks
                          ${arg_STARTER_OPTIONS} ${arg_RANKS})
endfunction()

# Adds the test `name` of a function around it, which has parsed its arguments to arg_*. The macro's arguments are the
# command that starts the ranks.
macro(lockstep_add_ranks_test)
  if(NOT arg_LIMIT)
    set(arg_LIMIT ${test_timeout})
  endif()
  set(watchdog_options --limit ${arg_LIMIT})
  while(arg_EXPECT)
    list(POP_FRONT arg_EXPECT count pattern)
    list(APPEND watchdog_options --expect ${count} ${pattern})
  endwhile()
  list(POP_FRONT arg_COMMAND program)
  if(TARGET ${program})
    set(program ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:${program}>)
  endif()
  math(EXPR timeout "${arg_LIMIT} + 90") # the watchdog needs time to print stacks
  add_test(NAME ${name}
           COMMAND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/watchdog ${watchdog_options} ${ARGN} ${program} ${arg_COMMAND})
  # CTest begins with what costs most: where small tests take the processors, one of many ranks would be left to the end.
  set_tests_properties(
    ${name} PROPERTIES TIMEOUT ${timeout} PROCESSORS ${arg_RANKS} COST ${arg_RANKS} LABELS mpi
                       ENVIRONMENT "OMP_NUM_THREADS=1;OMPI_MCA_mpi_yield_when_idle=1;${arg_ENVIRONMENT}")
  if(arg_WAITING)
    set_tests_properties(${name} PROPERTIES PROCESSORS 1)
  endif()
  if(arg_GPU)
    set_tests_properties(${name} PROPERTIES LABELS "mpi;gpu" RESOURCE_LOCK gpu
                                            SKIP_REGULAR_EXPRESSION "no GPU: (every test is )?skipped")
  endif()
endmacro()
