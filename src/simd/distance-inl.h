// The distance kernels, written once over the vector operations of a tier.
//
// Included once by each distance_<tier>.cc, inside its anonymous namespace (everything
// here must have internal linkage: code compiled for one CPU must never be picked by the
// linker for another), after the tier has defined
//
//   template <typename T> struct Ops    for the element types it serves, with
//     T, Vec, Sum (float, double or int64_t: what a finished sum is), kLanes,
//     kMaxDim (0: unlimited),
//     Zero(), Load(p), LoadTail(p, count) (0 < count < kLanes, zeros behind), Add(a, b),
//     Sub(a, b), MulAdd(a, b, sum) = sum + a * b, Reduce(vec) -> Sum
//   double SquareRoot(double)
//   kQueriesPerBlock, kVectorsPerBlock   of the many-to-many forms: what fits the
//   registers
//
// Every pair of vectors has two accumulators: even chunks of kLanes elements go to the
// first, odd ones to the second, the tail to the second. All block shapes do it so; that
// is what makes results independent of the place in a batch.

constexpr size_t Min(size_t a, size_t b) { return a < b ? a : b; }

// Stops the compiler from loading an operand again for each use: loads are what the
// blocks save.
template <typename Vec>
GLAIVE_INLINE void KeepInRegister(Vec& v) {
#if defined(__AVX__) && !defined(GLAIVE_SIMDE)
  if constexpr (requires { v.low; }) {
    __asm__("" : "+v"(v.low), "+v"(v.high));
  } else {
    __asm__("" : "+v"(v));
  }
#else
  (void)v;
#endif
}

enum class Step { kL2, kDot };

template <class O, Step kStep>
GLAIVE_INLINE typename O::Vec Accumulate(typename O::Vec a, typename O::Vec b,
                                         typename O::Vec sum) {
  if constexpr (kStep == Step::kL2) {
    const typename O::Vec difference = O::Sub(a, b);
    return O::MulAdd(difference, difference, sum);
  } else {
    return O::MulAdd(a, b, sum);
  }
}

// Adds one chunk, loaded by `load`, to the sums of Q x V pairs.
template <class O, Step kStep, int Q, int V, typename Loader>
GLAIVE_INLINE void AddChunk(const typename O::T* queries, size_t query_stride,
                            const typename O::T* vectors, size_t stride, size_t at,
                            Loader load, typename O::Vec (&sums)[Q][V]) {
  typename O::Vec v[V];
  GLAIVE_UNROLL
  for (int j = 0; j < V; ++j) {
    v[j] = load(vectors + static_cast<size_t>(j) * stride + at);
    if constexpr (Q > 1) KeepInRegister(v[j]);
  }
  GLAIVE_UNROLL
  for (int i = 0; i < Q; ++i) {
    typename O::Vec q = load(queries + static_cast<size_t>(i) * query_stride + at);
    if constexpr (V > 1) KeepInRegister(q);
    GLAIVE_UNROLL
    for (int j = 0; j < V; ++j) {
      sums[i][j] = Accumulate<O, kStep>(q, v[j], sums[i][j]);
    }
  }
}

