# Every third-party library, resolved in one place.
# Arrow C++ comes from the pyarrow wheel of the chosen Python, or from find_package(Arrow).
set(GLAIVE_PYTHON_EXECUTABLE "" CACHE FILEPATH "Python whose pyarrow wheel provides Arrow C++")
if(NOT GLAIVE_PYTHON_EXECUTABLE)
  if(SKBUILD)  # the Python that builds the wheel
    set(GLAIVE_PYTHON_EXECUTABLE ${Python_EXECUTABLE})
  elseif(EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python)
    set(GLAIVE_PYTHON_EXECUTABLE ${CMAKE_SOURCE_DIR}/.venv/bin/python)
  else()
    find_program(GLAIVE_PYTHON_EXECUTABLE python3)
  endif()
endif()

execute_process(
  COMMAND ${GLAIVE_PYTHON_EXECUTABLE} -c
    "import importlib.util as u, os; print(os.path.dirname(u.find_spec('pyarrow').origin))"
  OUTPUT_VARIABLE PYARROW_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(PYARROW_DIR AND EXISTS ${PYARROW_DIR}/include/arrow/api.h)
  file(GLOB ARROW_SO ${PYARROW_DIR}/libarrow.so.*)
  file(GLOB ARROW_COMPUTE_SO ${PYARROW_DIR}/libarrow_compute.so.*)
  list(GET ARROW_SO 0 ARROW_SO)
  add_library(glaive_arrow INTERFACE)
  target_include_directories(glaive_arrow SYSTEM INTERFACE ${PYARROW_DIR}/include)
  target_link_libraries(glaive_arrow INTERFACE ${ARROW_SO} ${ARROW_COMPUTE_SO})
  target_link_options(glaive_arrow INTERFACE -Wl,-rpath,${PYARROW_DIR})
else()
  find_package(Arrow REQUIRED)
  find_package(ArrowCompute REQUIRED)
  add_library(glaive_arrow INTERFACE)
  target_link_libraries(glaive_arrow INTERFACE Arrow::arrow_shared ArrowCompute::arrow_compute_shared)
endif()

find_package(Protobuf REQUIRED)
find_package(Threads REQUIRED)

find_path(ROARING_INCLUDE roaring/roaring.h REQUIRED)
find_library(ROARING_LIBRARY roaring REQUIRED)
find_path(NLOHMANN_JSON_INCLUDE nlohmann/json.hpp REQUIRED)
add_library(Roaring::roaring INTERFACE IMPORTED)
target_include_directories(Roaring::roaring INTERFACE ${ROARING_INCLUDE})
target_link_libraries(Roaring::roaring INTERFACE ${ROARING_LIBRARY})

if(GLAIVE_TESTS)
  find_package(GTest REQUIRED)
  # The AVX-512 kernels in portable C, so that they are tested everywhere (Debian: libsimde-dev).
  find_path(SIMDE_INCLUDE simde/x86/avx512.h REQUIRED)
  enable_testing()
endif()
