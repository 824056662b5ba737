// The Hamming kernels, written once over CountBits(a, b, bytes) of a tier. Included like
// distance-inl.h, after it.

void Hamming(const uint8_t* query, const uint8_t* vectors, size_t stride, size_t n,
             size_t dim, float* out) {
  for (size_t i = 0; i < n; ++i) {
    out[i] = static_cast<float>(CountBits(query, vectors + i * stride, dim));
  }
}

void HammingMany(const uint8_t* queries, size_t query_stride, size_t num_queries,
                 const uint8_t* vectors, size_t stride, size_t n, size_t dim, float* out,
                 size_t out_stride) {
  const size_t tile = TileSize<uint8_t>(dim, 1);
  for (size_t start = 0; start < n; start += tile) {
    for (size_t q = 0; q < num_queries; ++q) {
      Hamming(queries + q * query_stride, vectors + start * stride, stride,
              Min(tile, n - start), dim, out + q * out_stride + start);
    }
  }
}