// The sums of Q queries against V vectors over elements [0, dim). Integer lanes overflow
// after O::kMaxDim elements.
template <class O, Step kStep, int Q, int V>
inline void SumBlock(const typename O::T* queries, size_t query_stride,
                     const typename O::T* vectors, size_t stride, size_t dim,
                     typename O::Sum (&out)[Q][V]) {
  using T = typename O::T;
  using Vec = typename O::Vec;
  constexpr size_t kLanes = O::kLanes;
  Vec even[Q][V], odd[Q][V];
  GLAIVE_UNROLL
  for (int i = 0; i < Q; ++i) {
    GLAIVE_UNROLL
    for (int j = 0; j < V; ++j) even[i][j] = odd[i][j] = O::Zero();
  }
  const auto whole = [](const T* p) GLAIVE_INLINE_LAMBDA { return O::Load(p); };
  size_t at = 0;
  for (; at + 2 * kLanes <= dim; at += 2 * kLanes) {
    AddChunk<O, kStep, Q, V>(queries, query_stride, vectors, stride, at, whole, even);
    AddChunk<O, kStep, Q, V>(queries, query_stride, vectors, stride, at + kLanes, whole,
                             odd);
  }
  if (at + kLanes <= dim) {
    AddChunk<O, kStep, Q, V>(queries, query_stride, vectors, stride, at, whole, even);
    at += kLanes;
  }
  if (at < dim) {
    const size_t count = dim - at;
    const auto tail = [count](const T* p)
                          GLAIVE_INLINE_LAMBDA { return O::LoadTail(p, count); };
    AddChunk<O, kStep, Q, V>(queries, query_stride, vectors, stride, at, tail, odd);
  }
  GLAIVE_UNROLL
  for (int i = 0; i < Q; ++i) {
    GLAIVE_UNROLL
    for (int j = 0; j < V; ++j) out[i][j] = O::Reduce(O::Add(even[i][j], odd[i][j]));
  }
}

// As above for any dim.
template <class O, Step kStep, int Q, int V>
GLAIVE_INLINE void Sums(const typename O::T* queries, size_t query_stride,
                        const typename O::T* vectors, size_t stride, size_t dim,
                        typename O::Sum (&out)[Q][V]) {
  if constexpr (O::kMaxDim == 0) {
    SumBlock<O, kStep, Q, V>(queries, query_stride, vectors, stride, dim, out);
  } else {
    SumBlock<O, kStep, Q, V>(queries, query_stride, vectors, stride, Min(dim, O::kMaxDim),
                             out);
    for (size_t at = O::kMaxDim; at < dim; at += O::kMaxDim) {
      typename O::Sum more[Q][V];
      SumBlock<O, kStep, Q, V>(queries + at, query_stride, vectors + at, stride,
                               Min(dim - at, O::kMaxDim), more);
      for (int i = 0; i < Q; ++i) {
        for (int j = 0; j < V; ++j) out[i][j] += more[i][j];
      }
    }
  }
}

template <Step kStep, typename Sum>
inline float Finish(Sum sum) {
  if constexpr (kStep == Step::kL2) {
    return static_cast<float>(sum);
  } else {
    return static_cast<float>(1 - sum);
  }
}

// One vector after the other: several at once would share the loads of the query, but
// their streams halve what the hardware prefetchers bring in from memory.
template <class O, Step kStep>
void OneToMany(const typename O::T* query, const typename O::T* vectors, size_t stride,
               size_t n, size_t dim, float* out) {
  for (size_t i = 0; i < n; ++i) {
    typename O::Sum sum[1][1];
    Sums<O, kStep, 1, 1>(query, 0, vectors + i * stride, stride, dim, sum);
    out[i] = Finish<kStep>(sum[0][0]);
  }
}

template <class O>
double Norm(const typename O::T* vector, size_t dim) {
  typename O::Sum sum[1][1];
  Sums<O, Step::kDot, 1, 1>(vector, 0, vector, 0, dim, sum);
  return SquareRoot(static_cast<double>(sum[0][0]));
}

inline float CosineDistance(double dot, double norm_a, double norm_b) {
  return static_cast<float>(1 - dot / (norm_a * norm_b));
}

