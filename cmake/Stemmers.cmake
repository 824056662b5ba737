# The stemmers of full-text indices: C++ that tools/make_stemmers.py makes of the Python package
# snowballstemmer, whose algorithms are those of the real packages (Snowball 3.1).
function(glaive_add_stemmers target)
  set(languages arabic danish dutch english finnish french german greek hungarian italian norwegian
    portuguese romanian russian spanish swedish tamil turkish)
  # Its licence goes wherever its algorithms go.
  execute_process(COMMAND ${GLAIVE_PYTHON_EXECUTABLE} -c "import importlib.metadata as m, snowballstemmer
print(next(f.locate() for f in m.files('snowballstemmer') if f.name == 'COPYING'))"
    RESULT_VARIABLE missing OUTPUT_VARIABLE licence OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(missing)
    message(FATAL_ERROR "${GLAIVE_PYTHON_EXECUTABLE} has no package snowballstemmer: run `make setup` "
      "(or pip install 'snowballstemmer>=3.1,<3.2')")
  endif()
  set(out ${CMAKE_BINARY_DIR}/generated/stemmers)
  list(TRANSFORM languages PREPEND ${out}/stem_ OUTPUT_VARIABLE sources)
  list(TRANSFORM sources APPEND .cc)
  set(script ${CMAKE_SOURCE_DIR}/tools/make_stemmers.py)
  add_custom_command(OUTPUT ${sources} COMMAND ${GLAIVE_PYTHON_EXECUTABLE} ${script} ${out} ${languages}
    DEPENDS ${script} VERBATIM)
  target_sources(${target} PRIVATE ${sources})
  install(FILES ${licence} DESTINATION glaive/_libs RENAME snowball-COPYING COMPONENT python)
  install(FILES ${licence} DESTINATION share/doc/glaive RENAME snowball-COPYING COMPONENT cpp)
endfunction()
