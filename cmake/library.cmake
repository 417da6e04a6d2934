# The library: every module is compiled once, for the shared and the static library alike.
file(STRINGS tools/modules.txt modules REGEX "^[a-z]+:")
list(TRANSFORM modules REPLACE ":.*" "")
list(REMOVE_ITEM modules cli)
list(TRANSFORM modules REPLACE "(.+)" "src/\\1/*.c" OUTPUT_VARIABLE patterns)
file(GLOB_RECURSE library_sources CONFIGURE_DEPENDS ${patterns})

set(kernel_sources ${library_sources})
list(FILTER kernel_sources INCLUDE REGEX "/src/kernel/")
list(FILTER kernel_sources EXCLUDE REGEX "/src/kernel/onednn/")
# With sanitizers -O3 takes minutes for a file of vector kernels.
if(BW_SANITIZE)
    set(kernel_optimization -O1)
else()
    set(kernel_optimization -O3)
endif()
set_property(SOURCE ${kernel_sources} APPEND PROPERTY
    COMPILE_OPTIONS -ffp-contract=fast $<$<NOT:$<CONFIG:Debug>>:${kernel_optimization}>)

# One file for each instruction set, chosen at run time: the library runs on any x86-64.
set(isa_avx2 -mavx2 -mfma)
set(isa_avx512 ${isa_avx2} -mavx512f -mavx512dq -mavx512bw -mavx512vl)
foreach(isa IN ITEMS avx2 avx512)
    set(isa_sources ${kernel_sources})
    list(FILTER isa_sources INCLUDE REGEX "${isa}\\.c$")
    if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
        list(REMOVE_ITEM library_sources ${isa_sources})
    elseif(isa_sources)
        set_property(SOURCE ${isa_sources} APPEND PROPERTY COMPILE_OPTIONS ${isa_${isa}})
    endif()
endforeach()

add_library(batchwise_objects OBJECT ${library_sources})
set_target_properties(batchwise_objects PROPERTIES C_VISIBILITY_PRESET hidden)
target_include_directories(batchwise_objects PRIVATE include src)
target_link_libraries(batchwise_objects PRIVATE batchwise_flags batchwise_dependencies)

add_library(batchwise_shared SHARED $<TARGET_OBJECTS:batchwise_objects>)
add_library(batchwise_static STATIC $<TARGET_OBJECTS:batchwise_objects>)
target_link_libraries(batchwise_shared PRIVATE $<BUILD_INTERFACE:batchwise_flags> $<BUILD_INTERFACE:batchwise_dependencies>)
target_link_libraries(batchwise_static
    PRIVATE $<BUILD_INTERFACE:batchwise_flags>
    INTERFACE $<BUILD_INTERFACE:batchwise_dependencies> $<INSTALL_INTERFACE:${BW_PRIVATE_LIBRARIES}>)

if(NOT BW_SANITIZE) # whose runtime is in the program
    target_link_options(batchwise_shared PRIVATE -Wl,--no-undefined)
endif()

foreach(kind IN ITEMS shared static)
    target_include_directories(batchwise_${kind} INTERFACE
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    set_target_properties(batchwise_${kind} PROPERTIES
        OUTPUT_NAME batchwise
        LINKER_LANGUAGE C
        ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endforeach()

# Until 1.0 every minor version may change the header incompatibly, so the SONAME carries it.
set_target_properties(batchwise_shared PROPERTIES
    EXPORT_NAME batchwise
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
add_library(batchwise::batchwise ALIAS batchwise_shared)
add_library(batchwise::batchwise_static ALIAS batchwise_static)
