// Macros of the kernel files. Included first by each of them.
#pragma once

#define GLAIVE_UNROLL _Pragma("GCC unroll 16")

// Sums live in registers only when everything between them is inlined, which the
// compiler's limits for files as big as the kernels would not do.
#define GLAIVE_INLINE inline __attribute__((always_inline))
#define GLAIVE_INLINE_LAMBDA __attribute__((always_inline))
