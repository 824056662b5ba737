// The AVX-512 kernels once more, in portable C: tested on machines that lack AVX-512.
#define GLAIVE_SIMDE
#include "simd/distance_avx512.cc"
