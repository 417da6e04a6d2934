# Tests, found by their place:
#
#   tests/unit/<module>/test_<file>.c   unit/<module>/<file>     label unit
#   tests/<kind>/test_<name>.c          <kind>/<name>            label <kind>: gradient, same, keras, fault
#   tests/bits                          bits                     label same
#   tests/checked/test_<name>.c         checked/<name>           label checked
#   tests/cli/<name>.sh                 cli/<name>               label cli
#   tests/mpi/<name>.sh                 mpi/<name>/<mpi>         label mpi
#   tests/fuzz (fuzz.cmake)             fuzz/<target>            label fuzz
#   examples/<name>.c                   example/<name>           label example
#   tests/tools/check_<name>.sh         tools/check_<name>       label tools
#   tests/tools/newcomer.sh             tools/newcomer           label tools
#   README.md, docs (tests/docs)        docs/<page>              label docs
#
# A test that computes with kernels runs once with each set of kernels: as it is, .../avx2 (on x86-64) and .../portable. "label: thread" in
# a test's first ten lines adds the label thread, which the thread sanitizer runs. Exit code 77: skipped.
#
# .../checked is the same test with the table of tests/checked, whose arenas fault when anything but a kernel touches them.
pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
if(NOT CMOCKA_FOUND)
    message(STATUS "cmocka not found: tests in C are not built (tools/setup test)")
endif()

