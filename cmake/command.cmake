# The command. It sees the public header and its own only: not src is on its include path but a folder that holds nothing but
# a link to src/cli. It contains the library, so that build/batchwise runs from anywhere.
file(GLOB command_sources CONFIGURE_DEPENDS src/cli/*.c)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/cli ${PROJECT_BINARY_DIR}/include/cli SYMBOLIC)

# The report's style and script are files, which the command holds as text.
function(bw_embed name)
    set(output ${PROJECT_BINARY_DIR}/embedded/${name}.c)
    list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/)
    add_custom_command(OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DNAME=${name} "-DINPUTS=${ARGN}" -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
        DEPENDS ${ARGN} cmake/embed.cmake
        COMMENT "Embedding ${name}"
        VERBATIM)
endfunction()
bw_embed(cli_page_style src/cli/page/page.css)
bw_embed(cli_page_script src/cli/page/chart.js src/cli/page/page.js)
list(APPEND command_sources ${PROJECT_BINARY_DIR}/embedded/cli_page_style.c ${PROJECT_BINARY_DIR}/embedded/cli_page_script.c)

add_executable(batchwise_command ${command_sources})
target_include_directories(batchwise_command PRIVATE ${PROJECT_BINARY_DIR}/include)
target_link_libraries(batchwise_command PRIVATE batchwise_flags batchwise_static)
if(BW_STATIC)
    target_link_options(batchwise_command PRIVATE -static)
endif()
# The server of train --watch; without it the command says so. Statically it would need archives of GnuTLS and all that is below it.
if(NOT BW_STATIC)
    pkg_check_modules(MICROHTTPD IMPORTED_TARGET libmicrohttpd>=0.9.71)
endif()
if(MICROHTTPD_FOUND AND NOT BW_STATIC)
    target_link_libraries(batchwise_command PRIVATE PkgConfig::MICROHTTPD)
    target_compile_definitions(batchwise_command PRIVATE BW_HAVE_MICROHTTPD)
endif()
set_target_properties(batchwise_command PROPERTIES
    OUTPUT_NAME batchwise
    C_VISIBILITY_PRESET hidden
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})

# The manual: a page of all commands, and one for each, which split.awk takes from the first.
find_program(SCDOC scdoc)
find_program(AWK NAMES awk REQUIRED)
set(manual_pages)
if(SCDOC)
    file(STRINGS man/batchwise.1.scd synopses REGEX "^\\*batchwise\\* \\*[a-z]+\\*")
    list(TRANSFORM synopses REPLACE "^\\*batchwise\\* \\*([a-z]+)\\*.*" "\\1" OUTPUT_VARIABLE commands)
    # Its examples name the digits where they are installed.
    set(whole ${PROJECT_BINARY_DIR}/batchwise.1.scd)
    file(READ man/batchwise.1.scd text)
    string(REPLACE "/usr/local/share" "${CMAKE_INSTALL_FULL_DATADIR}" text "${text}")
    string(REPLACE "_/usr/local_" "_${CMAKE_INSTALL_PREFIX}_" text "${text}")
    file(CONFIGURE OUTPUT ${whole} CONTENT "${text}" @ONLY)
    add_custom_command(OUTPUT batchwise.1
        COMMAND ${SCDOC} < ${whole} > batchwise.1
        DEPENDS ${whole}
        VERBATIM)
    list(APPEND manual_pages ${PROJECT_BINARY_DIR}/batchwise.1)
    foreach(command IN LISTS commands)
        add_custom_command(OUTPUT batchwise-${command}.1
            COMMAND ${AWK} -v command=${command} -f ${PROJECT_SOURCE_DIR}/man/split.awk ${whole} > batchwise-${command}.scd
            COMMAND ${SCDOC} < batchwise-${command}.scd > batchwise-${command}.1
            DEPENDS ${whole} man/split.awk
            VERBATIM)
        list(APPEND manual_pages ${PROJECT_BINARY_DIR}/batchwise-${command}.1)
    endforeach()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS man/batchwise.1.scd)
    add_custom_target(batchwise_man ALL DEPENDS ${manual_pages})
endif()

# What `make` builds: all that is installed, no tests.
add_custom_target(main DEPENDS batchwise_shared batchwise_static batchwise_command batchwise_mpi)
if(TARGET batchwise_man)
    add_dependencies(main batchwise_man)
endif()
