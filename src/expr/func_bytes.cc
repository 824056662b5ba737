// Digests of strings and binary values, and their notation in hex and base64.
#include "expr/func_bytes.h"

#include <algorithm>
#include <array>
#include <random>

#include <arrow/scalar.h>
#include <arrow/type.h>

#include "base/evaluation_error.h"
#include "expr/coercion.h"
#include "expr/digest.h"
#include "expr/function.h"
#include "expr/kernel.h"

namespace glaive::expr {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Text or binary; an untyped NULL is text.
Result<ValuePtr> BytesArgument(const CallSite& call, size_t i) {
  const ValuePtr& argument = call.arguments[i];
  const TypePtr type = ValueType(argument->type());
  if (type->id() == arrow::Type::NA) return MakeNull(arrow::utf8());
  if (IsText(*type) || IsBytes(*type)) return Coerce(argument, type);
  const Status wrong = WrongArgument(call, i, "a string or binary value");
  return EvaluationError(wrong.message());
}

void AppendHex(std::string_view bytes, std::string* out) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out->push_back(kHexDigits[byte >> 4]);
    out->push_back(kHexDigits[byte & 15]);
  }
}

ValuePtr DigestKernel(ValuePtr bytes, Digest digest, bool as_hex) {
  const TypePtr type = as_hex ? arrow::utf8() : arrow::binary();
  return MakeKernel(type, {std::move(bytes)},
                    [type, digest, as_hex](const KernelArgs& args) {
                      const Texts values(args[0]);
                      return MapText(args, type, [&](int64_t i, std::string* out) {
                        if (!as_hex) {
                          AppendDigest(digest, values[i], out);
                        } else {
                          std::string bytes_of_digest;
                          AppendDigest(digest, values[i], &bytes_of_digest);
                          AppendHex(bytes_of_digest, out);
                        }
                        return Result<bool>(true);
                      });
                    });
}

// md5() is written in hex, the others are bytes.
Result<ValuePtr> NamedDigest(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr bytes, BytesArgument(call, 0));
  const Digest digest = *DigestOf(call.name);
  return DigestKernel(std::move(bytes), digest, digest == Digest::kMd5);
}

Result<std::string> ConstantName(const CallSite& call) {
  const arrow::Buffer* name = ConstantText(call.arguments[1]);
  if (name != nullptr) return name->ToString();
  return EvaluationError("expression: function ", call.name,
                         " needs a constant string as its second argument");
}

Result<ValuePtr> DigestByName(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr bytes, BytesArgument(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(const std::string name, ConstantName(call));
  const auto digest = DigestOf(name);
  if (!digest) {
    return InvalidInput("expression: there is no digest '", name.substr(0, 50),
                        "' (md5, sha224, sha256, sha384, sha512, blake2b, blake2s, "
                        "blake3)");
  }
  return DigestKernel(std::move(bytes), *digest, /*as_hex=*/false);
}

enum class Notation : uint8_t { kHex, kBase64, kBase64Padded };

Result<Notation> NotationArgument(const CallSite& call) {
  GLAIVE_ASSIGN_OR_RETURN(const std::string name, ConstantName(call));
  if (name == "hex") return Notation::kHex;
  if (name == "base64") return Notation::kBase64;
  if (name == "base64pad") return Notation::kBase64Padded;
  return InvalidInput("expression: there is no encoding '", name.substr(0, 50),
                      "' (base64, base64pad, hex)");
}

void AppendBase64(std::string_view bytes, bool padded, std::string* out) {
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k <= count; ++k) {
      out->push_back(kBase64Digits[bits >> (18 - 6 * k) & 63]);
    }
    if (padded) out->append(3 - count, '=');
  }
}

Result<ValuePtr> Encode(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr bytes, BytesArgument(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(const Notation notation, NotationArgument(call));
  return MakeKernel(
      arrow::utf8(), {std::move(bytes)}, [notation](const KernelArgs& args) {
        const Texts values(args[0]);
        return MapText(args, arrow::utf8(), [&](int64_t i, std::string* out) {
          if (notation == Notation::kHex) {
            AppendHex(values[i], out);
          } else {
            AppendBase64(values[i], notation == Notation::kBase64Padded, out);
          }
          return Result<bool>(true);
        });
      });
}

Status CannotDecode(std::string_view text, std::string_view notation) {
  return InvalidInput("expression: '", text.substr(0, 100), "' is no ", notation);
}

Status DecodeHex(std::string_view text, std::string* out) {
  if (text.size() % 2 != 0) return CannotDecode(text, "hex: its length is odd");
  int high = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    int digit = -1;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
    if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
    if (digit < 0) return CannotDecode(text, "hex");
    if (i % 2 == 0) {
      high = digit;
    } else {
      out->push_back(static_cast<char>(high * 16 + digit));
    }
  }
  return Status::OK();
}

