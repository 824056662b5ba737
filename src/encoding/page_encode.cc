// Chooses the layout and codec of a page.
//
// Rules: docs/format/file.md, section "Writer decisions".
#include "encoding/page_encode.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <arrow/array/data.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <arrow/util/bit_util.h>

#include "encoding/compress.h"
#include "encoding/dictionary_encode.h"
#include "encoding/fsst_encode.h"
#include "encoding/out_bytes.h"
#include "encoding/packed_encode.h"

namespace glaive::encoding {
namespace {

namespace pb = lance::encodings21;

// Values at least this long are zipped rather than put in mini-blocks.
constexpr int64_t kFullZipBytes = 256;
// Two values of a chunk must stay below the 2 GiB that its size field can say.
constexpr int64_t kMaxMiniBlockValue = int64_t{1} << 29;
// Bit-packed levels that one chunk may hold, bytes.
constexpr int64_t kLevelBudgetBytes = 16 * 1024;
// Longer values are compressed one by one.
constexpr int64_t kLongValueBytes = 32 * 1024;
constexpr int64_t kDictionaryIndexBits = 2;

using Arrays = std::vector<std::shared_ptr<arrow::ArrayData>>;

// Bits that mini-blocks would spend on each of many values that are `scalar` or 0.
int64_t PackedBits(std::span<const uint8_t> scalar, int64_t bits) {
  if (bits == 64 || bits == 128) return kDictionaryIndexBits;
  if (bits > 32 || bits == 24) return bits;
  uint32_t word = 0;
  std::memcpy(&word, scalar.data(), scalar.size());
  return std::bit_width(word);
}

// Calls `visit(value index)` for every valid value until it returns false.
template <typename Visit>
bool AllValid(const Levels& levels, Visit visit) {
  if (levels.def.empty()) {
    for (int64_t i = 0; i < levels.num_visible; ++i) {
      if (!visit(i)) return false;
    }
    return true;
  }
  int64_t value = 0;
  for (uint16_t def : levels.def) {
    if (def > levels.max_visible_def) continue;
    if (def == 0 && !visit(value)) return false;
    ++value;
  }
  return true;
}

// The bytes of the only value, when all valid values are equal. There are some.
std::optional<std::vector<uint8_t>> FindConstant(const Levels& levels,
                                                 const FixedValues& values) {
  const auto buffer = values.Contiguous();
  const uint8_t* bytes = buffer->data();
  int64_t first = -1;
  if (values.bits == 1) {
    bool scalar = false;
    const bool same = AllValid(levels, [&](int64_t i) {
      const bool bit = arrow::bit_util::GetBit(bytes, i);
      if (first < 0) {
        first = i;
        scalar = bit;
      }
      return bit == scalar;
    });
    if (!same) return std::nullopt;
    return std::vector<uint8_t>{static_cast<uint8_t>(scalar)};
  }
  const size_t width = static_cast<size_t>(values.byte_width());
  if (levels.def.empty()) {
    const size_t total = width * static_cast<size_t>(values.count);
    if (std::memcmp(bytes, bytes + width, total - width) != 0) return std::nullopt;
    first = 0;
  } else {
    const bool same = AllValid(levels, [&](int64_t i) {
      if (first < 0) first = i;
      return std::memcmp(bytes + first * static_cast<int64_t>(width),
                         bytes + i * static_cast<int64_t>(width), width) == 0;
    });
    if (!same) return std::nullopt;
  }
  const uint8_t* at = bytes + first * static_cast<int64_t>(width);
  return std::vector<uint8_t>(at, at + width);
}

std::optional<std::string_view> FindConstant(const Levels& levels,
                                             const VariableValues& values) {
  std::optional<std::string_view> scalar;
  const bool same = AllValid(levels, [&](int64_t i) {
    const std::string_view value = values.value(i);
    if (!scalar) scalar = value;
    return value == *scalar;
  });
  if (!same) return std::nullopt;
  return scalar;
}

class PageEncoder {
 public:
  PageEncoder(const PageColumn& column, const Arrays& arrays)
      : column_(column),
        options_(column.options),
        arrays_(arrays),
        levels_(BuildLevels(arrays, column.path, column.always)) {}

