// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "runtime/base/error.h"

namespace lockstep::checkpoint {
namespace {

using nlohmann::json;

constexpr const char* kMetadataName = "__metadata__";
constexpr std::array<std::string_view, 3> kFields{"dtype", "shape", "data_offsets"};

constexpr std::array<std::pair<std::string_view, DType>, 8> kDTypes{{
    {"F32", DType::kFloat32},
    {"F16", DType::kFloat16},
    {"BF16", DType::kBFloat16},
    {"F64", DType::kFloat64},
    {"I64", DType::kInt64},
    {"I32", DType::kInt32},
    {"U8", DType::kUInt8},
    {"BOOL", DType::kBool},
}};

std::string in_quotes(const std::string& name) {
  constexpr std::size_t kShown = 200;  // a crafted name must not flood the terminal
  std::string text("'");
  text += name.substr(0, kShown);
  text += name.size() > kShown ? "...'" : "'";
  return text;
}

/// Follows the header's fixed structure as the parser reports it, so nesting is bounded by that structure and a fault
/// ends the parse where it stands.
class HeaderReader final : public nlohmann::json_sax<json> {
 public:
  explicit HeaderReader(const std::string& path) : path_(path) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool number_integer(json::number_integer_t) override { unexpected("a negative number"); }
  bool number_float(json::number_float_t, const std::string&) override {
    unexpected("a number that is no 64-bit integer");
  }
  bool binary(json::binary_t&) override { unexpected("binary data"); }

