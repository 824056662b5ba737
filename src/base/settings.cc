#include "base/settings.h"

#include <algorithm>

namespace glaive {

Result<bool> ParseSwitch(const std::string& name, std::string value) {
  std::transform(value.begin(), value.end(), value.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  if (value == "true" || value == "1" || value == "on") return true;
  if (value == "false" || value == "0" || value == "off") return false;
  return InvalidInput("Invalid input, ", name, " must be \"true\" or \"false\", not \"",
                      value, "\"");
}

}  // namespace glaive
