# Hashes of many small trainings, to prove that a change leaves every bit as it was: cmake --build build --target bits, then
# tests/bits/compare.sh. Public header only.
file(GLOB bits_sources CONFIGURE_DEPENDS tests/bits/*.c)
add_executable(bits ${bits_sources})
target_link_libraries(bits PRIVATE batchwise_flags batchwise_static)
set_target_properties(bits PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bits)
if(NOT BW_TESTS)
    set_target_properties(bits PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
