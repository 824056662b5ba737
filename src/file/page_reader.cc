#include "file/page_reader.h"

#include "format/encodings21.pb.h"

namespace glaive::file {

Result<std::unique_ptr<PageReader>> MakeLayoutReader(
    const PageContext& context, const lance::encodings21::PageLayout& layout) {
  switch (layout.layout_case()) {
    case lance::encodings21::PageLayout::kMiniBlockLayout:
      return MakeMiniBlockReader(context, layout.mini_block_layout());
    case lance::encodings21::PageLayout::kConstantLayout:
      return MakeConstantReader(context, layout.constant_layout());
    case lance::encodings21::PageLayout::kFullZipLayout:
      return MakeFullZipReader(context, layout.full_zip_layout());
    case lance::encodings21::PageLayout::kBlobLayout:
      return MakeBlobReader(context, layout.blob_layout());
    case lance::encodings21::PageLayout::LAYOUT_NOT_SET:
      break;
  }
  return NotSupported("a page layout that this build does not know");
}

Result<std::unique_ptr<PageReader>> MakePageReader(const PageContext& context,
                                                   std::string_view layout) {
  lance::encodings21::PageLayout message;
  if (!message.ParseFromArray(layout.data(), static_cast<int>(layout.size()))) {
    return Corruption("the page layout cannot be parsed");
  }
  return MakeLayoutReader(context, message);
}

}  // namespace glaive::file
