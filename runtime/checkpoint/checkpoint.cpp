// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>

#include <filesystem>
#include <utility>

#include "runtime/base/files/durable_file.h"
#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/checkpoint/safetensors.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::uint64_t kMaxManifestBytes = 256u << 20;
constexpr std::uint64_t kMaxStateBytes = 256u << 20;  // a tokenizer's files are at most 128 MiB
constexpr int kMaxMessageDepth = 100;

Digest write_file(const std::string& path, const std::string& content) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(content));
  OutputFile file(path);
  file.write(bytes);
  file.sync_and_close();
  return digest_of(bytes);
}

/// The manifest's word on `name`, which messages call `what`.
const Digest& entry(const std::map<std::string, Digest>& digests, const std::string& name, const std::string& what) {
  const auto found = digests.find(name);
  if (found == digests.end()) throw StorageError(what + " is not listed in the manifest beside it");
  return found->second;
}

void require_same(const Digest& found, const std::map<std::string, Digest>& digests, const std::string& name,
                  const std::string& what) {
  const Digest& expected = entry(digests, name, what);
  if (found == expected) return;
  throw StorageError(fmt::format("{} is damaged: the checksum of its {} bytes is {}, the manifest says {}", what,
                                 found.bytes, found.checksum, expected.checksum));
}

TrainingState read_state(const CheckpointFiles& files, const Manifest& manifest) {
  const std::string file = files.title(kStateFile);
  const std::string content = read_file(files.open(kStateFile), kMaxStateBytes);
  require_same(digest_of(std::as_bytes(std::span(content))), manifest.files, kStateFile, file);
  TrainingState state = parse_state(content, file);
  if (state.step() != manifest.step) {
    throw StorageError(fmt::format("{} is of step {}, its manifest of step {}", file, state.step(), manifest.step));
  }
  return state;
}

/// The manifest, once the files have the sizes that it says.
Manifest sound_manifest(const CheckpointFiles& files) {
  if (!files.has(kManifestFile)) {
    throw StorageError(files.path() + " has no " + kManifestFile +
                       ": not a checkpoint, or one whose deletion was interrupted");
  }
  const std::string text = read_file(files.open(kManifestFile), kMaxManifestBytes);
  Manifest manifest = parse_manifest(text, files.title(kManifestFile));
  for (const char* name : {kStateFile, kTensorFile}) {
    const std::uint64_t size = files.open(name).size();
    const std::uint64_t expected = entry(manifest.files, name, files.title(name)).bytes;
    if (size != expected) {
      throw StorageError(fmt::format("{} {} {} of {} bytes", files.title(name),
                                     size < expected ? "is truncated at" : "has grown to", size, expected));
    }
  }
  return manifest;
}

/// Hands each tensor to `take` once it agrees with the manifest.
template <class Take>
void read_tensors(const CheckpointFiles& files, const Manifest& manifest, Take&& take) {
  const SafetensorsFile file(files.open(kTensorFile));
  Hasher whole;
  whole.update(std::as_bytes(std::span(file.preamble())));
  for (const TensorEntry& listed : file.tensors()) {
    const Tensor tensor = file.read(listed);
    const std::span<const std::byte> bytes(static_cast<const std::byte*>(tensor.data()), tensor.bytes());
    require_same(digest_of(bytes), manifest.tensors, listed.name, file.path() + ": tensor '" + listed.name + "'");
    whole.update(bytes);
    take(listed.name, tensor);
  }
  require_same(whole.digest(), manifest.files, kTensorFile, file.path());
}

}  // namespace

TrainingState parse_state(std::string_view content, const std::string& file) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(content.data()),
                                                static_cast<int>(content.size()));
  stream.SetTotalBytesLimit(static_cast<int>(content.size()));
  stream.SetRecursionLimit(kMaxMessageDepth);
  TrainingState state;
  if (!state.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    throw StorageError(file + " does not hold a training state");
  }
  return state;
}

void write_checkpoint(const std::string& path, const TrainingState& state,
                      const std::map<std::string, Tensor>& tensors) {
  Manifest manifest;
  manifest.step = state.step();
  manifest.files[kStateFile] = write_file(path + "/" + kStateFile, state.SerializeAsString());
  std::vector<NamedTensor> named;
  for (const auto& [name, tensor] : tensors) named.push_back({name, tensor});
  SafetensorsDigest written =
      write_safetensors(path + "/" + kTensorFile, std::move(named), {{"lockstep_version", state.lockstep_version()}});
  manifest.files[kTensorFile] = written.file;
  manifest.tensors = std::move(written.tensors);
  write_file(path + "/" + kManifestFile, format_manifest(manifest));
  sync_directory(path);
}

Manifest check_sizes(const std::string& path) { return sound_manifest(CheckpointFiles(path)); }

Manifest verify_checkpoint(const std::string& path) {
  const CheckpointFiles files(path);
  Manifest manifest = sound_manifest(files);
  read_state(files, manifest);
  read_tensors(files, manifest, [](const std::string&, const Tensor&) {});
  return manifest;
}

TrainingState read_state(const std::string& path) {
  const CheckpointFiles files(path);
  return read_state(files, sound_manifest(files));
}

Checkpoint read_without_tensors(const std::string& path) {
  const CheckpointFiles files(path);
  const Manifest manifest = sound_manifest(files);
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.state = read_state(files, manifest);
  read_tensors(files, manifest, [](const std::string&, const Tensor&) {});
  return checkpoint;
}

Checkpoint read_checkpoint(const std::string& path) {
  const CheckpointFiles files(path);
  const Manifest manifest = sound_manifest(files);
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.state = read_state(files, manifest);
  read_tensors(files, manifest,
               [&](const std::string& name, const Tensor& tensor) { checkpoint.tensors.emplace(name, tensor); });
  return checkpoint;
}

}  // namespace lockstep::checkpoint
