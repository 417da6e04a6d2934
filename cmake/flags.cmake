# Flags that all of our own code shares: link to `batchwise_flags`. It is not part of what is installed.
add_library(batchwise_flags INTERFACE)

target_compile_definitions(batchwise_flags INTERFACE _GNU_SOURCE)
target_compile_options(batchwise_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wdouble-promotion -Wstrict-prototypes -Wmissing-prototypes -Wvla
    -Wcast-qual -Wformat=2
    $<$<BOOL:${BW_WERROR}>:-Werror>
    # A loop whose length is known in some calls only cannot be unrolled in the others: that is no fault.
    $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed>
    # Never -ffast-math, never -march=native: the same bits on every machine. Sums keep their order; a product and a
    # sum are contracted in kernels only (library.cmake).
    -fno-math-errno -ffp-contract=off
    # After CMake's own -O3; kernels get it back.
    $<$<CONFIG:Release>:-O2>)

if(BW_SANITIZE)
    set(sanitize -fsanitize=${BW_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_compile_options(batchwise_flags INTERFACE ${sanitize} -g -UNDEBUG)
    target_link_options(batchwise_flags INTERFACE ${sanitize})
endif()

# What the fuzzer sees of the program; checksums that it could never guess are not compared.
if(BW_FUZZ)
    target_compile_options(batchwise_flags INTERFACE -fsanitize=fuzzer-no-link)
    target_compile_definitions(batchwise_flags INTERFACE FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION)
endif()