// One pass over a vector for a·b and b·b; for dims that one block can sum.
template <class O>
inline float CosineInOnePass(const typename O::T* query, double query_norm,
                             const typename O::T* vector, size_t dim) {
  using Vec = typename O::Vec;
  constexpr size_t kLanes = O::kLanes;
  Vec dot[2] = {O::Zero(), O::Zero()};
  Vec square[2] = {O::Zero(), O::Zero()};
  const auto add = [&](size_t at, int parity, auto load) GLAIVE_INLINE_LAMBDA {
    Vec v = load(vector + at);
    KeepInRegister(v);
    dot[parity] = O::MulAdd(load(query + at), v, dot[parity]);
    square[parity] = O::MulAdd(v, v, square[parity]);
  };
  const auto whole = [](const typename O::T* p)
                         GLAIVE_INLINE_LAMBDA { return O::Load(p); };
  size_t at = 0;
  for (; at + 2 * kLanes <= dim; at += 2 * kLanes) {
    add(at, 0, whole);
    add(at + kLanes, 1, whole);
  }
  if (at + kLanes <= dim) {
    add(at, 0, whole);
    at += kLanes;
  }
  if (at < dim) {
    const size_t count = dim - at;
    add(at, 1, [count](const typename O::T* p) GLAIVE_INLINE_LAMBDA {
      return O::LoadTail(p, count);
    });
  }
  const double squares = static_cast<double>(O::Reduce(O::Add(square[0], square[1])));
  return CosineDistance(static_cast<double>(O::Reduce(O::Add(dot[0], dot[1]))),
                        query_norm, SquareRoot(squares));
}

template <class O>
void OneToManyCosine(const typename O::T* query, double query_norm,
                     const typename O::T* vectors, size_t stride, size_t n, size_t dim,
                     float* out) {
  if (O::kMaxDim == 0 || dim <= O::kMaxDim) {
    for (size_t i = 0; i < n; ++i) {
      out[i] = CosineInOnePass<O>(query, query_norm, vectors + i * stride, dim);
    }
    return;
  }
  for (size_t i = 0; i < n; ++i) {
    const typename O::T* vector = vectors + i * stride;
    typename O::Sum dot[1][1];
    Sums<O, Step::kDot, 1, 1>(query, 0, vector, 0, dim, dot);
    out[i] =
        CosineDistance(static_cast<double>(dot[0][0]), query_norm, Norm<O>(vector, dim));
  }
}

constexpr size_t kMaxTile = 256;

// Vectors that stay in the first-level cache while all queries pass over them.
template <typename T>
inline size_t TileSize(size_t dim, size_t multiple) {
  constexpr size_t kTileBytes = 16 << 10;
  const size_t fitting = kTileBytes / (dim == 0 ? 1 : Min(dim, kTileBytes) * sizeof(T));
  const size_t tile = Min(fitting, kMaxTile) / multiple * multiple;
  return tile == 0 ? multiple : tile;
}

// Starts to fetch the next tile while the queries pass over this one: the blocks read
// several vectors side by side, which the hardware prefetchers follow badly.
template <typename T>
inline void PrefetchTile(const T* vectors, size_t stride, size_t n, size_t dim) {
  constexpr size_t kLine = 64;
  for (size_t i = 0; i < n; ++i) {
    const char* bytes = reinterpret_cast<const char*>(vectors + i * stride);
    for (size_t at = 0; at < dim * sizeof(T); at += kLine) {
      __builtin_prefetch(bytes + at, 0, 2);
    }
  }
}

// Calls finish(query index, vector index, sum) for Q queries against the n vectors of a
// tile.
template <class O, Step kStep, int Q, typename FinishPair>
GLAIVE_INLINE void RowsOfTile(const typename O::T* queries, size_t query_stride,
                              const typename O::T* vectors, size_t stride, size_t n,
                              size_t dim, FinishPair finish) {
  constexpr int V = kVectorsPerBlock;
  size_t i = 0;
  for (; i + V <= n; i += V) {
    typename O::Sum sums[Q][V];
    Sums<O, kStep, Q, V>(queries, query_stride, vectors + i * stride, stride, dim, sums);
    for (int a = 0; a < Q; ++a) {
      for (int b = 0; b < V; ++b) {
        finish(static_cast<size_t>(a), i + static_cast<size_t>(b), sums[a][b]);
      }
    }
  }
  for (; i < n; ++i) {
    typename O::Sum sums[Q][1];
    Sums<O, kStep, Q, 1>(queries, query_stride, vectors + i * stride, stride, dim, sums);
    for (int a = 0; a < Q; ++a) finish(static_cast<size_t>(a), i, sums[a][0]);
  }
}

