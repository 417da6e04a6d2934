# The library: every module is compiled once, for the shared and the static library alike.
file(STRINGS tools/modules.txt modules REGEX "^[a-z]+:")
list(TRANSFORM modules REPLACE ":.*" "")
list(REMOVE_ITEM modules cli mpi) # mpi is a library of its own (mpi.cmake)
list(TRANSFORM modules REPLACE "(.+)" "src/\\1/*.c" OUTPUT_VARIABLE patterns)
file(GLOB_RECURSE library_sources CONFIGURE_DEPENDS ${patterns})

set(kernel_sources ${library_sources})
list(FILTER kernel_sources INCLUDE REGEX "/src/kernel/")
list(FILTER kernel_sources EXCLUDE REGEX "/src/kernel/onednn/")
if(NOT BW_ONEDNN)
    list(FILTER library_sources EXCLUDE REGEX "/src/kernel/onednn/")
    set_property(SOURCE ${kernel_sources} APPEND PROPERTY COMPILE_DEFINITIONS BW_WITHOUT_ONEDNN)
endif()
# With sanitizers -O3 takes minutes for a file of vector kernels.
if(BW_SANITIZE)
    set(kernel_optimization -O1)
else()
    set(kernel_optimization -O3)
endif()
# Aligned to cache lines, since the inner loops of a dense layer took 10 percent more time when other files had moved them by half a line.
set_property(SOURCE ${kernel_sources} APPEND PROPERTY
    COMPILE_OPTIONS -ffp-contract=fast -falign-functions=64 -falign-loops=64 $<$<NOT:$<CONFIG:Debug>>:${kernel_optimization}>)

# Plain loops give the same bits whatever they are compiled for: products and sums are not contracted. No floating-point operation
# traps (bwi_float_begin), so both sides of a condition may be computed, which is what makes vectors of it.
set(loop_sources ${kernel_sources})
list(FILTER loop_sources INCLUDE REGEX "/loops_[a-z0-9]+\\.c$")
set_property(SOURCE ${loop_sources} APPEND PROPERTY COMPILE_OPTIONS -ffp-contract=off -fno-trapping-math)

# One file for each instruction set, chosen at run time: the library runs on any x86-64, on any AArch64 (which always has NEON), and
# on what else there is with the portable kernels.
set(isa_avx2 -mavx2 -mfma)
set(isa_avx512 ${isa_avx2} -mavx512f -mavx512dq -mavx512bw -mavx512vl)
set(isa_neon "")
set(isas)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    set(isas avx2 avx512)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(isas neon)
endif()
foreach(isa IN ITEMS avx2 avx512 neon)
    set(isa_sources ${kernel_sources})
    list(FILTER isa_sources INCLUDE REGEX "${isa}\\.c$")
    if(NOT isa IN_LIST isas)
        list(REMOVE_ITEM library_sources ${isa_sources})
    elseif(isa_sources)
        set_property(SOURCE ${isa_sources} APPEND PROPERTY COMPILE_OPTIONS ${isa_${isa}})
    endif()
endforeach()

# GCC 12 for AArch64 fails with an internal error where it makes vectors of a reduction there.
if("neon" IN_LIST isas AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_COMPILER_VERSION VERSION_LESS 13)
    set_property(SOURCE src/kernel/reference.c APPEND PROPERTY COMPILE_OPTIONS -fno-tree-vectorize)
endif()

function(add_objects name)
    add_library(${name} OBJECT ${ARGN})
    set_target_properties(${name} PROPERTIES C_VISIBILITY_PRESET hidden)
    target_include_directories(${name} PRIVATE include src)
    target_link_libraries(${name} PRIVATE batchwise_flags batchwise_dependencies)
endfunction()

