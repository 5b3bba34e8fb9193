// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/nifti.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/data/formats/byte_reader.h"
#include "runtime/data/formats/nifti_fields.h"

namespace lockstep::data {

namespace {

constexpr std::int32_t kNifti2Bytes = 540;
/// The most bytes that a byte of a gzipped file can stand for: two bits say 258 bytes again.
constexpr std::uint64_t kMostUnpacked = 1032;
/// Header and extensions.
constexpr double kMostDataOffset = 1 << 24;
constexpr std::size_t kConvertedAtOnce = 1 << 14;  ///< numbers that are converted at a time

template <class T>
void convert(const std::vector<std::uint8_t>& bytes, const NiftiHeader& header, std::span<float> out,
             std::size_t stride) {
  const std::size_t count = bytes.size() / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) {
    const auto stored = static_cast<double>(nifti::number_at<T>(bytes.data() + i * sizeof(T), header.swapped));
    out[i * stride] = static_cast<float>(stored * header.slope + header.intercept);
  }
}

/// A number's type by its code.
struct Type {
  int code;
  std::size_t bytes;
  void (*convert)(const std::vector<std::uint8_t>&, const NiftiHeader&, std::span<float>, std::size_t);
};
constexpr Type kTypes[] = {{2, 1, convert<std::uint8_t>},    {4, 2, convert<std::int16_t>},
                           {8, 4, convert<std::int32_t>},    {16, 4, convert<float>},
                           {64, 8, convert<double>},         {256, 1, convert<std::int8_t>},
                           {512, 2, convert<std::uint16_t>}, {768, 4, convert<std::uint32_t>},
                           {1024, 8, convert<std::int64_t>}, {1280, 8, convert<std::uint64_t>}};

const Type* type_of(int code) {
  const auto* const found = std::ranges::find(kTypes, code, &Type::code);
  return found == std::end(kTypes) ? nullptr : found;
}

[[noreturn]] void refuse(const std::string& path, std::size_t at, const std::string& what,
                         const std::string& advice = "The file is damaged; fetch it again.") {
  throw StorageError(fmt::format("{} at byte {}: {}", path, at, what), advice);
}

/// Whether the order of bytes is the other one.
bool order_of(const std::string& path, const std::vector<std::uint8_t>& bytes) {
  for (const bool swapped : {false, true}) {
    const auto size = nifti::number_at<std::int32_t>(bytes.data(), swapped);
    if (size == static_cast<std::int32_t>(nifti::kHeaderBytes)) return swapped;
    if (size == kNifti2Bytes) refuse(path, 0, "is a NIfTI-2 file", "Save it as NIfTI-1.");
  }
  refuse(path, 0, "is no NIfTI file: its first number is not 348");
}

void require_magic(const std::string& path, const std::vector<std::uint8_t>& bytes) {
  const std::string_view magic(reinterpret_cast<const char*>(bytes.data()) + nifti::kMagic, 4);
  if (magic == std::string_view("n+1\0", 4)) return;
  if (magic == std::string_view("ni1\0", 4)) {
    refuse(path, nifti::kMagic, "has its voxels in a second file", "Save it as one file, *.nii.");
  }
  refuse(path, nifti::kMagic, "is no NIfTI-1 file: its mark is not \"n+1\"");
}

/// [D, H, W, C]
Shape shape_of(const std::string& path, const std::vector<std::uint8_t>& bytes, bool swapped, std::int64_t most) {
  const auto dimension = [&](std::size_t d) {
    return nifti::number_at<std::int16_t>(bytes.data() + nifti::kDimensions + 2 * d, swapped);
  };
  constexpr int kFewest = 3, kMost = 5;
  const int count = dimension(0);
  if (count < kFewest || count > kMost) {
    refuse(path, nifti::kDimensions, fmt::format("has {} dimensions, expected 3, or 4 with channels", count),
           "Split the file into volumes.");
  }
  std::array<std::int64_t, kMost> extents{1, 1, 1, 1, 1};
  std::int64_t numbers = 1;
  for (int d = 0; d < count; ++d) {
    const auto place = static_cast<std::size_t>(d);
    extents[place] = dimension(place + 1);
    if (extents[place] < 1) {
      refuse(path, nifti::kDimensions + 2 * place + 2, fmt::format("has an extent of {}", extents[place]));
    }
    if (numbers > most / extents[place]) {
      refuse(path, nifti::kDimensions, fmt::format("has more voxels than the {} that are taken", most),
             "Cut the volume, or raise max_voxels.");
    }
    numbers *= extents[place];
  }
  return {extents[2], extents[1], extents[0], extents[3] * extents[4]};
}

NiftiGeometry geometry_of(const std::vector<std::uint8_t>& bytes, bool swapped) {
  NiftiGeometry geometry;
  nifti::for_each_number(
      geometry, [&]<class T>(std::size_t at, T& number) { number = nifti::number_at<T>(bytes.data() + at, swapped); });
  return geometry;
}

/// A reader makes room for all voxels before it reads them, so the size that the header states must fit the file's.
void require_room(const std::string& path, const NiftiHeader& header) {
  std::error_code unknown;
  const std::uint64_t size = std::filesystem::file_size(path, unknown);
  if (unknown) throw StorageError("cannot read " + path + ": " + unknown.message());
  std::array<char, 2> first{};
  std::ifstream(path, std::ios::binary).read(first.data(), first.size());
  const bool packed = first == std::array{'\x1f', '\x8b'};
  const std::uint64_t most = packed ? size * kMostUnpacked : size;
  const auto numbers = static_cast<std::uint64_t>(header.shape.numel());
  const std::size_t bytes = type_of(header.type)->bytes;
  if (most >= header.data && (most - header.data) / bytes >= numbers) return;
  throw StorageError(fmt::format("{} is too short: its header promises {} numbers of {} bytes behind byte {}, but the "
                                 "file has {}{} bytes",
                                 path, numbers, bytes, header.data, size, packed ? " gzipped" : ""),
                     "The file is damaged or incomplete; fetch it again.");
}

}  // namespace

