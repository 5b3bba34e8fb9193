// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/checkpoint/bundle.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/step/saved_preparation.h"
#include "tests/fuzz/target.h"
#include "tests/support/folder.h"

namespace lockstep::fuzz {

namespace {

std::vector<std::string> bundle_seeds() {
  const Folder folder;
  checkpoint::TrainingState state;
  state.set_step(3);
  step::save_preparation({.trained = {.samples = 4, .sample_shape = {2}, .classes = 2}, .class_names = {"a", "b"}},
                         state);
  const std::filesystem::path path = folder / "seed.lockstep";
  checkpoint::write_bundle(path, state, {{"model/w", Tensor::from(std::vector<float>{1, 2}, {2})}}, "{}\n");
  std::ifstream file(path, std::ios::binary);
  return {{std::istreambuf_iterator<char>(file), {}}};
}

void fuzz_bundle(std::string_view bytes) {
  with_file(bytes, [](const std::string& path) {
    const checkpoint::Checkpoint read = checkpoint::read_checkpoint(path);
    step::saved_preparation(read.state, path);
  });
}

}  // namespace

Target bundle_target() { return {.parse = fuzz_bundle, .seeds = bundle_seeds(), .rounds = 10'000}; }

}  // namespace lockstep::fuzz
