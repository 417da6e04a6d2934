# make install: header, both libraries, pkg-config file, CMake package, command, manual, completions, the digits.
include(CMakePackageConfigHelpers)

install(TARGETS batchwise_shared batchwise_static EXPORT batchwise
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/batchwise.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS batchwise_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES data/digits.npz data/begun.keras data/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/batchwise)

# The file finds the prefix from its own place, so that an installed tree can be moved.
file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" to_prefix ${to_prefix})
list(JOIN BW_PRIVATE_LIBRARIES " " private_libraries)
configure_file(cmake/batchwise.pc.in batchwise.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/batchwise.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/batchwise)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/batchwise-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/batchwise-config-version.cmake DESTINATION ${package})
install(EXPORT batchwise NAMESPACE batchwise:: FILE batchwise-config.cmake DESTINATION ${package})

if(TARGET batchwise_man)
    install(FILES ${manual_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
install(FILES completions/batchwise.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME batchwise)
install(FILES completions/_batchwise DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES completions/batchwise.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