  Result<std::vector<EncodedPage>> Encode() {
    if (levels_.num_visible == 0) return One(AssembleAllNull(levels_, options_));
    const arrow::DataType& type = *levels_.values[0].data->type;
    if (type.id() == arrow::Type::STRUCT && type.num_fields() == 0)
      return EncodeEmptyStruct();
    const bool any_valid =
        levels_.def.empty() ||
        std::find(levels_.def.begin(), levels_.def.end(), 0) != levels_.def.end();
    if (!any_valid && !NeedsValues()) return One(AssembleAllNull(levels_, options_));
    if (column_.packed) return EncodePacked();
    if (type.id() == arrow::Type::DICTIONARY) return EncodeDictionary();
    if (type.id() == arrow::Type::FIXED_SIZE_LIST) return EncodeFixedList();
    const int64_t bits = FixedBits(type);
    if (bits > 0) return EncodeFixed(bits);
    if (arrow::is_base_binary_like(type.id())) return EncodeVariable();
    return NotSupported("values of type ", type.ToString());
  }

 private:
  // Upstream reads the nulls of a constant page as nulls of the leaf, and then refuses
  // them in a fixed-size list of structs whose members are declared as never null: what
  // lies under such nulls has to be stored.
  bool NeedsValues() const {
    return levels_.has_def() && levels_.layers[0] == pb::REPDEF_ALL_VALID_ITEM &&
           std::find(column_.path.begin(), column_.path.end(), PathNode::kFixedStruct) !=
               column_.path.end();
  }

  static std::vector<EncodedPage> One(EncodedPage page) {
    std::vector<EncodedPage> out;
    out.push_back(std::move(page));
    return out;
  }

  // Constant pages keep their levels raw: beyond a certain number of rows, packed levels
  // and packed values of about `value_bits` are smaller, in spite of what mini-block
  // pages cost beside them.
  bool ConstantPays(int64_t value_bits) const {
    constexpr int64_t kMiniBlockBits = 8 * 384;
    const int64_t raw = 16 * (levels_.has_rep() + levels_.has_def()) * levels_.num_levels;
    const int level_bits =
        std::bit_width(levels_.max_rep) + std::bit_width(levels_.max_def);
    return raw <= kMiniBlockBits + level_bits * levels_.num_levels +
                      value_bits * levels_.num_visible;
  }

  bool FullZip(int64_t longest) const {
    if (longest > kMaxMiniBlockValue) return true;
    if (options_.structural != Structural::kAuto) {
      return options_.structural == Structural::kFullZip;
    }
    return longest >= kFullZipBytes;
  }

  Result<std::vector<EncodedPage>> EncodeEmptyStruct() {
    EncodedPage page;
    page.num_rows = levels_.num_rows;
    page.layout.mutable_constant_layout()->add_layers(pb::REPDEF_NULLABLE_ITEM);
    return One(std::move(page));
  }

  Result<std::vector<EncodedPage>> EncodeFixed(int64_t bits) {
    GLAIVE_ASSIGN_OR_RETURN(FixedValues values, GatherFixed(levels_.values, bits));
    values.pieces = {values.Contiguous()};
    if (options_.v2_2 && !NeedsValues()) {
      auto scalar = FindConstant(levels_, values);
      if (scalar && ConstantPays(PackedBits(*scalar, bits))) {
        return One(AssembleConstant(levels_, *scalar, nullptr));
      }
    }
    const auto full_zip = [&] { return AssembleFullZip(levels_, values); };
    GLAIVE_ASSIGN_OR_RETURN(auto dictionary, TryDictionary(values, options_));
    if (dictionary) {
      GLAIVE_ASSIGN_OR_RETURN(auto encoded,
                              EncodeMiniBlock(dictionary->indices, options_));
      return MiniBlockOr(encoded, &dictionary->dictionary, full_zip);
    }
    if (FullZip(bits / 8)) return FullZipPage(full_zip);
    GLAIVE_ASSIGN_OR_RETURN(auto encoded, EncodeMiniBlock(values, options_));
    return MiniBlockOr(encoded, nullptr, full_zip);
  }

  Result<std::vector<EncodedPage>> EncodeVariable() {
    GLAIVE_ASSIGN_OR_RETURN(VariableValues values, GatherVariable(levels_));
    if (options_.v2_2 && !NeedsValues() && ConstantPays(kDictionaryIndexBits)) {
      if (auto scalar = FindConstant(levels_, values)) {
        const std::span bytes(reinterpret_cast<const uint8_t*>(scalar->data()),
                              scalar->size());
        return One(AssembleConstant(levels_, bytes, &values));
      }
    }
    const auto full_zip = [&] { return ZipVariable(values); };
    GLAIVE_ASSIGN_OR_RETURN(auto dictionary, TryDictionary(values, options_));
    if (dictionary) {
      GLAIVE_ASSIGN_OR_RETURN(auto encoded,
                              EncodeMiniBlock(dictionary->indices, options_));
      return MiniBlockOr(encoded, &dictionary->dictionary, full_zip);
    }
    if (FullZip(values.max_length())) return FullZipPage(full_zip);
    GLAIVE_ASSIGN_OR_RETURN(auto encoded, EncodeMiniBlock(values, options_));
    return MiniBlockOr(encoded, nullptr, full_zip);
  }

