// Assembles full-zip pages: control word, length and bytes of each value side by side.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include <arrow/util/bitmap_ops.h>

#include "encoding/out_bytes.h"
#include "encoding/page_encode.h"

namespace glaive::encoding {
namespace {

namespace pb = lance::encodings21;

// Width and layout of the control words of one page.
struct Control {
  int rep_bits = 0;
  int def_bits = 0;
  int bytes = 0;

  explicit Control(const Levels& levels) {
    const auto largest = [](const std::vector<uint16_t>& v) {
      return v.empty() ? uint16_t{0} : *std::max_element(v.begin(), v.end());
    };
    rep_bits = std::bit_width(largest(levels.rep));
    def_bits = std::bit_width(largest(levels.def));
    const int bits = rep_bits + def_bits;
    bytes = bits == 0 ? 0 : bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
  }

  uint32_t Word(const Levels& levels, size_t i) const {
    const uint32_t rep = levels.rep.empty() ? 0 : levels.rep[i];
    const uint32_t def = levels.def.empty() ? 0 : levels.def[i];
    return rep << def_bits | def;
  }

  // Also tells the readers which levels the words hold.
  void Describe(const Levels& levels, pb::FullZipLayout* layout) const {
    layout->set_bits_rep(static_cast<uint32_t>(rep_bits));
    layout->set_bits_def(static_cast<uint32_t>(def_bits));
    layout->set_num_items(static_cast<uint32_t>(levels.num_levels));
    layout->set_num_visible_items(static_cast<uint32_t>(levels.num_visible));
    for (auto layer : levels.layers) layout->add_layers(layer);
  }
};

Status CheckSize(const Levels& levels, int64_t row_bytes) {
  if (row_bytes > std::numeric_limits<uint32_t>::max() / 8) {
    return InvalidInput("values of ", row_bytes,
                        " bytes are too wide for this file format");
  }
  if (levels.num_levels > std::numeric_limits<uint32_t>::max()) {
    return InvalidInput(
        "a page would hold more than 2^32 - 1 values; write smaller batches");
  }
  return Status::OK();
}

// Byte position of every row start and of the end, in the smallest integers that hold
// `bound`.
std::shared_ptr<arrow::Buffer> RowIndex(const std::vector<uint64_t>& starts,
                                        uint64_t bound) {
  const int width = bound <= 0xFF ? 1 : bound <= 0xFFFF ? 2 : bound <= 0xFFFFFFFF ? 4 : 8;
  OutBytes out(starts.size() * static_cast<size_t>(width));
  for (uint64_t start : starts) {
    std::memcpy(out.Extend(static_cast<size_t>(width)), &start,
                static_cast<size_t>(width));
  }
  return out.Finish();
}

bool StartsRow(const Levels& levels, size_t i) {
  return levels.rep.empty() || levels.rep[i] == levels.max_rep;
}

// `write_row(row, to)` stores the bytes of one value.
template <typename WriteRow>
Result<EncodedPage> ZipFixed(const Levels& levels, int64_t row_bytes,
                             WriteRow write_row) {
  const Control control(levels);
  EncodedPage page;
  page.num_rows = levels.num_rows;
  OutBytes data(static_cast<size_t>(levels.num_visible * row_bytes +
                                    levels.num_levels * control.bytes));
  const uint64_t bound = static_cast<uint64_t>(levels.num_visible * row_bytes +
                                               levels.num_levels * control.bytes);
  std::vector<uint64_t> starts;
  int64_t row = 0;
  for (int64_t i = 0; i < levels.num_levels; ++i) {
    const size_t at = static_cast<size_t>(i);
    if (levels.has_rep() && StartsRow(levels, at)) starts.push_back(data.size());
    const uint32_t word = control.Word(levels, at);
    data.Append(&word, static_cast<size_t>(control.bytes));
    if (levels.visible(i)) write_row(row++, data.Extend(static_cast<size_t>(row_bytes)));
  }
  if (levels.has_rep()) starts.push_back(data.size());
  page.buffers.push_back({data.Finish()});
  if (levels.has_rep()) page.buffers.push_back({RowIndex(starts, bound)});
  auto* layout = page.layout.mutable_full_zip_layout();
  control.Describe(levels, layout);
  layout->set_bits_per_value(static_cast<uint32_t>(8 * row_bytes));
  return page;
}

// Without levels the page is the packed array itself: nothing is copied.
EncodedPage PassThrough(const Levels& levels, const FixedValues& items,
                        int64_t row_bits) {
  EncodedPage page;
  page.num_rows = levels.num_rows;
  page.buffers.push_back(items.pieces);
  auto* layout = page.layout.mutable_full_zip_layout();
  layout->set_bits_per_value(static_cast<uint32_t>(row_bits));
  layout->set_num_items(static_cast<uint32_t>(levels.num_levels));
  layout->set_num_visible_items(static_cast<uint32_t>(levels.num_visible));
  for (auto layer : levels.layers) layout->add_layers(layer);
  return page;
}

}  // namespace

Result<EncodedPage> AssembleFullZip(const Levels& levels, const FixedValues& values) {
  GLAIVE_RETURN_NOT_OK(CheckSize(levels, values.byte_width()));
  EncodedPage page;
  if (values.bits == 1) {  // one byte per boolean
    const auto bits = values.Contiguous();
    GLAIVE_ASSIGN_OR_RETURN(page, ZipFixed(levels, 1, [&](int64_t row, uint8_t* to) {
                              *to = bits->data()[row >> 3] >> (row & 7) & 1;
                            }));
  } else if (!levels.has_rep() && !levels.has_def()) {
    page = PassThrough(levels, values, values.bits);
  } else {
    const auto bytes = values.Contiguous();
    const int64_t width = values.byte_width();
    GLAIVE_ASSIGN_OR_RETURN(page, ZipFixed(levels, width, [&](int64_t row, uint8_t* to) {
                              std::memcpy(to, bytes->data() + row * width,
                                          static_cast<size_t>(width));
                            }));
  }
  page.layout.mutable_full_zip_layout()
      ->mutable_value_compression()
      ->mutable_flat()
      ->set_bits_per_value(page.layout.full_zip_layout().bits_per_value());
  return page;
}

Result<EncodedPage> AssembleFullZip(const Levels& levels, const FixedListValues& values) {
  const bool constant = values.all_items_null && values.items.bits != 1;
  // A row's item bits must fill bytes; booleans stay in mini-blocks for this reason.
  const int64_t item_bytes =
      constant ? 0 : values.items_per_row() * values.items.bits / 8;
  int64_t row_bytes = item_bytes;
  int64_t cumulative = 1;
  std::vector<int64_t> widths;  // items of a row at each layer
  for (size_t layer = 0; layer < values.dimensions.size(); ++layer) {
    cumulative *= values.dimensions[layer];
    widths.push_back(cumulative);
    if (values.validity[layer] != nullptr) row_bytes += (cumulative + 7) / 8;
  }
  GLAIVE_RETURN_NOT_OK(CheckSize(levels, row_bytes));
  EncodedPage page;
  if (!levels.has_rep() && !levels.has_def() && !values.has_validity()) {
    page = PassThrough(levels, values.items, 8 * row_bytes);
  } else {
    const auto items = constant ? nullptr : values.items.Contiguous();
    GLAIVE_ASSIGN_OR_RETURN(
        page, ZipFixed(levels, row_bytes, [&](int64_t row, uint8_t* to) {
          for (size_t layer = 0; layer < widths.size(); ++layer) {
            if (values.validity[layer] == nullptr) continue;
            const int64_t bytes = (widths[layer] + 7) / 8;
            to[bytes - 1] = 0;
            if (widths[layer] % 8 == 0) {
              std::memcpy(to, values.validity[layer]->data() + row * bytes,
                          static_cast<size_t>(bytes));
            } else {
              std::memset(to, 0, static_cast<size_t>(bytes));
              arrow::internal::CopyBitmap(values.validity[layer]->data(),
                                          row * widths[layer], widths[layer], to, 0);
            }
            to += bytes;
          }
          if (!constant) {
            std::memcpy(to, items->data() + row * item_bytes,
                        static_cast<size_t>(item_bytes));
          }
        }));
  }
  auto* encoding = page.layout.mutable_full_zip_layout()->mutable_value_compression();
  for (size_t layer = 0; layer < values.dimensions.size(); ++layer) {
    auto* list = encoding->mutable_fixed_size_list();
    list->set_items_per_value(static_cast<uint64_t>(values.dimensions[layer]));
    list->set_has_validity(values.validity[layer] != nullptr);
    encoding = list->mutable_values();
  }
  if (constant) {
    encoding->mutable_constant();
  } else {
    encoding->mutable_flat()->set_bits_per_value(
        static_cast<uint64_t>(values.items.bits));
  }
  return page;
}

Result<EncodedPage> AssembleFullZip(const Levels& levels, const VariableValues& values,
                                    const pb::CompressiveEncoding& encoding) {
  GLAIVE_RETURN_NOT_OK(CheckSize(levels, 0));
  const Control control(levels);
  const size_t length_bytes = static_cast<size_t>(values.offset_bytes());
  const uint64_t bound = static_cast<uint64_t>(values.num_bytes()) +
                         static_cast<uint64_t>(levels.num_levels) *
                             (static_cast<uint64_t>(control.bytes) + length_bytes);
  EncodedPage page;
  page.num_rows = levels.num_rows;
  OutBytes data(bound);
  std::vector<uint64_t> starts;
  starts.reserve(static_cast<size_t>(levels.num_rows) + 1);
  int64_t row = 0;
  for (int64_t i = 0; i < levels.num_levels; ++i) {
    const size_t at = static_cast<size_t>(i);
    if (StartsRow(levels, at)) starts.push_back(data.size());
    const uint32_t word = control.Word(levels, at);
    data.Append(&word, static_cast<size_t>(control.bytes));
    if (!levels.visible(i)) continue;
    if (levels.def.empty() || levels.def[at] == 0) {
      const uint64_t length = static_cast<uint64_t>(values.length(row));
      data.Append(&length, length_bytes);
      data.Append(values.value(row).data(), length);
    }
    ++row;
  }
  starts.push_back(data.size());
  page.buffers.push_back({data.Finish()});
  page.buffers.push_back({RowIndex(starts, bound)});
  auto* layout = page.layout.mutable_full_zip_layout();
  control.Describe(levels, layout);
  layout->set_bits_per_offset(static_cast<uint32_t>(8 * length_bytes));
  *layout->mutable_value_compression() = encoding;
  return page;
}

}  // namespace glaive::encoding
