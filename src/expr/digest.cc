#include "expr/digest.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

#include "expr/blake.h"

namespace glaive::expr {
namespace {

// The last blocks of a message: what does not fill a block, a bit, zeros, its length.
template <size_t kBlock, size_t kLength>
std::string Padded(std::string_view data, bool big_endian) {
  std::string tail(data.substr(data.size() / kBlock * kBlock));
  tail.push_back('\x80');
  while (tail.size() % kBlock != kBlock - kLength) tail.push_back('\0');
  const uint64_t bits = uint64_t{data.size()} * 8;
  for (size_t i = 0; i < kLength; ++i) {
    const size_t place = big_endian ? kLength - 1 - i : i;
    tail.push_back(place < 8 ? static_cast<char>(bits >> (8 * place)) : '\0');
  }
  return tail;
}

template <size_t kBlock, size_t kLength, typename Step>
void ForEachBlock(std::string_view data, bool big_endian, const Step& step) {
  const std::string tail = Padded<kBlock, kLength>(data, big_endian);
  for (size_t i = 0; i + kBlock <= data.size(); i += kBlock) step(data.data() + i);
  for (size_t i = 0; i < tail.size(); i += kBlock) step(tail.data() + i);
}

template <typename Word>
Word LoadBig(const char* bytes) {
  Word word = 0;
  for (size_t i = 0; i < sizeof(Word); ++i) {
    word = static_cast<Word>(word << 8) | static_cast<unsigned char>(bytes[i]);
  }
  return word;
}

template <typename Word>
void StoreBig(Word word, std::string* out) {
  for (size_t i = sizeof(Word); i-- > 0;)
    out->push_back(static_cast<char>(word >> 8 * i));
}

void Md5(std::string_view data, std::string* out) {
  static constexpr std::array<int, 16> kShifts = {7, 12, 17, 22, 5, 9,  14, 20,
                                                  4, 11, 16, 23, 6, 10, 15, 21};
  static const std::array<uint32_t, 64> kSines = [] {
    std::array<uint32_t, 64> sines{};
    for (size_t i = 0; i < 64; ++i) {
      sines[i] = static_cast<uint32_t>(
          std::floor(std::fabs(std::sin(static_cast<double>(i + 1))) * 4294967296.0));
    }
    return sines;
  }();
  std::array<uint32_t, 4> state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  ForEachBlock<64, 8>(data, /*big_endian=*/false, [&](const char* block) {
    std::array<uint32_t, 16> words{};
    for (size_t i = 0; i < 64; ++i) {
      words[i / 4] |= static_cast<uint32_t>(static_cast<unsigned char>(block[i]))
                      << (8 * (i % 4));
    }
    auto [a, b, c, d] = state;
    for (size_t i = 0; i < 64; ++i) {
      uint32_t mixed = 0;
      size_t word = 0;
      switch (i / 16) {
        case 0:
          mixed = (b & c) | (~b & d);
          word = i;
          break;
        case 1:
          mixed = (d & b) | (~d & c);
          word = (5 * i + 1) % 16;
          break;
        case 2:
          mixed = b ^ c ^ d;
          word = (3 * i + 5) % 16;
          break;
        default:
          mixed = c ^ (b | ~d);
          word = (7 * i) % 16;
      }
      mixed += a + kSines[i] + words[word];
      a = d;
      d = c;
      c = b;
      b += std::rotl(mixed, kShifts[i / 16 * 4 + i % 4]);
    }
    state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
  });
  for (const uint32_t word : state) {
    for (size_t i = 0; i < 4; ++i) out->push_back(static_cast<char>(word >> (8 * i)));
  }
}

// The 64 fractional bits of the cube roots of the first 80 primes, found by bisection in
// whole numbers; SHA-256 takes the upper halves of the first 64.
const std::array<uint64_t, 80>& CubeRoots() {
  static const std::array<uint64_t, 80> roots = [] {
    // Is (whole + fraction / 2^64)^3 <= prime?
    const auto fits = [](uint64_t whole, uint64_t fraction, uint64_t prime) {
      // In limbs of 32 bits: root = whole * 2^64 + fraction, cube against prime * 2^192.
      std::array<uint64_t, 3> root = {fraction & 0xffffffff, fraction >> 32, whole};
      std::array<uint64_t, 6> square{};
      std::array<uint64_t, 9> cube{};
      const auto multiply = [](const auto& a, const auto& b, auto* product) {
        for (size_t i = 0; i < a.size(); ++i) {
          uint64_t carry = 0;
          for (size_t j = 0; j < b.size(); ++j) {
            const uint64_t sum = (*product)[i + j] + a[i] * b[j] + carry;
            (*product)[i + j] = sum & 0xffffffff;
            carry = sum >> 32;
          }
          for (size_t k = i + b.size(); carry != 0; ++k) {
            const uint64_t sum = (*product)[k] + carry;
            (*product)[k] = sum & 0xffffffff;
            carry = sum >> 32;
          }
        }
      };
      multiply(root, root, &square);
      multiply(square, root, &cube);
      // prime * 2^192 is never a cube, so the digits behind the point only matter when
      // the whole parts are equal: then the cube is larger.
      return (cube[6] | cube[7] << 32) < prime;
    };
    std::array<uint64_t, 80> found{};
    uint64_t prime = 2;
    for (size_t i = 0; i < found.size(); ++prime) {
      bool is_prime = true;
      for (uint64_t d = 2; d * d <= prime; ++d) is_prime &= prime % d != 0;
      if (!is_prime) continue;
      uint64_t whole = 1;
      while ((whole + 1) * (whole + 1) * (whole + 1) <= prime) ++whole;
      uint64_t fraction = 0;
      for (uint64_t bit = uint64_t{1} << 63; bit != 0; bit >>= 1) {
        if (fits(whole, fraction | bit, prime)) fraction |= bit;
      }
      found[i++] = fraction;
    }
    return found;
  }();
  return roots;
}

// What SHA-256 and SHA-512 differ in.
struct Narrow {
  using Word = uint32_t;
  static constexpr size_t kRounds = 64;
  static constexpr std::array<int, 12> kTurns = {7, 18, 3,  17, 19, 10,
                                                 2, 13, 22, 6,  11, 25};
  static uint32_t Root(size_t i) { return static_cast<uint32_t>(CubeRoots()[i] >> 32); }
};
struct Wide {
  using Word = uint64_t;
  static constexpr size_t kRounds = 80;
  static constexpr std::array<int, 12> kTurns = {1,  8,  7,  19, 61, 6,
                                                 28, 34, 39, 14, 18, 41};
  static uint64_t Root(size_t i) { return CubeRoots()[i]; }
};

template <typename Kind>
void Sha2(std::array<typename Kind::Word, 8> state, size_t bytes, std::string_view data,
          std::string* out) {
  using Word = typename Kind::Word;
  constexpr auto kTurns = Kind::kTurns;
  constexpr size_t kBlock = sizeof(Word) * 16;
  ForEachBlock<kBlock, sizeof(Word) * 2>(
      data, /*big_endian=*/true, [&](const char* block) {
        std::array<Word, Kind::kRounds> words{};
        for (size_t i = 0; i < 16; ++i) {
          words[i] = LoadBig<Word>(block + i * sizeof(Word));
        }
        for (size_t i = 16; i < words.size(); ++i) {
          const Word x = words[i - 15];
          const Word y = words[i - 2];
          words[i] =
              words[i - 16] + words[i - 7] +
              (std::rotr(x, kTurns[0]) ^ std::rotr(x, kTurns[1]) ^ x >> kTurns[2]) +
              (std::rotr(y, kTurns[3]) ^ std::rotr(y, kTurns[4]) ^ y >> kTurns[5]);
        }
        std::array<Word, 8> s = state;
        for (size_t i = 0; i < words.size(); ++i) {
          const Word low = s[7] + words[i] + Kind::Root(i) +
                           (std::rotr(s[4], kTurns[9]) ^ std::rotr(s[4], kTurns[10]) ^
                            std::rotr(s[4], kTurns[11])) +
                           ((s[4] & s[5]) ^ (~s[4] & s[6]));
          const Word high = (std::rotr(s[0], kTurns[6]) ^ std::rotr(s[0], kTurns[7]) ^
                             std::rotr(s[0], kTurns[8])) +
                            ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
          s = {low + high, s[0], s[1], s[2], s[3] + low, s[4], s[5], s[6]};
        }
        for (size_t i = 0; i < 8; ++i) state[i] += s[i];
      });
  std::string full;
  for (const Word word : state) StoreBig(word, &full);
  out->append(full, 0, bytes);
}

}  // namespace

std::optional<Digest> DigestOf(std::string_view name) {
  if (name == "md5") return Digest::kMd5;
  if (name == "sha224") return Digest::kSha224;
  if (name == "sha256") return Digest::kSha256;
  if (name == "sha384") return Digest::kSha384;
  if (name == "sha512") return Digest::kSha512;
  if (name == "blake2b") return Digest::kBlake2b;
  if (name == "blake2s") return Digest::kBlake2s;
  if (name == "blake3") return Digest::kBlake3;
  return std::nullopt;
}

void AppendDigest(Digest digest, std::string_view data, std::string* out) {
  switch (digest) {
    case Digest::kMd5:
      return Md5(data, out);
    case Digest::kSha224:
      return Sha2<Narrow>({0xc1059ed8, 0x367cd507, 0x3070dd17, 0xf70e5939, 0xffc00b31,
                           0x68581511, 0x64f98fa7, 0xbefa4fa4},
                          28, data, out);
    case Digest::kSha256:
      return Sha2<Narrow>({0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                           0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
                          32, data, out);
    case Digest::kSha384:
      return Sha2<Wide>({0xcbbb9d5dc1059ed8, 0x629a292a367cd507, 0x9159015a3070dd17,
                         0x152fecd8f70e5939, 0x67332667ffc00b31, 0x8eb44a8768581511,
                         0xdb0c2e0d64f98fa7, 0x47b5481dbefa4fa4},
                        48, data, out);
    case Digest::kSha512:
      return Sha2<Wide>({0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                         0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                         0x1f83d9abfb41bd6b, 0x5be0cd19137e2179},
                        64, data, out);
    case Digest::kBlake2b:
      return AppendBlake2b(data, out);
    case Digest::kBlake2s:
      return AppendBlake2s(data, out);
    case Digest::kBlake3:
      return AppendBlake3(data, out);
  }
}

}  // namespace glaive::expr
