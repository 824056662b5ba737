// One-line descriptions of page encodings.
#pragma once

#include <string>
#include <string_view>

namespace glaive::tools {

// `serialised`: a PageLayout of versions 2.1 and later.
std::string DescribePageLayout(std::string_view serialised);
// `serialised`: an ArrayEncoding of version 2.0.
std::string DescribeArrayEncoding(std::string_view serialised);

}  // namespace glaive::tools
