# `cmake --install <build> --component cpp --prefix <dir>`: headers, one static library, and the
# package that find_package(Glaive) finds.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(archives)
foreach(layer ${GLAIVE_LAYERS})
  list(APPEND archives $<TARGET_FILE:glaive_${layer}>)
endforeach()
set(script ${CMAKE_BINARY_DIR}/libglaive.mri)
list(TRANSFORM archives PREPEND "addlib " OUTPUT_VARIABLE lines)
list(JOIN lines "\n" lines)
file(GENERATE OUTPUT ${script} CONTENT "create ${CMAKE_BINARY_DIR}/libglaive.a\n${lines}\nsave\nend\n")
list(TRANSFORM GLAIVE_LAYERS PREPEND glaive_ OUTPUT_VARIABLE layer_targets)
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/libglaive.a
  COMMAND ${CMAKE_COMMAND} -E rm -f ${CMAKE_BINARY_DIR}/libglaive.a
  COMMAND ${CMAKE_AR} -M < ${script}
  DEPENDS ${layer_targets} ${script} VERBATIM)
add_custom_target(glaive_archive DEPENDS ${CMAKE_BINARY_DIR}/libglaive.a)

install(CODE "execute_process(COMMAND \${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target glaive_archive
  COMMAND_ERROR_IS_FATAL ANY)" COMPONENT cpp)
install(FILES ${CMAKE_BINARY_DIR}/libglaive.a DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cpp)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/glaive DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT cpp
  FILES_MATCHING PATTERN "*.h")
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Glaive)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/GlaiveConfig.cmake.in
  ${CMAKE_BINARY_DIR}/GlaiveConfig.cmake INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/GlaiveConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/GlaiveConfig.cmake ${CMAKE_BINARY_DIR}/GlaiveConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT cpp)