// Calls finish(query, vector, sum) for all pairs of a tile.
template <class O, Step kStep, typename FinishPair>
GLAIVE_INLINE void Tile(const typename O::T* queries, size_t query_stride,
                        size_t num_queries, const typename O::T* vectors, size_t stride,
                        size_t n, size_t dim, FinishPair finish) {
  constexpr size_t Q = kQueriesPerBlock;
  size_t q = 0;
  for (; q + Q <= num_queries; q += Q) {
    RowsOfTile<O, kStep, Q>(
        queries + q * query_stride, query_stride, vectors, stride, n, dim,
        [&](size_t a, size_t i, typename O::Sum sum) { finish(q + a, i, sum); });
  }
  for (; q < num_queries; ++q) {
    RowsOfTile<O, kStep, 1>(
        queries + q * query_stride, query_stride, vectors, stride, n, dim,
        [&](size_t, size_t i, typename O::Sum sum) { finish(q, i, sum); });
  }
}

template <class O, Step kStep>
void ManyToMany(const typename O::T* queries, size_t query_stride, size_t num_queries,
                const typename O::T* vectors, size_t stride, size_t n, size_t dim,
                float* out, size_t out_stride) {
  const size_t tile = TileSize<typename O::T>(dim, kVectorsPerBlock);
  for (size_t start = 0; start < n; start += tile) {
    float* tile_out = out + start;
    if (n - start > tile) {
      PrefetchTile(vectors + (start + tile) * stride, stride, Min(tile, n - start - tile),
                   dim);
    }
    Tile<O, kStep>(queries, query_stride, num_queries, vectors + start * stride, stride,
                   Min(tile, n - start), dim,
                   [&](size_t q, size_t i, typename O::Sum sum) {
                     tile_out[q * out_stride + i] = Finish<kStep>(sum);
                   });
  }
}

template <class O>
void ManyToManyCosine(const typename O::T* queries, size_t query_stride,
                      size_t num_queries, const double* query_norms,
                      const typename O::T* vectors, size_t stride, size_t n, size_t dim,
                      float* out, size_t out_stride) {
  double norms[kMaxTile];
  const size_t tile = TileSize<typename O::T>(dim, kVectorsPerBlock);
  for (size_t start = 0; start < n; start += tile) {
    const typename O::T* tile_vectors = vectors + start * stride;
    const size_t count = Min(tile, n - start);
    for (size_t i = 0; i < count; ++i) norms[i] = Norm<O>(tile_vectors + i * stride, dim);
    float* tile_out = out + start;
    if (n - start > tile) {
      PrefetchTile(tile_vectors + tile * stride, stride, Min(tile, n - start - tile),
                   dim);
    }
    Tile<O, Step::kDot>(queries, query_stride, num_queries, tile_vectors, stride, count,
                        dim, [&](size_t q, size_t i, typename O::Sum sum) {
                          tile_out[q * out_stride + i] = CosineDistance(
                              static_cast<double>(sum), query_norms[q], norms[i]);
                        });
  }
}

template <typename T>
void SetKernels(VectorKernels<T>* kernels) {
  using O = Ops<T>;
  kernels->l2 = &OneToMany<O, Step::kL2>;
  kernels->dot = &OneToMany<O, Step::kDot>;
  kernels->cosine = &OneToManyCosine<O>;
  kernels->l2_many = &ManyToMany<O, Step::kL2>;
  kernels->dot_many = &ManyToMany<O, Step::kDot>;
  kernels->cosine_many = &ManyToManyCosine<O>;
  kernels->norm = &Norm<O>;
}

// Differing bits of fewer bytes than a vector holds.
inline uint64_t CountTailBits(const uint8_t* a, const uint8_t* b, size_t bytes) {
  uint64_t count = 0;
  size_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    uint64_t x, y;
    __builtin_memcpy(&x, a + at, 8);
    __builtin_memcpy(&y, b + at, 8);
    count += static_cast<uint64_t>(__builtin_popcountll(x ^ y));
  }
  for (; at < bytes; ++at) {
    const unsigned differing = static_cast<unsigned>(a[at] ^ b[at]);
    count += static_cast<uint64_t>(__builtin_popcount(differing));
  }
  return count;
}