# BW_ONE_STEP_OBJECT: the modules that every step of training runs through are compiled with link-time optimisation and joined into
# one ordinary object by a relocatable link, so that calls between them can be inlined while the installed static library stays a
# plain archive. Link-time optimisation makes some static functions global, under their plain names: they are made local again, or they
# would clash with those of a program that is optimised likewise. A step of the smallest model (bench --workload linear2) takes 0.31 microseconds with it and 0.37 without.
option(BW_ONE_STEP_OBJECT "Optimise the modules of a training step as one object (GCC release builds)" ON)
if(BW_ONE_STEP_OBJECT AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT BW_SANITIZE)
    set(step_sources ${library_sources})
    list(FILTER step_sources INCLUDE REGEX "/src/(base|data|exec|graph|op|train)/")
    list(REMOVE_ITEM library_sources ${step_sources})
    set(step_object ${PROJECT_BINARY_DIR}/batchwise_step.o)
    add_objects(batchwise_step ${step_sources})
    target_compile_options(batchwise_step PRIVATE -flto -fno-fat-lto-objects)
    add_custom_command(OUTPUT ${step_object}
        COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -O2 -flto=auto -flinker-output=nolto-rel $<TARGET_OBJECTS:batchwise_step>
            -o ${step_object}
        COMMAND ${CMAKE_OBJCOPY} --wildcard "--keep-global-symbol=bw_*" "--keep-global-symbol=bwi_*" ${step_object}
        DEPENDS batchwise_step $<TARGET_OBJECTS:batchwise_step>
        COMMENT "Optimising what a step runs through"
        COMMAND_EXPAND_LISTS VERBATIM)
    set_source_files_properties(${step_object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    add_custom_target(batchwise_step_once DEPENDS ${step_object}) # or make would run it for each library
endif()

# Where libbatchwise_mpi is: below the libraries, seen from the programs' folder and from the root.
file(RELATIVE_PATH from_programs /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
set_property(SOURCE src/rank/mpi_load.c APPEND PROPERTY
    COMPILE_DEFINITIONS BW_FROM_PROGRAMS="${from_programs}" BW_FULL_LIBDIR="${CMAKE_INSTALL_FULL_LIBDIR}")

if(BW_STATIC)
    set_property(SOURCE src/rank/mpi_load.c APPEND PROPERTY COMPILE_DEFINITIONS BW_STATIC)
endif()

add_objects(batchwise_objects ${library_sources})
add_library(batchwise_shared SHARED $<TARGET_OBJECTS:batchwise_objects> ${step_object})
add_library(batchwise_static STATIC $<TARGET_OBJECTS:batchwise_objects> ${step_object})
target_link_libraries(batchwise_shared PRIVATE $<BUILD_INTERFACE:batchwise_flags> $<BUILD_INTERFACE:batchwise_dependencies>)
target_link_libraries(batchwise_static
    PRIVATE $<BUILD_INTERFACE:batchwise_flags>
    INTERFACE $<BUILD_INTERFACE:batchwise_dependencies> $<INSTALL_INTERFACE:${BW_PRIVATE_LIBRARIES}>)

if(NOT BW_SANITIZE) # whose runtime is in the program
    target_link_options(batchwise_shared PRIVATE -Wl,--no-undefined)
endif()

foreach(kind IN ITEMS shared static)
    if(TARGET batchwise_step_once)
        add_dependencies(batchwise_${kind} batchwise_step_once)
    endif()
    target_include_directories(batchwise_${kind} INTERFACE
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    set_target_properties(batchwise_${kind} PROPERTIES
        OUTPUT_NAME batchwise
        LINKER_LANGUAGE C
        ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endforeach()

# Public names carry the version of the interface, so that two versions in one process do not mix; nothing else leaves the library.
set(versions ${PROJECT_BINARY_DIR}/batchwise.map)
file(CONFIGURE OUTPUT ${versions} @ONLY
    CONTENT "BATCHWISE_@PROJECT_VERSION_MAJOR@.@PROJECT_VERSION_MINOR@ {\n    global: bw_*;\n    local: *;\n};\n")
target_link_options(batchwise_shared PRIVATE -Wl,--version-script=${versions})
set_property(TARGET batchwise_shared APPEND PROPERTY LINK_DEPENDS ${versions})

# Until 1.0 every minor version may change the header incompatibly, so the SONAME carries it.
set_target_properties(batchwise_shared PROPERTIES
    EXPORT_NAME batchwise
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
add_library(batchwise::batchwise ALIAS batchwise_shared)
add_library(batchwise::batchwise_static ALIAS batchwise_static)