  Result<std::vector<EncodedPage>> EncodeFixedList() {
    GLAIVE_ASSIGN_OR_RETURN(FixedListValues values, GatherFixedList(levels_.values));
    const bool boolean = values.items.bits == 1;
    const auto full_zip = [&]() -> Result<EncodedPage> {
      if (boolean) return NotSupported("fixed-size lists of booleans in a full-zip page");
      return AssembleFullZip(levels_, values);
    };
    const int64_t row_bytes =
        boolean ? 0 : values.items_per_row() * values.items.bits / 8;
    if (!boolean && FullZip(row_bytes)) return FullZipPage(full_zip);
    GLAIVE_ASSIGN_OR_RETURN(auto encoded, EncodeMiniBlock(values, options_));
    return MiniBlockOr(encoded, nullptr, full_zip);
  }

  Result<std::vector<EncodedPage>> EncodeDictionary() {
    const arrow::ArrayData& first = *levels_.values[0].data;
    const auto& type = static_cast<const arrow::DictionaryType&>(*first.type);
    GLAIVE_ASSIGN_OR_RETURN(FixedValues indices,
                            GatherFixed(levels_.values, FixedBits(*type.index_type())));
    indices.pieces = {ClearNullIndices(indices)};
    GLAIVE_ASSIGN_OR_RETURN(PageDictionary dictionary,
                            EncodeArrowDictionary(*first.dictionary, options_));
    GLAIVE_ASSIGN_OR_RETURN(auto encoded, EncodeMiniBlock(indices, options_));
    return MiniBlockOr(encoded, &dictionary, []() -> Result<EncodedPage> {
      return NotSupported("a row with so many empty lists of dictionary values");
    });
  }

  // Index 0 where the value is null: what lies there may point outside the dictionary.
  std::shared_ptr<arrow::Buffer> ClearNullIndices(const FixedValues& indices) const {
    auto in = indices.Contiguous();
    if (levels_.def.empty()) return in;
    const size_t width = static_cast<size_t>(indices.byte_width());
    OutBytes out(static_cast<size_t>(in->size()));
    out.Append(in->data(), static_cast<size_t>(in->size()));
    uint8_t* at = out.data();
    for (uint16_t def : levels_.def) {
      if (def > levels_.max_visible_def) continue;
      if (def != 0) std::memset(at, 0, width);
      at += width;
    }
    return out.Finish();
  }

  Result<std::vector<EncodedPage>> EncodePacked() {
    GLAIVE_ASSIGN_OR_RETURN(PackedRows rows,
                            PackRows(levels_.values, column_.member_options, options_));
    if (rows.variable) {
      return FullZipPage(
          [&] { return AssembleFullZip(levels_, rows.variable_rows, rows.encoding); });
    }
    GLAIVE_ASSIGN_OR_RETURN(
        auto encoded, EncodeMiniBlockPacked(rows.fixed_rows, rows.member_bits, options_));
    return MiniBlockOr(encoded, nullptr, []() -> Result<EncodedPage> {
      return NotSupported("packed structs of this size in this file version");
    });
  }

