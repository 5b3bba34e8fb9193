// SPDX-License-Identifier: Apache-2.0
// fuzz_seeds FOLDER: writes each parser's seeds as FOLDER/PARSER/NUMBER, where libFuzzer reads them.
#include <filesystem>
#include <fstream>

#include "tests/fuzz/seeds.h"

namespace {

void write(const std::filesystem::path& folder, const std::vector<std::string>& seeds) {
  std::filesystem::create_directories(folder);
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    std::ofstream(folder / std::to_string(i), std::ios::binary) << seeds[i];
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder(argv[1]);
  write(folder / "byte_pairs", lockstep::fuzz::byte_pairs_seeds());
  write(folder / "cifar", lockstep::fuzz::cifar_seeds());
  write(folder / "csv", lockstep::fuzz::csv_seeds());
  write(folder / "events", lockstep::fuzz::events_seeds());
  write(folder / "idx", lockstep::fuzz::idx_seeds());
  write(folder / "image", lockstep::fuzz::image_seeds());
  write(folder / "manifest", lockstep::fuzz::manifest_seeds());
  write(folder / "nifti", lockstep::fuzz::nifti_seeds());
  write(folder / "npy", lockstep::fuzz::npy_seeds());
  write(folder / "run_record", lockstep::fuzz::run_record_seeds());
  write(folder / "safetensors", lockstep::fuzz::safetensors_seeds());
  write(folder / "scaler", lockstep::fuzz::scaler_seeds());
  write(folder / "shards", lockstep::fuzz::shards_seeds());
  write(folder / "state", lockstep::fuzz::state_seeds());
  write(folder / "tcp", lockstep::fuzz::tcp_seeds());
  write(folder / "tokens", lockstep::fuzz::tokens_seeds());
  std::vector<std::string> torch = lockstep::fuzz::pickle_seeds();
  for (const std::string& archive : lockstep::fuzz::torch_seeds()) torch.push_back(archive);
  write(folder / "torch", torch);
  return 0;
}