  bool number_unsigned(json::number_unsigned_t value) override {
    if (place_ == Place::kShape) {
      constexpr std::uint64_t kMaxExtent = std::numeric_limits<std::int64_t>::max();
      if (extents_.size() == static_cast<std::size_t>(Shape::kMaxRank)) fail("has more than 6 dimensions");
      if (value > kMaxExtent) fail("has a shape that overflows");
      extents_.push_back(static_cast<std::int64_t>(value));
    } else if (place_ == Place::kOffsets) {
      if (offsets_.size() == 2) fail("has more than two data_offsets");
      offsets_.push_back(value);
    } else {
      unexpected("a number");
    }
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::kMetadata) {
      header_.metadata[key_] = std::move(value);
    } else if (place_ == Place::kTensor && key_ == "dtype") {
      const auto known = std::ranges::find(kDTypes, value, &std::pair<std::string_view, DType>::first);
      if (known == kDTypes.end()) fail("has the unknown dtype " + in_quotes(value));
      tensor_.dtype = known->second;
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::kStart) {
      place_ = Place::kTensors;
    } else if (place_ == Place::kTensors && key_ == kMetadataName) {
      place_ = Place::kMetadata;
    } else if (place_ == Place::kTensors) {
      place_ = Place::kTensor;
      tensor_.name = key_;
      fields_ = 0;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor) finish_tensor();
    place_ = place_ == Place::kTensors ? Place::kEnd : Place::kTensors;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::kTensor && key_ == "shape") {
      place_ = Place::kShape;
      extents_.clear();
    } else if (place_ == Place::kTensor && key_ == "data_offsets") {
      place_ = Place::kOffsets;
      offsets_.clear();
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool end_array() override {
    place_ = Place::kTensor;
    return true;
  }

  bool key(std::string& key) override {
    key_ = std::move(key);
    if (place_ == Place::kTensors) {
      if (!names_.insert(key_).second) fail_at_tensor(key_, "is listed twice");
    } else if (place_ == Place::kMetadata) {
      if (header_.metadata.contains(key_)) fail("has " + in_quotes(key_) + " twice");
    } else {
      const auto field = std::ranges::find(kFields, key_);
      if (field == kFields.end()) fail("has the unknown field " + in_quotes(key_));
      const unsigned bit = 1u << (field - kFields.begin());
      if ((fields_ & bit) != 0) fail("has " + in_quotes(key_) + " twice");
      fields_ |= bit;
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw StorageError(path_ + ": the header is not JSON: unexpected text at byte " + std::to_string(position));
  }

 private:
  enum class Place { kStart, kTensors, kMetadata, kTensor, kShape, kOffsets, kEnd };

  [[noreturn]] void fail_at_tensor(const std::string& name, const std::string& what) const {
    throw StorageError(path_ + ": " + (name == kMetadataName ? name : "tensor " + in_quotes(name)) + " " + what);
  }

  [[noreturn]] void fail(const std::string& what) const {
    fail_at_tensor(place_ == Place::kMetadata ? kMetadataName : tensor_.name, what);
  }

  [[noreturn]] void unexpected(const std::string& what) const {
    if (place_ == Place::kStart) throw StorageError(path_ + ": the header must be an object, found " + what);
    if (place_ == Place::kTensors) fail_at_tensor(key_, "must be an object, found " + what);
    fail("has " + what + " where none is allowed, in " + in_quotes(key_));
  }

  void finish_tensor() {
    if (fields_ != (1u << kFields.size()) - 1) fail("lacks one of dtype, shape, data_offsets");
    if (offsets_.size() != 2) fail("needs two data_offsets");
    std::tie(tensor_.begin, tensor_.end) = std::tie(offsets_[0], offsets_[1]);
    try {
      tensor_.shape = Shape(extents_);
    } catch (const ShapeError&) {
      fail("has a shape that overflows");
    }
    std::uint64_t expected = 0;
    if (__builtin_mul_overflow(static_cast<std::uint64_t>(tensor_.shape.numel()), size_of(tensor_.dtype), &expected)) {
      fail("has a shape that overflows");
    }
    if (tensor_.begin > tensor_.end || tensor_.end - tensor_.begin != expected) {
      fail(fmt::format("has data_offsets [{}, {}], but {} {} needs {} bytes", tensor_.begin, tensor_.end,
                       name_of(tensor_.dtype), tensor_.shape.str(), expected));
    }
    header_.tensors.push_back(std::move(tensor_));
  }

  const std::string& path_;
  SafetensorsHeader header_;
  Place place_ = Place::kStart;
  std::string key_;
  std::set<std::string> names_;  // ordered: no choice of names makes it slow, as it could a hash table
  TensorEntry tensor_;
  unsigned fields_ = 0;  // of the tensor at hand, a bit for each of kFields
  std::vector<std::int64_t> extents_;
  std::vector<std::uint64_t> offsets_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes, const std::string& path) {
  if (text.empty() || text.front() != '{') throw StorageError(path + ": the header must start with '{'");
  text = text.substr(0, text.find_last_not_of(' ') + 1);
  HeaderReader reader(path);
  json::sax_parse(text.begin(), text.end(), &reader);
  SafetensorsHeader header = reader.take();

  std::ranges::sort(header.tensors, {}, [](const TensorEntry& t) { return std::tie(t.begin, t.end, t.name); });
  std::uint64_t covered = 0;
  for (const TensorEntry& tensor : header.tensors) {
    if (tensor.begin != covered) {
      throw StorageError(fmt::format(
          "{}: the data of tensor {} starts at byte {}, {} the tensor before it, which ends at {}", path,
          in_quotes(tensor.name), tensor.begin, tensor.begin < covered ? "inside" : "with a hole after", covered));
    }
    covered = tensor.end;
  }
  if (covered > data_bytes) {
    const auto cut = std::ranges::find_if(header.tensors, [&](const TensorEntry& t) { return t.end > data_bytes; });
    throw StorageError(fmt::format("{} is truncated in tensor {}: {} of {} bytes of data", path, in_quotes(cut->name),
                                   data_bytes, covered));
  }
  if (covered < data_bytes) {
    throw StorageError(
        fmt::format("{} has {} bytes of data, but its tensors end at byte {}", path, data_bytes, covered));
  }
  return header;
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  std::string text = "{";
  const auto append = [&](const std::string& name, const json& value) {
    if (text.size() > 1) text += ',';
    text += json(name).dump() + ':' + value.dump();
  };
  try {
    if (!header.metadata.empty()) append(kMetadataName, header.metadata);
    for (const TensorEntry& tensor : header.tensors) {
      const auto dtype = std::ranges::find(kDTypes, tensor.dtype, &std::pair<std::string_view, DType>::second);
      const std::span<const std::int64_t> extents = tensor.shape.extents();
      append(tensor.name, {{"dtype", dtype->first},
                           {"shape", std::vector<std::int64_t>(extents.begin(), extents.end())},
                           {"data_offsets", {tensor.begin, tensor.end}}});
    }
  } catch (const json::type_error& error) {
    throw UsageError(std::string("a tensor's name or metadata is not UTF-8: ") + error.what());
  }
  return text + "}";
}

}  // namespace lockstep::checkpoint
