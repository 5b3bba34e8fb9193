// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/data/dataset.h"
#include "runtime/data/drawn_sample.h"

namespace lockstep::data {

using Bytes = std::vector<std::uint8_t>;

/// A folder of its own for each test, removed at its end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lockstep_data_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  std::string write(const std::string& name, const Bytes& bytes) const {
    const std::string path = path_ / name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  std::string write_text(const std::string& name, std::string_view text) const {
    return write(name, Bytes(text.begin(), text.end()));
  }
  std::string path(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline void append_uint32(Bytes& bytes, std::uint32_t value) {
  for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<std::uint8_t>(value >> shift));
}

/// An IDX array of unsigned bytes 0, 1, 2, ...
inline Bytes idx_bytes(const std::vector<std::uint32_t>& extents, std::uint8_t modulus = 251) {
  Bytes bytes;
  append_uint32(bytes, 0x800 | static_cast<std::uint32_t>(extents.size()));
  for (const std::uint32_t extent : extents) append_uint32(bytes, extent);
  const std::size_t count = std::accumulate(extents.begin(), extents.end(), std::size_t{1}, std::multiplies<>());
  for (std::size_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::uint8_t>(i % modulus));
  return bytes;
}

inline Bytes gzipped(const Bytes& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  Bytes out(deflateBound(&stream, bytes.size()));
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// What the StorageError says that `open` throws.
inline std::string error_of(const std::function<void()>& open) {
  try {
    open();
  } catch (const StorageError& error) {
    return error.what();
  }
  return "no error";
}

/// One sample, whatever it is made of.
struct Drawn {
  std::vector<float> values;
  std::vector<std::int64_t> tokens;
  std::vector<float> target;
  std::vector<std::int64_t> labels;
  std::vector<float> weight;
  std::vector<std::int64_t> other_label;
  std::vector<float> other_weight;

  bool operator==(const Drawn&) const = default;
};

inline Drawn drawn(const Dataset& dataset, const SampleKey& key) {
  DrawnSample memory(dataset);
  dataset.get(key, memory.sample());
  return {memory.values, memory.tokens,      memory.target,      memory.labels,
          memory.weight, memory.other_label, memory.other_weight};
}

inline std::vector<float> sample(const Dataset& dataset, const SampleKey& key) {
  std::vector<float> values(static_cast<std::size_t>(dataset.sample_shape().numel()));
  const auto targets = static_cast<std::size_t>(dataset.target_shape().numel());
  std::vector<float> answer(dataset.classes() > 0 ? 0 : targets);
  std::vector<std::int64_t> labels(dataset.classes() > 0 ? targets : 0);
  dataset.get(key, {.values = values, .target = answer, .labels = labels});
  return values;
}

inline std::int64_t label(const Dataset& dataset, std::int64_t index) {
  std::vector<float> values(static_cast<std::size_t>(dataset.sample_shape().numel()));
  std::int64_t label = -1;
  dataset.get({.index = index}, {.values = values, .labels = std::span(&label, 1)});
  return label;
}

/// Sample i is the number i, its label too: shows which samples a loader gives.
class Counting : public Dataset {
 public:
  explicit Counting(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  Shape sample_shape() const override { return {1}; }
  std::int64_t classes() const override { return size_; }
  void get(const SampleKey& key, const Sample& sample) const override {
    sample.values[0] = static_cast<float>(key.index);
    sample.labels[0] = key.index;
  }

 private:
  std::int64_t size_;
};

}  // namespace lockstep::data