# The command as scripts call it: itself, or where another machine's is built, a script that runs it in the emulator.
set(command $<TARGET_FILE:batchwise_command>)
if(CMAKE_CROSSCOMPILING_EMULATOR)
    set(command ${PROJECT_BINARY_DIR}/tests/batchwise)
    list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
    file(GENERATE OUTPUT ${command} CONTENT "#!/bin/sh\nexec ${emulator} $<TARGET_FILE:batchwise_command> \"$@\"\n"
        FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endif()
set(test_environment BW_DATA=${PROJECT_SOURCE_DIR}/data BATCHWISE=${command})
if(BW_SANITIZE)
    # Not detect_stack_use_after_return: GCC 12 then aligns stack vectors of 64 bytes to less, and AVX-512 code traps.
    list(APPEND test_environment
        ASAN_OPTIONS=strict_string_checks=1
        UBSAN_OPTIONS=print_stacktrace=1
        TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tools/tsan.supp:second_deadlock_stack=1)
endif()

# bw_add_test(NAME n COMMAND c... LABELS l... [ENVIRONMENT e...])
function(bw_add_test)
    cmake_parse_arguments(test "" "NAME" "COMMAND;LABELS;ENVIRONMENT" ${ARGN})
    add_test(NAME ${test_NAME} COMMAND ${test_COMMAND})
    set(most_seconds 600)
    if("soak" IN_LIST test_LABELS)
        set(most_seconds 7200)
    endif()
    set_tests_properties(${test_NAME} PROPERTIES
        LABELS "${test_LABELS}"
        ENVIRONMENT "${test_environment};${test_ENVIRONMENT}"
        SKIP_RETURN_CODE 77
        TIMEOUT ${most_seconds})
endfunction()

# Helpers that several tests share, if there are any: #include "support/<name>.h".
file(GLOB support_sources CONFIGURE_DEPENDS tests/support/*.c)
if(CMOCKA_FOUND)
    add_library(batchwise_test INTERFACE)
    target_include_directories(batchwise_test INTERFACE include src tests)
    target_compile_definitions(batchwise_test INTERFACE
        BW_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data" BW_TEST_KERAS="${PROJECT_SOURCE_DIR}/tests/keras"
        BW_DATA="${PROJECT_SOURCE_DIR}/data" BW_TEST_CC="${CMAKE_C_COMPILER}")
    target_link_libraries(batchwise_test INTERFACE batchwise_flags batchwise_static PkgConfig::CMOCKA)
    if(support_sources)
        add_library(batchwise_test_support STATIC ${support_sources})
        target_link_libraries(batchwise_test_support PUBLIC batchwise_test)
    endif()
    # The table "checked": its wrappers are made from the headers, in the order in which they are included.
    file(GLOB kernel_headers CONFIGURE_DEPENDS src/kernel/loops/*.h)
    set(wrappers ${PROJECT_BINARY_DIR}/tests/checked_wrappers.c)
    set(make_wrappers ${PROJECT_SOURCE_DIR}/tests/checked/make_wrappers)
    list(APPEND kernel_headers ${PROJECT_SOURCE_DIR}/src/kernel/kernel.h)
    add_custom_command(OUTPUT ${wrappers}
        COMMAND bash ${make_wrappers} ${kernel_headers} > ${wrappers}
        DEPENDS ${make_wrappers} ${kernel_headers}
        COMMENT "Wrapping the kernels for tests/checked"
        VERBATIM)
    add_library(batchwise_test_checked OBJECT tests/checked/checked.c ${wrappers})
    target_link_libraries(batchwise_test_checked PUBLIC batchwise_test)

    file(GLOB test_sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
        tests/unit/*/test_*.c tests/gradient/test_*.c tests/same/test_*.c tests/keras/test_*.c tests/fault/test_*.c
        tests/checked/test_*.c)
    if(NOT BW_ONEDNN)
        target_compile_definitions(batchwise_test INTERFACE BW_WITHOUT_ONEDNN)
        list(REMOVE_ITEM test_sources tests/unit/kernel/test_convolution.c)
    endif()
endif()

# The sets of kernels below the best.
set(lesser_sets portable)
if("avx2" IN_LIST isas)
    list(PREPEND lesser_sets avx2)
endif()

foreach(source IN LISTS test_sources)
    string(REGEX REPLACE "^tests/(.*)/test_(.*)\\.c$" "\\1/\\2" name ${source})
    string(REPLACE "/" "_" target test_${name})
    get_filename_component(folder ${source} DIRECTORY)
    string(REGEX REPLACE "/.*" "" kind ${name})

    add_executable(${target} ${source})
    target_link_libraries(${target} PRIVATE
        batchwise_test batchwise_test_checked $<TARGET_NAME_IF_EXISTS:batchwise_test_support>)
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME ${name}
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})

    set(labels ${kind})
    file(STRINGS ${source} head LIMIT_COUNT 10)
    if("${head}" MATCHES "label: thread")
        list(APPEND labels thread)
    endif()
    foreach(label IN LISTS labels)
        list(APPEND targets_${label} ${target})
    endforeach()
    bw_add_test(NAME ${name} COMMAND ${target} LABELS ${labels})
    if(name MATCHES "^(unit/(kernel|op|exec|train)|gradient|same|keras)/")
        foreach(set IN LISTS lesser_sets)
            bw_add_test(NAME ${name}/${set} COMMAND ${target} LABELS ${labels} ENVIRONMENT BATCHWISE_ISA=${set})
        endforeach()
    endif()
    # Three tests look into arenas themselves. Those of same run several workers, where a touch from outside goes unseen while another
    # worker's kernel runs; bits has the same trainings and more, with one.
    if(name MATCHES "^(unit/(exec|train)|keras)/" AND NOT name MATCHES "exec/(records|update)$|train/optimizers$" AND NOT BW_SANITIZE)
        bw_add_test(NAME ${name}/checked COMMAND ${target} LABELS ${labels} checked ENVIRONMENT BATCHWISE_ISA=checked)
    endif()
endforeach()

# A library that makes calls of the whole process fail, for the tests of what is below the library. Sanitizers have allocators of their own.
if(CMOCKA_FOUND AND NOT BW_SANITIZE)
    add_library(fault_shim MODULE tests/fault/shim.c)
    target_include_directories(fault_shim PRIVATE tests)
    target_compile_definitions(fault_shim PRIVATE _GNU_SOURCE)
    target_link_libraries(fault_shim PRIVATE ${CMAKE_DL_LIBS})
    add_dependencies(test_fault_dependencies fault_shim)
    target_compile_definitions(test_fault_dependencies PRIVATE BW_TEST_SHIM="$<TARGET_FILE:fault_shim>")
    list(APPEND test_environment BW_TEST_SHIM=$<TARGET_FILE:fault_shim>)
