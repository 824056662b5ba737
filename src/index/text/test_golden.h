// Where the recorded answers of the real packages are.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <nlohmann/json.hpp>

namespace glaive::text {

// tests/golden/text/`name`, found from the folder that the tests run in, below the root
// of the sources.
inline nlohmann::json ReadGolden(const std::string& name) {
  namespace fs = std::filesystem;
  for (fs::path at = fs::current_path();; at = at.parent_path()) {
    const fs::path file = at / "tests/golden/text" / name;
    if (fs::exists(file)) {
      std::ifstream in(file);
      return nlohmann::json::parse(in);
    }
    if (at == at.parent_path()) return {};
  }
}

}  // namespace glaive::text
