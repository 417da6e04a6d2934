# What lies below the library, gathered in `batchwise_dependencies`. Each is used by one folder or file of src only
# (tools/outside.txt).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# Archives only. pkg-config's modules look for their libraries with the same endings.
if(BW_STATIC)
    if(BW_ONEDNN)
        message(FATAL_ERROR "BW_STATIC: oneDNN and OpenMP are shared libraries; add -DBW_ONEDNN=OFF")
    endif()
    set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
    set(PKG_CONFIG_ARGN --static)
endif()

if(BW_ONEDNN)
    # oneDNN, version 2 or 3.
    if(BW_ONEDNN_ROOT)
        set(where PATHS ${BW_ONEDNN_ROOT} PATH_SUFFIXES include lib lib64 NO_DEFAULT_PATH)
    endif()
    find_path(BW_ONEDNN_INCLUDE oneapi/dnnl/dnnl.h ${where} REQUIRED)
    find_library(BW_ONEDNN_LIBRARY dnnl ${where} REQUIRED)

    # oneDNN computes with OpenMP, and its number of threads is set by calls to the runtime that it uses itself. Our own code
    # holds no OpenMP pragma, so nothing is compiled with -fopenmp; with clang that would bring a second runtime.
    find_library(BW_GOMP_LIBRARY libgomp.so.1)
    if(NOT BW_GOMP_LIBRARY)
        foreach(compiler IN ITEMS ${CMAKE_C_COMPILER} gcc)
            execute_process(COMMAND ${compiler} -print-file-name=libgomp.so OUTPUT_VARIABLE file
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
            if(IS_ABSOLUTE "${file}")
                set(BW_GOMP_LIBRARY ${file} CACHE FILEPATH "libgomp, the OpenMP runtime that oneDNN uses" FORCE)
                break()
            endif()
        endforeach()
    endif()
    if(NOT BW_GOMP_LIBRARY)
        message(FATAL_ERROR "libgomp not found: install it (Debian: libgomp1) or set BW_GOMP_LIBRARY")
    endif()
endif()

pkg_check_modules(ZIP REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(PNG REQUIRED IMPORTED_TARGET libpng)
pkg_check_modules(JPEG REQUIRED IMPORTED_TARGET libjpeg) # libjpeg-turbo, or another with its interface of version 6 and jpeg_mem_src
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)

if(BW_STATIC)
    foreach(name IN ITEMS zip z png jpeg jansson)
        find_library(BW_ARCHIVE_${name} ${name} PATHS ${ZIP_LIBDIR})
        if(NOT BW_ARCHIVE_${name})
            message(FATAL_ERROR "BW_STATIC: there is no lib${name}.a here (make static builds libzip's, which Debian does not have)")
        endif()
    endforeach()
endif()

add_library(batchwise_dependencies INTERFACE)
if(BW_ONEDNN)
    target_include_directories(batchwise_dependencies SYSTEM INTERFACE ${BW_ONEDNN_INCLUDE})
    target_link_libraries(batchwise_dependencies INTERFACE ${BW_ONEDNN_LIBRARY} ${BW_GOMP_LIBRARY})
    set(onednn_libraries -ldnnl -l:libgomp.so.1)
endif()
target_link_libraries(batchwise_dependencies INTERFACE
    PkgConfig::ZIP PkgConfig::ZLIB PkgConfig::PNG PkgConfig::JPEG PkgConfig::JANSSON Threads::Threads m)

# The same for those who link to the installed static library.
set(BW_PRIVATE_LIBRARIES ${onednn_libraries} -lzip -lz -lpng -ljpeg -ljansson -pthread -lm)