endif()

# The portable kernels under valgrind, which sees values that nobody set: those of a family whose test takes seconds there, and with
# BW_SOAK all of them.
find_program(VALGRIND valgrind)
if(VALGRIND AND CMOCKA_FOUND AND NOT BW_SANITIZE)
    foreach(target IN LISTS targets_unit)
        string(REGEX REPLACE "^test_unit_kernel_" "" family ${target})
        if(family STREQUAL "softmax")
            set(labels unit)
        elseif(BW_SOAK AND NOT family STREQUAL target)
            set(labels soak)
        else()
            continue()
        endif()
        bw_add_test(NAME unit/kernel/${family}/valgrind
            COMMAND ${VALGRIND} -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite $<TARGET_FILE:${target}>
            LABELS ${labels} ENVIRONMENT BATCHWISE_ISA=portable)
    endforeach()
endif()

# Any number of workers gives the same hashes.
list(APPEND targets_same bits)
bw_add_test(NAME bits COMMAND bits --workers 1,3 LABELS same)
foreach(set IN LISTS lesser_sets)
    bw_add_test(NAME bits/${set} COMMAND bits --workers 1,3 LABELS same ENVIRONMENT BATCHWISE_ISA=${set})
endforeach()
if(TARGET batchwise_test_checked AND NOT BW_SANITIZE)
    target_link_libraries(bits PRIVATE batchwise_test_checked)
    if(BW_SOAK)
        bw_add_test(NAME bits/checked COMMAND bits --workers 1 LABELS soak ENVIRONMENT BATCHWISE_ISA=checked)
    endif()
endif()

# To build what ctest -L <label> runs, and no more.
foreach(label IN ITEMS unit gradient same keras fault checked thread)
    add_custom_target(tests_${label} DEPENDS ${targets_${label}})
endforeach()

