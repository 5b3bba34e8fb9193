// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/weight_file.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/files/durable_file.h"
#include "runtime/base/json_text.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/torch_file.h"

namespace lockstep::step {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMostIndexBytes = 64 << 20;

/// Those of `names`, or all where there are none.
void read_safetensors(const fs::path& path, const std::set<std::string>* names, nn::StateDict& into) {
  const checkpoint::SafetensorsFile file(path.string());
  for (const checkpoint::TensorEntry& entry : file.tensors()) {
    if (names == nullptr || names->contains(entry.name)) into[entry.name] = file.read(entry);
  }
}

nn::StateDict read_index(const fs::path& path) {
  const auto fail = [&path](const std::string& what) { throw StorageError(path.string() + ": " + what); };
  const auto index = parse_json(read_file(path.string(), kMostIndexBytes));
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    fail("is no index of safetensors files: there is no \"weight_map\"");
  }
  std::map<std::string, std::set<std::string>> names_of;
  for (const auto& [name, file] : index["weight_map"].items()) {
    // A name of a file beside the index, and no way out of the folder.
    if (!file.is_string() || fs::path(file.get<std::string>()).filename() != file.get<std::string>()) {
      fail("tensor '" + name + "' lies in no file beside it");
    }
    names_of[file.get<std::string>()].insert(name);
  }
  nn::StateDict tensors;
  for (const auto& [file, names] : names_of) {
    read_safetensors(path.parent_path() / file, &names, tensors);
    for (const std::string& name : names) {
      if (!tensors.contains(name)) fail("tensor '" + name + "' is not in " + file);
    }
  }
  return tensors;
}

void require_safetensors(const fs::path& path) {
  if (path.extension() == ".safetensors") return;
  throw UsageError(path.string() + ": the name of a file of weights to write must end in .safetensors");
}

}  // namespace

void save_weights(nn::Module& model, const fs::path& path) { write_weights(nn::state_dict(model), path); }

nn::StateDifferences load_weights(nn::Module& model, const fs::path& path, bool strict) {
  return nn::load_state_dict(model, read_weights(path), strict);
}

nn::StateDict read_weights(const fs::path& path) {
  nn::StateDict tensors;
  if (path.extension() == ".json") return read_index(path);
  if (path.extension() != ".safetensors") return checkpoint::read_torch_file(path.string());
  read_safetensors(path, nullptr, tensors);
  return tensors;
}

void write_weights(const nn::StateDict& tensors, const fs::path& path) {
  require_safetensors(path);
  std::vector<checkpoint::NamedTensor> on_cpu;
  for (const auto& [name, tensor] : tensors) on_cpu.push_back({name, tensor.detach().to(kCpu)});
  const fs::path beside = path.string() + ".tmp";
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  fs::remove(beside, error);
  try {
    checkpoint::write_safetensors(beside.string(), std::move(on_cpu), {{"format", "pt"}});
    fs::rename(beside, path, error);
    if (error) throw StorageError("cannot write " + path.string() + ": " + error.message());
    sync_directory(path.has_parent_path() ? path.parent_path().string() : ".");
  } catch (const StorageError&) {
    fs::remove(beside, error);
    throw;
  }
}

}  // namespace lockstep::step
