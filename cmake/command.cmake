# The command. It sees the public header only (src is not on its include path), and holds the library, so that
# build/batchwise runs from anywhere.
file(GLOB command_sources CONFIGURE_DEPENDS src/cli/*.c)
file(GLOB train_sources CONFIGURE_DEPENDS src/train/*.c)

if(command_sources AND train_sources)
    add_executable(batchwise_command ${command_sources})
    target_link_libraries(batchwise_command PRIVATE batchwise_flags batchwise_static)
    set_target_properties(batchwise_command PROPERTIES
        OUTPUT_NAME batchwise
        C_VISIBILITY_PRESET hidden
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endif()

find_program(SCDOC scdoc)
if(SCDOC AND EXISTS ${PROJECT_SOURCE_DIR}/man/batchwise.1.scd)
    add_custom_command(OUTPUT batchwise.1
        COMMAND ${SCDOC} < ${PROJECT_SOURCE_DIR}/man/batchwise.1.scd > batchwise.1
        DEPENDS man/batchwise.1.scd
        VERBATIM)
    add_custom_target(batchwise_man ALL DEPENDS batchwise.1)
endif()
