# libbatchwise_mpi_<name>: what ranks need of MPI, compiled by the mpicc of each MPI that is installed. The library and the command do
# not link it; they load it when a launcher such as mpirun started them. Without any MPI they are built all the same.
option(BW_MPI "Build libbatchwise_mpi for each MPI whose compiler is found" ON)
set(mpi_libraries)
if(BW_MPI)
    find_program(BW_MPICC mpicc)
    find_program(BW_MPICC_OPENMPI mpicc.openmpi)
    find_program(BW_MPICC_MPICH mpicc.mpich)
endif()

# Which MPI an mpicc belongs to is what its header says; MPICH's relatives (Intel MPI, MVAPICH) share its binary interface.
file(WRITE ${PROJECT_BINARY_DIR}/mpi_name.c "#include <mpi.h>\n#ifdef OPEN_MPI\nbw_is openmpi\n#else\nbw_is mpich\n#endif\n")
foreach(compiler IN ITEMS "${BW_MPICC}" "${BW_MPICC_OPENMPI}" "${BW_MPICC_MPICH}")
    if(NOT BW_MPI OR NOT compiler)
        continue()
    endif()
    execute_process(COMMAND ${compiler} -E ${PROJECT_BINARY_DIR}/mpi_name.c OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE failed)
    if(failed OR NOT text MATCHES "bw_is (openmpi|mpich)")
        message(STATUS "${compiler} does not compile: no libbatchwise_mpi by it")
        continue()
    endif()
    set(library ${PROJECT_BINARY_DIR}/libbatchwise_mpi_${CMAKE_MATCH_1}.so)
    if(library IN_LIST mpi_libraries)
        continue()
    endif()
    message(STATUS "Ranks over MPI: ${compiler} (${CMAKE_MATCH_1})")
    list(APPEND mpi_libraries ${library})
    add_custom_command(OUTPUT ${library}
        COMMAND ${compiler} -std=gnu11 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -I${PROJECT_SOURCE_DIR}/src
            ${PROJECT_SOURCE_DIR}/src/mpi/library.c -o ${library}
        DEPENDS src/mpi/library.c src/mpi/mpi.h
        COMMENT "Building libbatchwise_mpi_${CMAKE_MATCH_1}.so"
        VERBATIM)
endforeach()
add_custom_target(batchwise_mpi ALL DEPENDS ${mpi_libraries})
if(mpi_libraries)
    install(FILES ${mpi_libraries} DESTINATION ${CMAKE_INSTALL_LIBDIR}/batchwise)
endif()
