// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/nifti_writer.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/files/whole_file.h"
#include "runtime/data/formats/nifti_fields.h"

namespace lockstep::data {

namespace {

/// The header and the four bytes that say that no extension follows.
constexpr std::size_t kBeforeVoxels = nifti::kHeaderBytes + 4;
constexpr std::int16_t kUint8 = 2, kInt32 = 8, kFloat32 = 16;
constexpr std::size_t kGzipPiece = std::size_t{1} << 20;
constexpr int kFast = 1, kGzipWindow = 15 + 16, kDefaultMemory = 8;

void require_writable_volume(const std::string& path, const Shape& shape, int rank, std::size_t values) {
  if (!path.ends_with(".nii") && !path.ends_with(".nii.gz")) {
    throw UsageError(path + ": the name of a NIfTI file must end in .nii or .nii.gz");
  }
  if (shape.rank() != rank || static_cast<std::size_t>(shape.numel()) != values) {
    throw ShapeError(fmt::format("{}: expected a volume {} and its numbers, found {} and {} numbers", path,
                                 rank == 3 ? "[D, H, W]" : "[D, H, W, C]", shape.str(), values));
  }
  constexpr std::int64_t kMost = std::numeric_limits<std::int16_t>::max();
  if (std::ranges::none_of(shape.extents(), [](std::int64_t extent) { return extent < 1 || extent > kMost; })) return;
  throw ShapeError(fmt::format("{}: a NIfTI-1 file has extents of 1 to {}, found {}", path, kMost, shape.str()));
}

std::vector<std::uint8_t> header_of(const NiftiGeometry& geometry, const Shape& shape, std::int16_t type,
                                    std::size_t bytes_of_number) {
  std::vector<std::uint8_t> header(kBeforeVoxels);
  const auto put = [&header](std::size_t at, auto value) { nifti::put_number(value, header.data() + at); };
  put(0, static_cast<std::int32_t>(nifti::kHeaderBytes));
  const bool channels = shape.rank() == 4 && shape[3] > 1;
  put(nifti::kDimensions, static_cast<std::int16_t>(channels ? 4 : 3));
  const std::int64_t extents[] = {shape[2], shape[1], shape[0], channels ? shape[3] : 1, 1, 1, 1};
  for (std::size_t d = 0; d < std::size(extents); ++d) {
    put(nifti::kDimensions + 2 * (d + 1), static_cast<std::int16_t>(extents[d]));
    put(nifti::kPixelDimensions + sizeof(float) * (d + 1), 1.0f);
  }
  put(nifti::kDataType, type);
  put(nifti::kBitsOfNumber, static_cast<std::int16_t>(8 * bytes_of_number));
  put(nifti::kVoxelOffset, static_cast<float>(kBeforeVoxels));
  put(nifti::kSlope, 1.0f);
  nifti::for_each_number(geometry, put);
  constexpr std::string_view kMagic("n+1\0", 4);
  std::ranges::copy(kMagic, header.begin() + nifti::kMagic);
  return header;
}

std::string gzipped(std::string_view content, const std::string& path) {
  z_stream stream{};
  if (deflateInit2(&stream, kFast, Z_DEFLATED, kGzipWindow, kDefaultMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw StorageError("cannot write " + path + ": zlib has no memory");
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> owner(&stream, deflateEnd);
  std::string packed;
  std::vector<Bytef> piece(kGzipPiece);
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0) {
      const std::size_t next = std::min(content.size(), kGzipPiece);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
      stream.avail_in = static_cast<uInt>(next);
      content.remove_prefix(next);
    }
    stream.next_out = piece.data();
    stream.avail_out = static_cast<uInt>(piece.size());
    state = deflate(&stream, content.empty() ? Z_FINISH : Z_NO_FLUSH);
    packed.append(reinterpret_cast<const char*>(piece.data()), piece.size() - stream.avail_out);
  }
  return packed;
}

/// `number`: the stored number of a value's place, channels last.
template <class Stored, class Number>
void write(const std::string& path, const NiftiGeometry& geometry, const Shape& shape, std::int16_t type,
           const Number& number) {
  const std::vector<std::uint8_t> header = header_of(geometry, shape, type, sizeof(Stored));
  const auto channels = static_cast<std::size_t>(shape.rank() == 4 ? shape[3] : 1);
  const std::size_t voxels = static_cast<std::size_t>(shape.numel()) / channels;
  std::string content(header.begin(), header.end());
  content.resize(header.size() + voxels * channels * sizeof(Stored));
  auto* at = reinterpret_cast<std::uint8_t*>(content.data() + header.size());
  // The file's channels come one behind the other.
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t v = 0; v < voxels; ++v, at += sizeof(Stored)) {
      nifti::put_number(static_cast<Stored>(number(v * channels + c)), at);
    }
  }
  if (path.ends_with(".gz")) content = gzipped(content, path);
  if (const std::error_code error = write_whole_file(path, content)) {
    throw StorageError("cannot write " + path + ": " + error.message());
  }
}

}  // namespace

void write_nifti(const std::string& path, const NiftiGeometry& geometry, const Shape& shape,
                 std::span<const float> values) {
  require_writable_volume(path, shape, 4, values.size());
  write<float>(path, geometry, shape, kFloat32, [values](std::size_t i) { return values[i]; });
}

void write_nifti(const std::string& path, const NiftiGeometry& geometry, const Shape& shape,
                 std::span<const std::int64_t> labels) {
  require_writable_volume(path, shape, 3, labels.size());
  const auto number = [labels](std::size_t i) { return labels[i]; };
  constexpr std::int64_t kMostOfByte = std::numeric_limits<std::uint8_t>::max();
  const bool small = std::ranges::all_of(labels, [](std::int64_t label) { return label >= 0 && label <= kMostOfByte; });
  if (small) return write<std::uint8_t>(path, geometry, shape, kUint8, number);
  write<std::int32_t>(path, geometry, shape, kInt32, number);
}

}  // namespace lockstep::data
