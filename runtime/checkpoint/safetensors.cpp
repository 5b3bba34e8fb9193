// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::checkpoint {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 4 << 20;  // some 40,000 tensors; no such header takes 100 ms to parse
constexpr std::size_t kAlignment = 64;              // of the first tensor's data, for readers that map the file
constexpr std::size_t kChunkBytes = 1 << 20;        // hashed and written while it lies in the cache

std::string little_endian(std::uint64_t value) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

std::uint64_t from_little_endian(const std::string& bytes) {
  std::uint64_t value = 0;
  for (std::size_t at = kLengthBytes; at-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at]);
  return value;
}

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.data()), tensor.bytes()};
}

SafetensorsHeader lay_out(const std::vector<NamedTensor>& tensors, const std::map<std::string, std::string>& metadata) {
  SafetensorsHeader header{{}, metadata};
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    header.tensors.push_back({name, tensor.dtype(), tensor.shape(), offset, offset + tensor.bytes()});
    offset += tensor.bytes();
  }
  return header;
}

std::string format_preamble(const SafetensorsHeader& header) {
  std::string text = format_safetensors_header(header);
  const std::size_t end = (kLengthBytes + text.size() + kAlignment - 1) / kAlignment * kAlignment;
  text.resize(end - kLengthBytes, ' ');
  if (text.size() > kMaxHeaderBytes) throw UsageError("too many tensors for one safetensors file");
  return little_endian(text.size()) + text;
}

std::string read_preamble(const InputFile& file) {
  if (file.size() < kLengthBytes) {
    throw StorageError(fmt::format("{} is truncated: {} bytes, at least 8 expected", file.path(), file.size()));
  }
  std::string preamble(kLengthBytes, '\0');
  file.read(0, std::as_writable_bytes(std::span(preamble)));
  const std::uint64_t length = from_little_endian(preamble);
  if (length > kMaxHeaderBytes || length > file.size() - kLengthBytes) {
    throw StorageError(fmt::format("{}: a header of {} bytes in a file of {} bytes; at most {} are allowed",
                                   file.path(), length, file.size(), kMaxHeaderBytes));
  }
  preamble.resize(kLengthBytes + length);
  file.read(kLengthBytes, std::as_writable_bytes(std::span(preamble)).subspan(kLengthBytes));
  return preamble;
}

}  // namespace

SafetensorsDigest write_safetensors(const std::string& path, std::vector<NamedTensor> tensors,
                                    const std::map<std::string, std::string>& metadata) {
  for (const auto& [name, tensor] : tensors) {
    if (name == "__metadata__") throw UsageError("a tensor cannot have the name __metadata__");
    if (!tensor.defined() || tensor.device() != kCpu) {
      throw UsageError("tensor '" + name + "' to be saved is " + describe(tensor) + "; a CPU tensor is needed");
    }
  }
  std::ranges::sort(tensors, [](const NamedTensor& a, const NamedTensor& b) {
    const std::size_t width_a = size_of(a.tensor.dtype()), width_b = size_of(b.tensor.dtype());
    return width_a != width_b ? width_a > width_b : a.name < b.name;
  });
  SafetensorsDigest digest;
  Hasher whole;
  OutputFile file(path);
  const auto append = [&](std::span<const std::byte> bytes) {
    whole.update(bytes);
    file.write(bytes);
  };
  const std::string preamble = format_preamble(lay_out(tensors, metadata));
  append(std::as_bytes(std::span(preamble)));
  for (const auto& [name, tensor] : tensors) {
    Hasher own;
    for (std::span<const std::byte> rest = bytes_of(tensor); !rest.empty();) {
      const std::span<const std::byte> chunk = rest.first(std::min(rest.size(), kChunkBytes));
      own.update(chunk);
      append(chunk);
      rest = rest.subspan(chunk.size());
    }
    if (!digest.tensors.emplace(name, own.digest()).second) throw UsageError("two tensors are named '" + name + "'");
  }
  file.sync_and_close();
  digest.file = whole.digest();
  return digest;
}

SafetensorsFile::SafetensorsFile(InputFile file)
    : file_(std::move(file)),
      preamble_(read_preamble(file_)),
      header_(parse_safetensors_header(std::string_view(preamble_).substr(kLengthBytes),
                                       file_.size() - preamble_.size(), file_.path())) {}

Tensor SafetensorsFile::read(const TensorEntry& entry) const {
  Tensor tensor = Tensor::empty(entry.shape, entry.dtype);
  const std::span<std::byte> bytes(static_cast<std::byte*>(tensor.data()), tensor.bytes());
  file_.read(preamble_.size() + entry.begin, bytes);
  // A bool of any other byte is undefined behaviour when it is read.
  const auto is_bool = [](std::byte byte) { return byte <= std::byte{1}; };
  if (entry.dtype == DType::kBool && !std::ranges::all_of(bytes, is_bool)) {
    throw StorageError(path() + ": tensor '" + entry.name + "' is of bools and has bytes other than 0 and 1");
  }
  return tensor;
}

}  // namespace lockstep::checkpoint