# Scripts that drive the command; run.sh holds what they share.
file(GLOB cli_tests CONFIGURE_DEPENDS tests/cli/*.sh)
list(FILTER cli_tests EXCLUDE REGEX "/(run|findings_of_speed)\\.sh$")
foreach(script IN LISTS cli_tests)
    get_filename_component(name ${script} NAME_WE)
    bw_add_test(NAME cli/${name} COMMAND bash ${script} LABELS cli)
endforeach()

# Real processes of each MPI that there is. The library for it is not sanitized, nor is MPI.
if(NOT BW_SANITIZE)
    add_executable(mpi_program tests/mpi/program.c)
    target_link_libraries(mpi_program PRIVATE batchwise_flags batchwise_static)
    set_target_properties(mpi_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    set(mpis ${mpi_libraries})
    list(TRANSFORM mpis REPLACE ".*_(.*)\\.so$" "\\1")
    foreach(mpi IN ITEMS openmpi ${mpis})
        foreach(name IN ITEMS bits faults)
            # MPICH's launcher ends the others itself when a rank dies, before they can say who it was.
            if(NOT TEST mpi/${name}/${mpi} AND (name STREQUAL bits OR mpi STREQUAL openmpi))
                bw_add_test(NAME mpi/${name}/${mpi} COMMAND bash ${PROJECT_SOURCE_DIR}/tests/mpi/${name}.sh LABELS mpi
                    ENVIRONMENT MPI=${mpi} PROGRAM=$<TARGET_FILE:mpi_program> BITS=$<TARGET_FILE:bits>)
                # They look for their ranks among the machine's processes.
                set_tests_properties(mpi/${name}/${mpi} PROPERTIES RESOURCE_LOCK mpi)
            endif()
        endforeach()
    endforeach()
endif()

if(BW_SOAK)
    # Some of the doctor's findings are about the machine as it is at that moment, so nothing else runs beside them.
    bw_add_test(NAME cli/findings_of_speed COMMAND bash ${PROJECT_SOURCE_DIR}/tests/cli/findings_of_speed.sh LABELS soak)
    set_tests_properties(cli/findings_of_speed PROPERTIES RUN_SERIAL ON)
    bw_add_test(NAME mpi/hosts COMMAND bash ${PROJECT_SOURCE_DIR}/tests/mpi/hosts.sh LABELS soak)
    bw_add_test(NAME cli/faults/soak COMMAND bash ${PROJECT_SOURCE_DIR}/tests/cli/faults.sh LABELS soak ENVIRONMENT FAULT_STEP=1)
    bw_add_test(NAME cli/checkpoint/soak COMMAND bash ${PROJECT_SOURCE_DIR}/tests/cli/checkpoint.sh LABELS soak
        ENVIRONMENT CHECKPOINT_KILLS=200)
endif()

# The checks in tools must find what they look for.
file(GLOB tool_tests CONFIGURE_DEPENDS tests/tools/check_*.sh)
foreach(script IN LISTS tool_tests)
    get_filename_component(name ${script} NAME_WE)
    bw_add_test(NAME tools/${name} COMMAND bash ${script} LABELS tools)
endforeach()
# What docs/contributing says, done to a copy of the sources and built: a minute, so not with sanitizers.
if(NOT BW_SANITIZE)
    bw_add_test(NAME tools/newcomer COMMAND bash ${PROJECT_SOURCE_DIR}/tests/tools/newcomer.sh LABELS tools)
endif()

# What the documentation says is done: command lines are run, C blocks compiled and run, links followed.
find_program(BW_PYTHON python3)
if(BW_PYTHON AND NOT BW_SANITIZE)
    file(GLOB pages CONFIGURE_DEPENDS README.md docs/*.md docs/guide/*.md docs/reference/*.md)
    foreach(page IN LISTS pages)
        file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${page})
        string(REGEX REPLACE "^docs/|\\.md$" "" name ${name})
        bw_add_test(NAME docs/${name} COMMAND ${BW_PYTHON} ${PROJECT_SOURCE_DIR}/tests/docs/run.py ${page} LABELS docs
            ENVIRONMENT CC=${CMAKE_C_COMPILER})
    endforeach()
    bw_add_test(NAME docs/pages COMMAND ${BW_PYTHON} ${PROJECT_SOURCE_DIR}/tests/docs/pages.py LABELS docs)
endif()

# Examples are users' programs: public header, shared library. Their argument is the file of digits, if it is nothing else.
set(argument_of_image-large-batch 128)
set(argument_of_transfer "")
set(argument_of_utilisation ${PROJECT_BINARY_DIR}/examples)
set(argument_of_keras-and-back ${PROJECT_SOURCE_DIR}/data/digits.npz ${PROJECT_SOURCE_DIR}/data/begun.keras
    ${PROJECT_BINARY_DIR}/examples/continued.keras)
file(GLOB examples CONFIGURE_DEPENDS examples/*.c)
foreach(source IN LISTS examples)
    get_filename_component(name ${source} NAME_WE)
    add_executable(example_${name} ${source})
    target_link_libraries(example_${name} PRIVATE batchwise_flags batchwise_shared)
    set_target_properties(example_${name} PROPERTIES
        OUTPUT_NAME ${name}
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
    set(argument ${PROJECT_SOURCE_DIR}/data/digits.npz)
    if(DEFINED argument_of_${name})
        set(argument ${argument_of_${name}})
    endif()
    bw_add_test(NAME example/${name} COMMAND example_${name} ${argument} LABELS example)
endforeach()

if(NOT BW_SANITIZE)
    bw_add_test(NAME install COMMAND bash ${PROJECT_SOURCE_DIR}/tests/install/run.sh ${PROJECT_BINARY_DIR} LABELS install)
endif()
