#include "tools/describe.h"

#include <sstream>

#include "format/encodings.pb.h"
#include "format/encodings21.pb.h"

namespace glaive::tools {
namespace {

namespace v20 = lance::encodings;
namespace v21 = lance::encodings21;

std::string Text(const v21::CompressiveEncoding& encoding);

std::string SchemeName(const v21::BufferCompression& compression) {
  std::string name = compression.scheme() == v21::COMPRESSION_ALGORITHM_LZ4    ? "LZ4"
                     : compression.scheme() == v21::COMPRESSION_ALGORITHM_ZSTD ? "Zstd"
                                                                               : "?";
  if (compression.has_level()) name += ":" + std::to_string(compression.level());
  return name;
}

std::string Text(const v21::VariablePackedStruct& packed) {
  std::ostringstream out;
  out << "VariablePackedStruct[";
  for (int i = 0; i < packed.fields_size(); ++i) {
    const auto& field = packed.fields(i);
    out << (i ? ", " : "") << Text(field.value());
    if (field.has_bits_per_length()) {
      out << " length " << field.bits_per_length();
    } else {
      out << " width " << field.bits_per_value();
    }
  }
  out << "]";
  return out.str();
}

std::string Text(const v21::CompressiveEncoding& encoding) {
  using E = v21::CompressiveEncoding;
  std::ostringstream out;
  switch (encoding.compression_case()) {
    case E::kFlat:
      out << "Flat{" << encoding.flat().bits_per_value() << "}";
      break;
    case E::kVariable:
      out << "Variable(" << Text(encoding.variable().offsets()) << ")";
      break;
    case E::kConstant:
      out << "Constant{" << encoding.constant().value().size() << " bytes}";
      break;
    case E::kOutOfLineBitpacking:
      out << "OutOfLineBitpacking{"
          << encoding.out_of_line_bitpacking().uncompressed_bits_per_value() << "}("
          << Text(encoding.out_of_line_bitpacking().values()) << ")";
      break;
    case E::kInlineBitpacking:
      out << "InlineBitpacking{"
          << encoding.inline_bitpacking().uncompressed_bits_per_value() << "}";
      break;
    case E::kFsst:
      out << "Fsst(" << Text(encoding.fsst().values()) << ")";
      break;
    case E::kDictionary:
      out << "Dictionary{" << encoding.dictionary().num_dictionary_items() << "}("
          << Text(encoding.dictionary().indices()) << ", "
          << Text(encoding.dictionary().items()) << ")";
      break;
    case E::kRle:
      out << "Rle(" << Text(encoding.rle().values()) << ", "
          << Text(encoding.rle().run_lengths()) << ")";
      break;
    case E::kByteStreamSplit:
      out << "ByteStreamSplit(" << Text(encoding.byte_stream_split().values()) << ")";
      break;
    case E::kGeneral:
      out << "General{" << SchemeName(encoding.general().compression()) << "}("
          << Text(encoding.general().values()) << ")";
      break;
    case E::kFixedSizeList:
      out << "FixedSizeList{" << encoding.fixed_size_list().items_per_value()
          << (encoding.fixed_size_list().has_validity() ? ", validity" : "") << "}("
          << Text(encoding.fixed_size_list().values()) << ")";
      break;
    case E::kPackedStruct:
      out << "PackedStruct{";
      for (int i = 0; i < encoding.packed_struct().bits_per_value_size(); ++i) {
        out << (i ? "," : "") << encoding.packed_struct().bits_per_value(i);
      }
      out << "}(" << Text(encoding.packed_struct().values()) << ")";
      break;
    case E::kVariablePackedStruct:
      out << Text(encoding.variable_packed_struct());
      break;
    case E::COMPRESSION_NOT_SET:
      out << "unknown";
      break;
  }
  return out.str();
}

template <typename Layout>
std::string Layers(const Layout& layout) {
  static constexpr const char* kNames[] = {"?",
                                           "all-valid-item",
                                           "all-valid-list",
                                           "nullable-item",
                                           "nullable-list",
                                           "emptyable-list",
                                           "null-and-empty-list"};
  std::string out = "[";
  for (int i = 0; i < layout.layers_size(); ++i) {
    const int kind = layout.layers(i);
    out += (i ? " " : "") + std::string(kind >= 0 && kind <= 6 ? kNames[kind] : "?");
  }
  return out + "]";
}

std::string Text(const v21::MiniBlockLayout& layout) {
  std::ostringstream out;
  out << "mini-block" << (layout.has_large_chunk() ? " (large)" : "") << " items "
      << layout.num_items() << " values " << Text(layout.value_compression());
  if (layout.has_rep_compression()) out << " rep " << Text(layout.rep_compression());
  if (layout.has_def_compression()) out << " def " << Text(layout.def_compression());
  if (layout.has_dictionary()) {
    out << " dictionary " << layout.num_dictionary_items() << " "
        << Text(layout.dictionary());
  }
  out << " buffers " << layout.num_buffers() << " index "
      << layout.repetition_index_depth() << " layers " << Layers(layout);
  return out.str();
}

std::string Text(const v21::FullZipLayout& layout) {
  std::ostringstream out;
  out << "full-zip items " << layout.num_items() << " visible "
      << layout.num_visible_items() << " rep bits " << layout.bits_rep() << " def bits "
      << layout.bits_def();
  if (layout.has_bits_per_offset()) {
    out << " lengths " << layout.bits_per_offset();
  } else {
    out << " width " << layout.bits_per_value();
  }
  out << " values " << Text(layout.value_compression()) << " layers " << Layers(layout);
  return out.str();
}

std::string Text(const v21::ConstantLayout& layout) {
  std::ostringstream out;
  out << "constant";
  if (layout.has_inline_value()) {
    out << " value ";
    for (unsigned char c : layout.inline_value()) {
      static constexpr char kHex[] = "0123456789abcdef";
      out << kHex[c >> 4] << kHex[c & 15];
    }
  }
  if (layout.has_rep_compression()) {
    out << " rep " << layout.num_rep_values() << " " << Text(layout.rep_compression());
  }
  if (layout.has_def_compression()) {
    out << " def " << layout.num_def_values() << " " << Text(layout.def_compression());
  }
  out << " layers " << Layers(layout);
  return out.str();
}

std::string Text(const v21::PageLayout& layout) {
  switch (layout.layout_case()) {
    case v21::PageLayout::kMiniBlockLayout:
      return Text(layout.mini_block_layout());
    case v21::PageLayout::kConstantLayout:
      return Text(layout.constant_layout());
    case v21::PageLayout::kFullZipLayout:
      return Text(layout.full_zip_layout());
    case v21::PageLayout::kBlobLayout:
      return "blob layers " + Layers(layout.blob_layout()) + " of " +
             Text(layout.blob_layout().inner_layout());
    case v21::PageLayout::LAYOUT_NOT_SET:
      break;
  }
  return "unknown layout";
}

std::string Text(const v20::ArrayEncoding& encoding) {
  using E = v20::ArrayEncoding;
  std::ostringstream out;
  switch (encoding.array_encoding_case()) {
    case E::kFlat:
      out << "Flat{" << encoding.flat().bits_per_value();
      if (encoding.flat().has_compression())
        out << ", " << encoding.flat().compression().scheme();
      out << ", buffer " << encoding.flat().buffer().buffer_index() << "}";
      break;
    case E::kNullable: {
      const auto& nullable = encoding.nullable();
      if (nullable.has_no_nulls())
        out << "NoNulls(" << Text(nullable.no_nulls().values()) << ")";
      if (nullable.has_all_nulls()) out << "AllNulls";
      if (nullable.has_some_nulls()) {
        out << "SomeNulls(" << Text(nullable.some_nulls().validity()) << ", "
            << Text(nullable.some_nulls().values()) << ")";
      }
      break;
    }
    case E::kFixedSizeList:
      out << "FixedSizeList{" << encoding.fixed_size_list().dimension() << "}("
          << Text(encoding.fixed_size_list().items()) << ")";
      break;
    case E::kList:
      out << "List{items " << encoding.list().num_items() << ", null adjustment "
          << encoding.list().null_offset_adjustment() << "}("
          << Text(encoding.list().offsets()) << ")";
      break;
    case E::kStruct:
      out << "Struct";
      break;
    case E::kBinary:
      out << "Binary{null adjustment " << encoding.binary().null_adjustment() << "}("
          << Text(encoding.binary().indices()) << ", " << Text(encoding.binary().bytes())
          << ")";
      break;
    case E::kDictionary:
      out << "Dictionary{" << encoding.dictionary().num_dictionary_items() << "}("
          << Text(encoding.dictionary().indices()) << ", "
          << Text(encoding.dictionary().items()) << ")";
      break;
    case E::kFsst:
      out << "Fsst(" << Text(encoding.fsst().binary()) << ")";
      break;
    case E::kPackedStruct:
      out << "PackedStruct[";
      for (int i = 0; i < encoding.packed_struct().inner_size(); ++i) {
        out << (i ? ", " : "") << Text(encoding.packed_struct().inner(i));
      }
      out << "]";
      break;
    case E::kBitpacked:
      out << "Bitpacked{" << encoding.bitpacked().compressed_bits_per_value() << " of "
          << encoding.bitpacked().uncompressed_bits_per_value() << "}";
      break;
    case E::kFixedSizeBinary:
      out << "FixedSizeBinary{" << encoding.fixed_size_binary().byte_width() << "}("
          << Text(encoding.fixed_size_binary().bytes()) << ")";
      break;
    case E::kBitpackedForNonNeg:
      out << "BitpackedForNonNeg{"
          << encoding.bitpacked_for_non_neg().compressed_bits_per_value() << " of "
          << encoding.bitpacked_for_non_neg().uncompressed_bits_per_value() << "}";
      break;
    case E::ARRAY_ENCODING_NOT_SET:
      out << "unknown";
      break;
  }
  return out.str();
}

template <typename Message>
std::string Parsed(std::string_view serialised) {
  Message message;
  if (!message.ParseFromArray(serialised.data(), static_cast<int>(serialised.size()))) {
    return "cannot be parsed";
  }
  return Text(message);
}

}  // namespace

std::string DescribePageLayout(std::string_view serialised) {
  return Parsed<v21::PageLayout>(serialised);
}

std::string DescribeArrayEncoding(std::string_view serialised) {
  return Parsed<v20::ArrayEncoding>(serialised);
}

}  // namespace glaive::tools
