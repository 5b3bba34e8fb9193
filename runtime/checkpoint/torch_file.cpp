// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/torch_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/checkpoint/pickle.h"
#include "runtime/checkpoint/zip_entries.h"

namespace lockstep::checkpoint {

namespace {

using Kind = PickleValue::Kind;

constexpr std::pair<std::string_view, DType> kStorages[] = {
    {"torch FloatStorage", DType::kFloat32},     {"torch HalfStorage", DType::kFloat16},
    {"torch BFloat16Storage", DType::kBFloat16}, {"torch DoubleStorage", DType::kFloat64},
    {"torch LongStorage", DType::kInt64},        {"torch IntStorage", DType::kInt32},
    {"torch ByteStorage", DType::kUInt8},        {"torch BoolStorage", DType::kBool},
};

constexpr std::string_view kTensor = "torch._utils _rebuild_tensor_v2";
constexpr std::string_view kParameter = "torch._utils _rebuild_parameter";

std::vector<std::string_view> known_globals() {
  std::vector<std::string_view> names{"collections OrderedDict", kTensor, kParameter};
  for (const auto& [name, dtype] : kStorages) names.push_back(name);
  return names;
}

class TorchFile {
 public:
  explicit TorchFile(const std::string& path) : path_(path), entries_(read_zip_entries(path)) {}

  std::map<std::string, Tensor> tensors() const {
    const auto pickle = entries_.find("data.pkl");
    if (pickle == entries_.end()) fail("it has no data.pkl");
    const auto order = entries_.find("byteorder");
    if (order != entries_.end() && order->second != "little") fail("its numbers are not little-endian");
    const Pickle data(pickle->second, path_, known_globals());
    std::map<std::string, Tensor> found;
    const PickleValue& state = state_of(data.root());
    const std::uint64_t most = most_bytes();
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i + 1 < state.items.size(); i += 2) {
      const PickleValue& name = *state.items[i];
      if (name.kind != Kind::kText || !is_tensor(*state.items[i + 1])) continue;
      const auto [tensor, is_new] = found.emplace(name.text, tensor_of(name.text, *state.items[i + 1]));
      if (!is_new) fail("two tensors are named '" + name.text + "'");
      bytes += tensor->second.bytes();
      if (bytes > most) fail(fmt::format("tensors up to '{}' take {} bytes, more than {}", name.text, bytes, most));
    }
    return without_module(std::move(found));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw StorageError(path_ + ": " + what, "Save the model's weights with torch.save(model.state_dict(), FILE).");
  }

  /// Tensors that share memory are copies here: tied weights are, but a thousand names of one storage are an attack.
  std::uint64_t most_bytes() const {
    constexpr std::uint64_t kAlways = std::uint64_t{64} << 20;
    constexpr std::uint64_t kMostNames = 4;
    std::uint64_t stored = 0;
    for (const auto& [name, content] : entries_) stored += content.size();
    return std::max(kMostNames * stored, kAlways);
  }

  static bool is_call_of(const PickleValue& value, std::string_view name) {
    return value.kind == Kind::kCall && value.items[0]->text == name;
  }
  static bool is_tensor(const PickleValue& value) {
    return is_call_of(value, kTensor) || is_call_of(value, kParameter);
  }
  static bool holds_tensors(const PickleValue& value) {
    if (value.kind != Kind::kDictionary) return false;
    return std::ranges::any_of(value.items, [](const PickleValue* item) { return is_tensor(*item); });
  }

  /// The dictionary of the tensors: the whole, or a part of it.
  const PickleValue& state_of(const PickleValue& root) const {
    // Beside a state there may be tensors of other meaning: an accuracy, a generator's state.
    for (const std::string_view key : {"state_dict", "model_state_dict", "model", "module"}) {
      if (root.kind != Kind::kDictionary) break;
      for (std::size_t i = 0; i + 1 < root.items.size(); i += 2) {
        if (root.items[i]->text == key && holds_tensors(*root.items[i + 1])) return *root.items[i + 1];
      }
    }
    if (holds_tensors(root)) return root;
    fail("it holds no state_dict");
  }

  const PickleValue& argument(const std::string& name, const PickleValue& call, std::size_t at, Kind kind) const {
    const std::vector<const PickleValue*>& arguments = call.items[1]->items;
    if (at >= arguments.size() || arguments[at]->kind != kind) fail("tensor '" + name + "' is malformed");
    return *arguments[at];
  }

  std::vector<std::int64_t> numbers(const std::string& name, const PickleValue& sequence) const {
    std::vector<std::int64_t> all;
    for (const PickleValue* const item : sequence.items) {
      if (item->kind != Kind::kInteger || item->number < 0) fail("tensor '" + name + "' is malformed");
      all.push_back(item->number);
    }
    if (all.size() > Shape::kMaxRank) fail(fmt::format("tensor '{}' has {} dimensions", name, all.size()));
    return all;
  }

