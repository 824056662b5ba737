// JSON text to JSONB: nlohmann's parser does the syntax, a small tree is then laid out.
#include <algorithm>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "encoding/jsonb.h"
#include "encoding/jsonb_format.h"

namespace glaive::encoding {
namespace {

using namespace jsonb;  // NOLINT: the words of the layout

void PutBigEndian(uint64_t value, int bytes, std::string* out) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>(value >> shift));
  }
}

void SetU32(uint32_t value, size_t at, std::string* out) {
  for (size_t i = 0; i < 4; ++i)
    (*out)[at + i] = static_cast<char>(value >> (24 - 8 * i));
}

struct Node {
  uint32_t entry = kNullEntry;  // type only
  std::string payload;          // string bytes or encoded number
  std::vector<std::pair<std::string, std::unique_ptr<Node>>>
      members;  // no keys in arrays
  bool is_object = false;
};

int IntBytes(int64_t v) {
  if (v >= INT8_MIN && v <= INT8_MAX) return 1;
  if (v >= INT16_MIN && v <= INT16_MAX) return 2;
  return v >= INT32_MIN && v <= INT32_MAX ? 4 : 8;
}

int UintBytes(uint64_t v) {
  if (v <= UINT8_MAX) return 1;
  if (v <= UINT16_MAX) return 2;
  return v <= UINT32_MAX ? 4 : 8;
}

class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return Add(kNullEntry, {}); }
  bool boolean(bool value) override { return Add(value ? kTrueEntry : kFalseEntry, {}); }
  bool number_integer(number_integer_t value) override {
    if (value == 0) return Add(kNumberEntry, std::string(1, static_cast<char>(kZero)));
    std::string payload(1, static_cast<char>(kInt));
    PutBigEndian(static_cast<uint64_t>(value), IntBytes(value), &payload);
    return Add(kNumberEntry, std::move(payload));
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value == 0) return Add(kNumberEntry, std::string(1, static_cast<char>(kZero)));
    std::string payload(1, static_cast<char>(kUint));
    PutBigEndian(value, UintBytes(value), &payload);
    return Add(kNumberEntry, std::move(payload));
  }
  bool number_float(number_float_t value, const string_t&) override {
    std::string payload(1, static_cast<char>(kFloat));
    PutBigEndian(std::bit_cast<uint64_t>(value), 8, &payload);
    return Add(kNumberEntry, std::move(payload));
  }
  bool string(string_t& value) override { return Add(kStringEntry, std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return Open(true); }
  bool start_array(std::size_t) override { return Open(false); }
  bool key(string_t& value) override {
    keys_.back() = std::move(value);
    return true;
  }
  bool end_array() override { return Close(); }
  bool end_object() override {
    auto& members = stack_.back()->members;
    std::sort(members.begin(), members.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 1; i < members.size(); ++i) {
      if (members[i].first == members[i - 1].first) {
        error_ = "object key '" + members[i].first + "' occurs twice";
        return false;
      }
    }
    return Close();
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& e) override {
    constexpr int kOutOfRange = 406;
    error_ = e.id == kOutOfRange ? "a number is out of range" : "syntax error";
    error_ += " at position " + std::to_string(position);
    return false;
  }

  const std::string& error() const { return error_; }
  const Node* root() const { return root_.get(); }

 private:
  bool Add(uint32_t entry, std::string payload) {
    auto node = std::make_unique<Node>();
    node->entry = entry;
    node->payload = std::move(payload);
    Attach(std::move(node));
    return true;
  }
  bool Open(bool object) {
    if (stack_.size() >= static_cast<size_t>(kMaxDepth)) {
      error_ = "nested deeper than " + std::to_string(kMaxDepth) + " levels";
      return false;
    }
    auto node = std::make_unique<Node>();
    node->entry = kContainerEntry;
    node->is_object = object;
    stack_.push_back(Attach(std::move(node)));
    keys_.emplace_back();
    return true;
  }
  bool Close() {
    stack_.pop_back();
    keys_.pop_back();
    return true;
  }
  Node* Attach(std::unique_ptr<Node> node) {
    Node* raw = node.get();
    if (stack_.empty()) {
      root_ = std::move(node);
    } else {
      std::string key =
          stack_.back()->is_object ? std::move(keys_.back()) : std::string();
      stack_.back()->members.emplace_back(std::move(key), std::move(node));
    }
    return raw;
  }

  std::unique_ptr<Node> root_;
  std::vector<Node*> stack_;
  std::vector<std::string> keys_;  // the key read last, per open container
  std::string error_;
};

Status WriteContainer(const Node& node, std::string* out);

// Appends the payload of `node` and gives its entry word.
Result<uint32_t> WritePayload(const Node& node, std::string* out) {
  size_t start = out->size();
  if (node.entry == kContainerEntry) {
    GLAIVE_RETURN_NOT_OK(WriteContainer(node, out));
  } else {
    out->append(node.payload);
  }
  size_t length = out->size() - start;
  if (length > kEntryLength) return InvalidInput("a JSON value is larger than 256 MiB");
  return node.entry | static_cast<uint32_t>(length);
}

Status WriteContainer(const Node& node, std::string* out) {
  if (node.members.size() > kHeaderCount)
    return InvalidInput("a JSON container is too large");
  uint32_t kind = node.is_object ? kObject : kArray;
  PutBigEndian(kind | static_cast<uint32_t>(node.members.size()), 4, out);
  size_t at = out->size();
  out->append(node.members.size() * (node.is_object ? 8 : 4), '\0');
  if (node.is_object) {
    for (const auto& [key, value] : node.members) {
      if (key.size() > kEntryLength)
        return InvalidInput("a JSON key is larger than 256 MiB");
      SetU32(kStringEntry | static_cast<uint32_t>(key.size()), at, out);
      at += 4;
      out->append(key);
    }
  }
  for (const auto& [key, value] : node.members) {
    GLAIVE_ASSIGN_OR_RETURN(uint32_t entry, WritePayload(*value, out));
    SetU32(entry, at, out);
    at += 4;
  }
  return Status::OK();
}

Status WriteRoot(const Node& root, std::string* out) {
  if (root.entry == kContainerEntry) return WriteContainer(root, out);
  PutBigEndian(kScalar, 4, out);
  size_t entry_at = out->size();
  PutBigEndian(0, 4, out);
  GLAIVE_ASSIGN_OR_RETURN(uint32_t entry, WritePayload(root, out));
  SetU32(entry, entry_at, out);
  return Status::OK();
}

}  // namespace

Status JsonToJsonb(std::string_view text, std::string* out) {
  Builder builder;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder) || !builder.root()) {
    return InvalidInput("Failed to encode JSON: ",
                        builder.error().empty() ? "empty text" : builder.error());
  }
  size_t start = out->size();
  Status written = WriteRoot(*builder.root(), out);
  if (!written.ok()) out->resize(start);
  return written;
}

}  // namespace glaive::encoding
