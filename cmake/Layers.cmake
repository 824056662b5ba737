# One static library per folder of src/, its *_test.cc in one test binary named <layer>_test.
# New files are picked up by themselves: no list of sources to keep. A folder in a folder, as
# index/text, has names with an underscore: glaive_index_text.
function(glaive_layer_common name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  target_include_directories(glaive_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(glaive_${name} PUBLIC ${ARG_DEPENDS} glaive_arrow Threads::Threads PRIVATE glaive_warnings)
endfunction()

function(glaive_layer_tests folder)
  string(REPLACE "/" "_" name ${folder})
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*_test.cc)
  if(GLAIVE_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE glaive_${name} glaive_warnings GTest::gtest GTest::gmock GTest::gtest_main)
    add_test(NAME ${name}_test COMMAND ${name}_test)
    if(GLAIVE_SANITIZE)
      # Arrow's own allocator hides overruns from AddressSanitizer and, not being instrumented, looks
      # like races to ThreadSanitizer.
      # Its jemalloc takes more locks before a fork than ThreadSanitizer's search for deadlocks can hold.
      set_tests_properties(${name}_test PROPERTIES ENVIRONMENT
        "ARROW_DEFAULT_MEMORY_POOL=system;TSAN_OPTIONS=detect_deadlocks=0 suppressions=${CMAKE_SOURCE_DIR}/cmake/tsan.supp")
    endif()
  endif()
endfunction()

function(glaive_layer folder)
  string(REPLACE "/" "_" name ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  if(NOT sources)  # a layer of headers only
    file(WRITE ${CMAKE_BINARY_DIR}/empty_${name}.cc "")
    set(sources ${CMAKE_BINARY_DIR}/empty_${name}.cc)
  endif()
  add_library(glaive_${name} STATIC ${sources})
  glaive_layer_common(${name} ${ARGN})
  glaive_layer_tests(${folder})
endfunction()

# Protobuf messages: src/format/*.proto, included as "format/<name>.pb.h".
function(glaive_proto_layer name)
  file(GLOB protos CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.proto)
  set(out ${CMAKE_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${out})
  set(generated)
  foreach(proto ${protos})
    get_filename_component(stem ${proto} NAME_WE)
    add_custom_command(
      OUTPUT ${out}/${name}/${stem}.pb.cc ${out}/${name}/${stem}.pb.h
      COMMAND protobuf::protoc --cpp_out=${out} -I${CMAKE_SOURCE_DIR}/src ${proto}
      DEPENDS ${protos})
    list(APPEND generated ${out}/${name}/${stem}.pb.cc)
  endforeach()
  add_library(glaive_${name} STATIC ${generated})
  target_include_directories(glaive_${name} SYSTEM PUBLIC ${out})
  target_link_libraries(glaive_${name} PUBLIC protobuf::libprotobuf)
endfunction()

# Kernels: the only sources with ISA flags, chosen by file name suffix.
function(glaive_simd_layer name)
  glaive_layer(${name} ${ARGN})
  foreach(tier avx avx_fma avx2_fma avx512)
    set(flags_avx -mavx)
    set(flags_avx_fma -mavx -mfma -mf16c)
    set(flags_avx2_fma -mavx2 -mfma -mf16c)
    set(flags_avx512 -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl
      # GCC 12 takes the deliberately undefined operands in its own intrinsics for mistakes.
      $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized> $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*_${tier}.cc)
    if(tier STREQUAL "avx")
      list(FILTER sources EXCLUDE REGEX "_avx_fma\\.cc$")
    endif()
    set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS "${flags_${tier}};-O3")
  endforeach()
  # 512-bit vectors without the registers for them: all callers are in the same file.
  file(GLOB emulated CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*_simde_test.cc)
  set_source_files_properties(${emulated} PROPERTIES COMPILE_OPTIONS "-Wno-psabi")
endfunction()