  /// The bytes that a persistent id ("storage", type, key, device, elements) names.
  std::pair<DType, const std::string*> storage_of(const std::string& name, const PickleValue& persistent) const {
    const PickleValue& id = *persistent.items[0];
    if (id.kind != Kind::kSequence || id.items.size() < 5 || id.items[0]->text != "storage" ||
        id.items[1]->kind != Kind::kGlobal || id.items[2]->kind != Kind::kText) {
      fail("tensor '" + name + "' is malformed");
    }
    const auto type = std::ranges::find(kStorages, std::string_view(id.items[1]->text),
                                        [](const auto& storage) { return storage.first; });
    const auto entry = entries_.find("data/" + id.items[2]->text);
    if (type == std::end(kStorages) || entry == entries_.end()) fail("tensor '" + name + "' has no storage");
    return {type->second, &entry->second};
  }

  Tensor tensor_of(const std::string& name, const PickleValue& value) const {
    if (is_call_of(value, kParameter)) {
      const PickleValue& inner = argument(name, value, 0, Kind::kCall);
      if (!is_call_of(inner, kTensor)) fail("tensor '" + name + "' is malformed");
      return tensor_of(name, inner);
    }
    const auto [dtype, bytes] = storage_of(name, argument(name, value, 0, Kind::kPersistentId));
    const auto offset = static_cast<std::uint64_t>(argument(name, value, 1, Kind::kInteger).number);
    const std::vector<std::int64_t> extents = numbers(name, argument(name, value, 2, Kind::kSequence));
    const std::vector<std::int64_t> strides = numbers(name, argument(name, value, 3, Kind::kSequence));
    const std::uint64_t elements = bytes->size() / size_of(dtype);
    if (strides.size() != extents.size()) fail("tensor '" + name + "' is malformed");
    if (std::ranges::find(extents, 0) != extents.end()) return without_elements(name, dtype, extents);
    if (!lies_within(extents, strides, offset, elements)) fail("tensor '" + name + "' lies outside its storage");
    const Tensor tensor = gathered(dtype, *bytes, offset, extents, strides);
    // Reading a bool whose byte is neither 0 nor 1 is undefined behaviour.
    const auto* const first = static_cast<const unsigned char*>(tensor.data());
    if (dtype == DType::kBool &&
        std::any_of(first, first + tensor.bytes(), [](unsigned char byte) { return byte > 1; })) {
      fail("tensor '" + name + "' is of bools and has bytes other than 0 and 1");
    }
    return tensor;
  }

  /// Whether the last element does; nothing overflows on the way.
  static bool lies_within(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& strides,
                          std::uint64_t offset, std::uint64_t elements) {
    if (offset >= elements) return false;
    std::uint64_t last = offset;
    std::uint64_t count = 1;
    for (std::size_t d = 0; d < extents.size(); ++d) {
      const auto steps = static_cast<std::uint64_t>(extents[d] - 1);
      const auto stride = static_cast<std::uint64_t>(strides[d]);
      if (steps > 0 && stride > (elements - 1 - last) / steps) return false;
      last += steps * stride;
      // Expanded tensors could be larger than memory.
      if (count > elements / static_cast<std::uint64_t>(extents[d])) return false;
      count *= static_cast<std::uint64_t>(extents[d]);
    }
    return true;
  }

  static bool is_dense(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& strides) {
    std::int64_t step = 1;
    for (std::size_t d = extents.size(); d-- > 0; step *= extents[d]) {
      if (extents[d] > 1 && strides[d] != step) return false;
    }
    return true;
  }

  Tensor without_elements(const std::string& name, DType dtype, const std::vector<std::int64_t>& extents) const {
    std::int64_t count = 1;
    for (const std::int64_t extent : extents) {
      if (__builtin_mul_overflow(count, std::max<std::int64_t>(extent, 1), &count))
        fail("tensor '" + name + "' is malformed");
    }
    return Tensor::empty(Shape(std::span<const std::int64_t>(extents)), dtype);
  }

  static Tensor gathered(DType dtype, const std::string& bytes, std::uint64_t offset,
                         const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& strides) {
    Tensor tensor = Tensor::empty(Shape(std::span<const std::int64_t>(extents)), dtype);
    const std::size_t width = size_of(dtype);
    auto* out = static_cast<char*>(tensor.data());
    if (is_dense(extents, strides)) {
      std::memcpy(out, bytes.data() + offset * width, tensor.bytes());
      return tensor;
    }
    std::vector<std::int64_t> index(extents.size());
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      std::uint64_t at = offset;
      for (std::size_t d = 0; d < index.size(); ++d) at += static_cast<std::uint64_t>(index[d] * strides[d]);
      std::memcpy(out, bytes.data() + at * width, width);
      out += width;
      for (std::size_t d = index.size(); d-- > 0 && ++index[d] == extents[d];) index[d] = 0;
    }
    return tensor;
  }

  static std::map<std::string, Tensor> without_module(std::map<std::string, Tensor> tensors) {
    constexpr std::string_view kWrapper = "module.";
    const auto has_prefix = [&](const auto& entry) { return entry.first.starts_with(kWrapper); };
    if (!std::ranges::all_of(tensors, has_prefix)) return tensors;
    std::map<std::string, Tensor> named;
    for (auto& [name, tensor] : tensors) named.emplace(name.substr(kWrapper.size()), std::move(tensor));
    return named;
  }

  const std::string& path_;
  std::map<std::string, std::string> entries_;
};

}  // namespace

std::map<std::string, Tensor> read_torch_file(const std::string& path) { return TorchFile(path).tensors(); }

}  // namespace lockstep::checkpoint
