# SPDX-License-Identifier: Apache-2.0
# Records a project's settings and fails if Tutti changed one of them.

set(watched CMAKE_CXX_FLAGS CMAKE_CXX_FLAGS_RELEASE CMAKE_C_FLAGS CMAKE_EXE_LINKER_FLAGS CMAKE_SHARED_LINKER_FLAGS CMAKE_BUILD_TYPE
    CMAKE_CXX_STANDARD CMAKE_CXX_EXTENSIONS CMAKE_CXX_VISIBILITY_PRESET CMAKE_POSITION_INDEPENDENT_CODE CMAKE_MODULE_PATH
    CMAKE_EXPORT_COMPILE_COMMANDS CMAKE_CXX_COMPILER_LAUNCHER CMAKE_RUNTIME_OUTPUT_DIRECTORY BUILD_SHARED_LIBS BUILD_TESTING)

function(describe result)
  set(text "")
  foreach(name IN LISTS watched)
    string(APPEND text "${name}='${${name}}'\n")
  endforeach()
  foreach(property IN ITEMS COMPILE_OPTIONS COMPILE_DEFINITIONS INCLUDE_DIRECTORIES LINK_OPTIONS)
    get_directory_property(value ${property})
    string(APPEND text "${property}='${value}'\n")
  endforeach()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

macro(remember_settings)
  describe(settings_before)
endmacro()

function(expect_same_settings)
  describe(settings_after)
  if(NOT settings_before STREQUAL settings_after)
    message(FATAL_ERROR "Tutti changed its user's settings from\n${settings_before}to\n${settings_after}")
  endif()
endfunction()