// With padding or without; bits behind the last byte must be 0.
Status DecodeBase64(std::string_view text, bool needs_padding, std::string* out) {
  std::string_view digits = text;
  while (!digits.empty() && digits.back() == '=' && text.size() - digits.size() < 2) {
    digits.remove_suffix(1);
  }
  const size_t padding = text.size() - digits.size();
  const size_t wanted = (4 - digits.size() % 4) % 4;
  if (digits.size() % 4 == 1 || (padding != wanted && (padding != 0 || needs_padding))) {
    return CannotDecode(text, "base64: its length does not fit");
  }
  uint32_t bits = 0;
  int count = 0;
  for (const char c : digits) {
    const size_t digit = kBase64Digits.find(c);
    if (digit == std::string_view::npos) return CannotDecode(text, "base64");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out->push_back(static_cast<char>(bits >> count & 0xff));
    }
  }
  if ((bits & ((1U << count) - 1)) != 0) return CannotDecode(text, "base64");
  return Status::OK();
}

Result<ValuePtr> Decode(CallSite call) {
  GLAIVE_ASSIGN_OR_RETURN(ValuePtr text, BytesArgument(call, 0));
  GLAIVE_ASSIGN_OR_RETURN(const Notation notation, NotationArgument(call));
  return MakeKernel(
      arrow::binary(), {std::move(text)}, [notation](const KernelArgs& args) {
        const Texts values(args[0]);
        return MapText(
            args, arrow::binary(), [&](int64_t i, std::string* out) -> Result<bool> {
              if (notation == Notation::kHex) {
                GLAIVE_RETURN_NOT_OK(DecodeHex(values[i], out));
              } else {
                GLAIVE_RETURN_NOT_OK(
                    DecodeBase64(values[i], notation == Notation::kBase64Padded, out));
              }
              return true;
            });
      });
}

// Another one for each row: version 4.
Result<ValuePtr> Uuid(CallSite) {
  return MakeKernel(
      arrow::utf8(), {},
      [](const KernelArgs& args) {
        thread_local std::mt19937_64 random{[] {
          std::random_device device;
          std::seed_seq seed{device(), device(), device(), device()};
          return std::mt19937_64(seed);
        }()};
        return MapText(args, arrow::utf8(), [&](int64_t, std::string* out) {
          std::array<char, 16> bytes{};
          for (size_t half = 0; half < 2; ++half) {
            const uint64_t bits = random();
            for (size_t k = 0; k < 8; ++k) {
              bytes[half * 8 + k] = static_cast<char>(bits >> (8 * k));
            }
          }
          bytes[6] = static_cast<char>((bytes[6] & 0x0f) | 0x40);
          bytes[8] = static_cast<char>((bytes[8] & 0x3f) | 0x80);
          const std::string_view all(bytes.data(), bytes.size());
          constexpr std::array<size_t, 6> kCuts = {0, 4, 6, 8, 10, 16};
          for (size_t k = 0; k + 1 < kCuts.size(); ++k) {
            if (k > 0) out->push_back('-');
            AppendHex(all.substr(kCuts[k], kCuts[k + 1] - kCuts[k]), out);
          }
          return Result<bool>(true);
        });
      },
      Volatility::kVolatile);
}

}  // namespace

const std::vector<FunctionEntry>& BytesFunctions() {
  static const std::vector<FunctionEntry> functions = {
      {"md5", 1, 1, NamedDigest},    {"sha224", 1, 1, NamedDigest},
      {"sha256", 1, 1, NamedDigest}, {"sha384", 1, 1, NamedDigest},
      {"sha512", 1, 1, NamedDigest}, {"digest", 2, 2, DigestByName},
      {"encode", 2, 2, Encode},      {"decode", 2, 2, Decode},
      {"uuid", 0, 0, Uuid},
  };
  return functions;
}

}  // namespace glaive::expr
