# Single kernels beside the machine's limits: bench/run.sh runs it. Not installed.
add_executable(bench_ops bench/ops.c)
target_include_directories(bench_ops PRIVATE include src)
target_link_libraries(bench_ops PRIVATE batchwise_flags batchwise_static)
set_property(SOURCE bench/ops.c APPEND PROPERTY COMPILE_OPTIONS -ffp-contract=fast -O3)
set_target_properties(bench_ops PROPERTIES OUTPUT_NAME ops RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)

# Reading data beside the least that it costs.
add_executable(bench_data bench/data.c)
target_include_directories(bench_data PRIVATE include src)
target_link_libraries(bench_data PRIVATE batchwise_flags batchwise_static)
set_target_properties(bench_data PROPERTIES OUTPUT_NAME data RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)

# What sums over ranks cost, by their size; the file says how it is started.
add_executable(bench_ranks bench/ranks.c)
target_include_directories(bench_ranks PRIVATE include src)
target_link_libraries(bench_ranks PRIVATE batchwise_flags batchwise_static)
set_target_properties(bench_ranks PROPERTIES OUTPUT_NAME ranks RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)

# What checkpoints cost a training.
add_executable(bench_checkpoint bench/checkpoint.c)
target_include_directories(bench_checkpoint PRIVATE include src)
target_link_libraries(bench_checkpoint PRIVATE batchwise_flags batchwise_static)
set_target_properties(bench_checkpoint PROPERTIES OUTPUT_NAME checkpoint RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
