// Values of options that users give as text.
#pragma once

#include <string>

#include "base/status.h"

namespace glaive {

// "true", "1", "on", or "false", "0", "off", in any case; InvalidInput names `name`.
Result<bool> ParseSwitch(const std::string& name, std::string value);

}  // namespace glaive
