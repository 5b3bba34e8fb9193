// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/base/files/durable_file.h"
#include "runtime/checkpoint/checksum.h"
#include "runtime/checkpoint/safetensors_header.h"
#include "runtime/tensor/tensor.h"

// The safetensors format: 8 bytes of little-endian header length, the JSON header, the tensors' bytes. It holds data
// only; nothing in it is ever run. https://github.com/huggingface/safetensors

namespace lockstep::checkpoint {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// The checksums of a written file: of the whole and of each tensor by name.
struct SafetensorsDigest {
  Digest file;
  std::map<std::string, Digest> tensors;
};

/// Writes CPU tensors to a new file and syncs it. Data lie in the order of element size (widest first, so that each is
/// aligned), then name. The digests are of the bytes in memory, so a later comparison sees what the disk did to them.
/// Throws UsageError on a name given twice, FileError when the disk refuses.
SafetensorsDigest write_safetensors(const std::string& path, std::vector<NamedTensor> tensors,
                                    const std::map<std::string, std::string>& metadata = {});

/// A safetensors file whose header has been checked against the file's size. Throws StorageError that names the file
/// and the tensor at fault.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path) : SafetensorsFile(InputFile(path)) {}
  explicit SafetensorsFile(InputFile file);

  const std::string& path() const { return file_.path(); }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  /// In the order of their data.
  const std::vector<TensorEntry>& tensors() const { return header_.tensors; }
  /// Everything before the first tensor's data, as it lies in the file.
  const std::string& preamble() const { return preamble_; }

  /// Reads the data of one of tensors() into a new CPU tensor.
  Tensor read(const TensorEntry& entry) const;

 private:
  InputFile file_;
  std::string preamble_;
  SafetensorsHeader header_;
};

}  // namespace lockstep::checkpoint
