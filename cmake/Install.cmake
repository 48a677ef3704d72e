# SPDX-License-Identifier: Apache-2.0
# Install rules: library, headers, package config, pkg-config file. No installed file holds an absolute path, so the prefix may be moved.

include(CMakePackageConfigHelpers)

set(TUTTI_CONFIG_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/tutti")
get_target_property(tutti_type tutti TYPE)
set(tutti_IS_STATIC OFF)
if(tutti_type STREQUAL "STATIC_LIBRARY")
  set(tutti_IS_STATIC ON)
endif()

install(TARGETS tutti EXPORT tutti-targets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
if(TARGET tutti_cli)
  # The program finds a shared libtutti beside it, wherever the prefix is.
  file(RELATIVE_PATH library_from_program "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(tutti_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${library_from_program}")
  install(TARGETS tutti_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/tutti" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

install(EXPORT tutti-targets NAMESPACE tutti:: DESTINATION "${TUTTI_CONFIG_DIR}")
configure_package_config_file(cmake/tutti-config.cmake.in "${PROJECT_BINARY_DIR}/package-files/tutti-config.cmake"
                              INSTALL_DESTINATION "${TUTTI_CONFIG_DIR}" NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may break.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package-files/tutti-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/package-files/tutti-config.cmake"
              "${PROJECT_BINARY_DIR}/package-files/tutti-config-version.cmake"
        DESTINATION "${TUTTI_CONFIG_DIR}")
if(tutti_IS_STATIC)
  install(FILES cmake/FindDNNL.cmake cmake/FindHWLOC.cmake DESTINATION "${TUTTI_CONFIG_DIR}")
endif()

# A static library hands its libraries on to the linker of the program; a shared one names them itself.
set(tutti_PC_REQUIRES "")
set(tutti_PC_LIBRARIES "")
if(tutti_IS_STATIC)
  set(tutti_PC_REQUIRES "fmt hwloc zlib")
  set(tutti_PC_LIBRARIES "-ldnnl -lpthread ${OpenMP_CXX_FLAGS}")
  if(TUTTI_ONEDNN_ROOT)
    cmake_path(GET DNNL_LIBRARY PARENT_PATH dnnl_folder)
    string(PREPEND tutti_PC_LIBRARIES "-L\"${dnnl_folder}\" ")
  endif()
  if(CMAKE_DL_LIBS)
    string(APPEND tutti_PC_LIBRARIES " -l${CMAKE_DL_LIBS}")
  endif()
  if(tutti_WITH_MPI)
    foreach(library IN LISTS MPI_C_LIBRARIES)
      cmake_path(GET library STEM name)
      string(REGEX REPLACE "^lib" "" name "${name}")
      string(APPEND tutti_PC_LIBRARIES " -l${name}")
    endforeach()
  endif()
endif()
file(RELATIVE_PATH tutti_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" tutti_PC_PREFIX "${tutti_PC_PREFIX}")
configure_file(cmake/tutti.pc.in "${PROJECT_BINARY_DIR}/package-files/tutti.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/package-files/tutti.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