NiftiHeader read_nifti_header(const std::string& path, std::int64_t max_voxels) {
  const std::vector<std::uint8_t> bytes = ByteReader(path).read(nifti::kHeaderBytes);
  NiftiHeader header;
  header.swapped = order_of(path, bytes);
  require_magic(path, bytes);
  header.shape = shape_of(path, bytes, header.swapped, max_voxels);
  header.type = nifti::number_at<std::int16_t>(bytes.data() + nifti::kDataType, header.swapped);
  if (type_of(header.type) == nullptr) {
    refuse(path, nifti::kDataType, fmt::format("holds numbers of type {}", header.type),
           "Save the volume as integers or as float32.");
  }
  const float offset = nifti::number_at<float>(bytes.data() + nifti::kVoxelOffset, header.swapped);
  if (!(offset >= static_cast<float>(nifti::kHeaderBytes) && static_cast<double>(offset) <= kMostDataOffset) ||
      offset != std::floor(offset)) {
    refuse(path, nifti::kVoxelOffset, fmt::format("its voxels begin at byte {}", offset));
  }
  header.data = static_cast<std::uint64_t>(offset);
  header.geometry = geometry_of(bytes, header.swapped);
  require_room(path, header);
  const float slope = nifti::number_at<float>(bytes.data() + nifti::kSlope, header.swapped);
  const float intercept = nifti::number_at<float>(bytes.data() + nifti::kIntercept, header.swapped);
  // 0 says that stored numbers are the values.
  if (slope == 0.0f) return header;
  if (!std::isfinite(slope) || !std::isfinite(intercept)) {
    refuse(path, nifti::kSlope, fmt::format("its values are {} times the stored ones, plus {}", slope, intercept));
  }
  header.slope = static_cast<double>(slope);
  header.intercept = static_cast<double>(intercept);
  return header;
}

void read_nifti(const std::string& path, const NiftiHeader& header, Range planes, std::span<float> out) {
  const Type& type = *type_of(header.type);
  ByteReader reader(path);
  reader.read(header.data);
  const auto channels = static_cast<std::size_t>(header.shape.back());
  const std::size_t voxels = out.size() / channels;
  const std::uint64_t plane_bytes = static_cast<std::uint64_t>(header.shape[1] * header.shape[2]) * type.bytes;
  const std::uint64_t before = static_cast<std::uint64_t>(planes.begin) * plane_bytes;
  const std::uint64_t behind = static_cast<std::uint64_t>(header.shape[0] - planes.end) * plane_bytes;
  // The file's channels come one behind the other.
  for (std::size_t c = 0; c < channels; ++c) {
    reader.skip(c == 0 ? before : behind + before);
    for (std::size_t at = 0; at < voxels; at += kConvertedAtOnce) {
      const std::size_t count = std::min(kConvertedAtOnce, voxels - at);
      type.convert(reader.read(count * type.bytes), header, out.subspan(at * channels + c), channels);
    }
  }
}

}  // namespace lockstep::data
