// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/weight_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "runtime/base/error.h"
#include "runtime/nn/layers.h"

namespace lockstep::step {
namespace {

namespace fs = std::filesystem;

class NormedLayer final : public nn::Module {
 public:
  NormedLayer() : linear_(add_module<nn::Linear>("linear", 3, 4)), norm_(add_module<nn::BatchNorm>("norm", 4)) {}
  Tensor forward(const Tensor& x) override { return norm_.forward(linear_.forward(x)); }

 private:
  nn::Linear& linear_;
  nn::BatchNorm& norm_;
};

class WeightFile : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove_all(folder_); }
  const fs::path folder_ = fs::path(::testing::TempDir()) / ("weight_file_" + std::to_string(getpid()));
};

TEST_F(WeightFile, HoldsParametersAndStatistics) {
  nn::manual_seed(1);
  NormedLayer saved;
  saved.forward(Tensor::from<float>({1, 2, 3, 4, 5, 7}, {2, 3}));
  saved.commit_statistics();
  const fs::path file = folder_ / "new" / "weights.safetensors";
  save_weights(saved, file);
  EXPECT_FALSE(fs::exists(file.string() + ".tmp"));
  nn::manual_seed(2);
  NormedLayer loaded;
  EXPECT_TRUE(load_weights(loaded, file).empty());
  const nn::StateDict before = nn::state_dict(saved), after = nn::state_dict(loaded);
  EXPECT_GT(before.size(), 4u);
  for (const auto& [name, tensor] : before) {
    for (std::int64_t i = 0; i < tensor.numel(); ++i) EXPECT_EQ(after.at(name).item(i), tensor.item(i)) << name;
  }
  save_weights(loaded, file);  // in place of the file that is there
  EXPECT_EQ(read_weights(file).size(), before.size());
}

TEST_F(WeightFile, ThatDoesNotFitTheModelChangesNothing) {
  NormedLayer model;
  const float before = model.parameters()[0].tensor.as<float>()[0];
  write_weights({{"linear.weight", Tensor::zeros({4, 3}, DType::kFloat32)}}, folder_ / "part.safetensors");
  EXPECT_THROW(load_weights(model, folder_ / "part.safetensors"), UsageError);
  EXPECT_EQ(model.parameters()[0].tensor.as<float>()[0], before);
  EXPECT_FALSE(load_weights(model, folder_ / "part.safetensors", false).missing.empty());
  EXPECT_EQ(model.parameters()[0].tensor.as<float>()[0], 0);
}

TEST_F(WeightFile, ThatCannotBeWrittenOrReadIsNamed) {
  NormedLayer model;
  EXPECT_THROW(save_weights(model, folder_ / "weights.pt"), UsageError);
  EXPECT_THROW(load_weights(model, folder_ / "absent.safetensors"), StorageError);
  fs::create_directories(folder_ / "taken.safetensors" / "inside");
  EXPECT_THROW(save_weights(model, folder_ / "taken.safetensors"), StorageError);
  EXPECT_FALSE(fs::exists(folder_ / "taken.safetensors.tmp"));
}

}  // namespace
}  // namespace lockstep::step
