// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/checkpoint/pickle.h"
#include "runtime/checkpoint/torch_file.h"
#include "tests/fuzz/target.h"
#include "tests/support/zip_archive.h"

namespace lockstep::fuzz {

namespace {

/// The pickle that torch.save writes of one tensor, within an archive "data.pkl".
std::vector<std::string> pickle_seeds() {
  const auto text = [](const std::string& value) {
    return 'X' + std::string(1, static_cast<char>(value.size())) + std::string(3, '\0') + value;
  };
  const std::string storage = "((" + text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") + "K\1tQ";
  const std::string tensor = "ctorch._utils\n_rebuild_tensor_v2\n" + storage + "K" + std::string(1, '\0') +
                             "K\1K\1\x86K\1K\1\x86\x89"
                             "ccollections\nOrderedDict\n)RtR";
  return {"\x80\2}(" + text("weight") + tensor + "u}" + text("_metadata") + "Nsb."};
}

/// Whole archives: a tensor of one number.
std::vector<std::string> torch_seeds() {
  return {pickle_seeds()[0],
          zip_archive({{"w/data.pkl", pickle_seeds()[0]}, {"w/byteorder", "little"}, {"w/data/0", "\1\2\3\4"}})};
}

void read_pickle(std::string_view bytes) {
  const checkpoint::Pickle pickle(bytes, "data.pkl",
                                  {"collections OrderedDict", "torch._utils _rebuild_tensor_v2", "torch FloatStorage"});
}

/// As a whole file, as the pickle in one, since behind a checksum nothing else reaches that, and as a pickle alone.
void fuzz_torch(std::string_view bytes) {
  const std::string archive = zip_archive({{"w/data.pkl", std::string(bytes)}, {"w/data/0", std::string(64, '\1')}});
  for (const std::string_view file : {bytes, std::string_view(archive)}) {
    with_file(file, [](const std::string& path) { checkpoint::read_torch_file(path); });
  }
  try {
    read_pickle(bytes);
  } catch (const StorageError&) {
  }
}

/// Either form, read whole.
bool is_valid_torch(const std::string& seed) {
  if (seed == pickle_seeds()[0]) {
    read_pickle(seed);
    return true;
  }
  bool is_valid = false;
  with_file(seed, [&is_valid](const std::string& path) { is_valid = checkpoint::read_torch_file(path).size() == 1; });
  return is_valid;
}

}  // namespace

Target torch_target() {
  return {.parse = fuzz_torch, .seeds = torch_seeds(), .rounds = 10'000, .is_valid = is_valid_torch};
}

}  // namespace lockstep::fuzz