  // Full-zip form of strings and bytes.
  Result<EncodedPage> ZipVariable(const VariableValues& values) {
    pb::CompressiveEncoding encoding;
    const auto describe_variable = [&](pb::CompressiveEncoding* out) {
      out->mutable_variable()->mutable_offsets()->mutable_flat()->set_bits_per_value(
          static_cast<uint64_t>(8 * values.offset_bytes()));
    };
    const bool enough = values.num_bytes() >= kLongValueBytes;
    const bool long_values =
        options_.compression == Scheme::kDefault && values.max_length() > kLongValueBytes;
    if (enough && (options_.general() || long_values)) {
      GLAIVE_ASSIGN_OR_RETURN(
          auto compressor, Compressor::Make(Scheme::kZstd, options_.compression_level));
      VariableValues packed;
      packed.large = values.large;
      packed.count = values.count;
      packed.offsets.push_back(0);
      OutBytes bytes(static_cast<size_t>(values.num_bytes()) / 2);
      for (int64_t i = 0; i < values.count; ++i) {
        const std::string_view value = values.value(i);
        GLAIVE_RETURN_NOT_OK(compressor.Append(
            {reinterpret_cast<const uint8_t*>(value.data()), value.size()}, &bytes));
        packed.offsets.push_back(static_cast<int64_t>(bytes.size()));
      }
      packed.owners.push_back(bytes.Finish());
      packed.bytes = packed.owners.back()->data();
      compressor.Describe(encoding.mutable_general()->mutable_compression());
      describe_variable(encoding.mutable_general()->mutable_values());
      return AssembleFullZip(levels_, packed, encoding);
    }
    if (WantsFsst(values, options_)) {
      GLAIVE_ASSIGN_OR_RETURN(FsstValues packed, FsstEncode(values));
      encoding.mutable_fsst()->set_symbol_table(std::move(packed.symbol_table));
      describe_variable(encoding.mutable_fsst()->mutable_values());
      return AssembleFullZip(levels_, packed.values, encoding);
    }
    describe_variable(&encoding);
    return AssembleFullZip(levels_, values, encoding);
  }

  template <typename FullZipFn>
  Result<std::vector<EncodedPage>> FullZipPage(FullZipFn full_zip) {
    GLAIVE_ASSIGN_OR_RETURN(EncodedPage page, full_zip());
    return One(std::move(page));
  }

  // A mini-block page; several when levels overflow its chunks; else a full-zip page.
  template <typename FullZipFn>
  Result<std::vector<EncodedPage>> MiniBlockOr(const MiniBlockValues& encoded,
                                               const PageDictionary* dictionary,
                                               FullZipFn full_zip) {
    if (auto page = AssembleMiniBlock(levels_, encoded, dictionary, options_)) {
      return One(std::move(*page));
    }
    const std::vector<int64_t> cuts = CutRows();
    if (cuts.size() <= 2) return FullZipPage(full_zip);
    std::vector<EncodedPage> out;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      GLAIVE_ASSIGN_OR_RETURN(auto pages,
                              EncodePages(column_, SliceRows(cuts[i], cuts[i + 1])));
      for (EncodedPage& page : pages) out.push_back(std::move(page));
    }
    return out;
  }

  // Row numbers, first 0 and last the number of rows, between which levels stay within
  // the budget of one chunk; a single larger row stands alone.
  std::vector<int64_t> CutRows() const {
    int64_t total_rows = 0;
    for (const auto& array : arrays_) total_rows += array->length;
    std::vector<int64_t> cuts = {0};
    if (levels_.has_rep() && levels_.num_levels > levels_.num_visible) {
      const int bits = std::bit_width(levels_.max_rep) + std::bit_width(levels_.max_def);
      const int64_t budget = std::min<int64_t>(kLevelBudgetBytes * 8 / bits, 65535);
      const int64_t slots_per_row = levels_.num_rows / total_rows;
      int64_t piece_start = 0;  // level
      int64_t row_start = 0;    // level
      int64_t slot = -1;
      for (int64_t i = 0; i < levels_.num_levels; ++i) {
        if (levels_.rep[static_cast<size_t>(i)] != levels_.max_rep) continue;
        ++slot;
        if (slot % slots_per_row != 0) continue;
        // The row that ends here began at row_start.
        if (i - piece_start > budget && row_start > piece_start) {
          cuts.push_back(slot / slots_per_row - 1);
          piece_start = row_start;
        }
        row_start = i;
      }
      if (levels_.num_levels - piece_start > budget && row_start > piece_start) {
        cuts.push_back(total_rows - 1);
      }
    }
    cuts.push_back(total_rows);
    return cuts;
  }

  Arrays SliceRows(int64_t begin, int64_t end) const {
    Arrays out;
    int64_t at = 0;
    for (const auto& array : arrays_) {
      const int64_t from = std::max(begin, at) - at;
      const int64_t to = std::min(end, at + array->length) - at;
      if (from < to) out.push_back(array->Slice(from, to - from));
      at += array->length;
    }
    return out;
  }

  const PageColumn& column_;
  const EncodeOptions& options_;
  const Arrays& arrays_;
  const Levels levels_;
};

}  // namespace

Result<std::vector<EncodedPage>> EncodePages(const PageColumn& column,
                                             const Arrays& arrays) {
  return PageEncoder(column, arrays).Encode();
}

}  // namespace glaive::encoding
