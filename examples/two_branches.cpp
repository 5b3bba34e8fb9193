// SPDX-License-Identifier: Apache-2.0
// A network with two branches: one looks at an image, the other at a table of numbers beside it. A command, as
// own_command.cpp is one:
//   two_branches train two_branches.pbtxt --nproc 2 --run-dir RUN
#include <lockstep/lockstep.h>

#include <memory>
#include <vector>

using namespace lockstep;

/// Images of 8 x 8 with a bright bar, each beside two numbers. The class is where the bar lies, shifted by the table.
class BarsAndTables final : public data::Dataset {
 public:
  explicit BarsAndTables(std::int64_t samples) : samples_(samples) {}
  std::int64_t size() const override { return samples_; }
  Shape sample_shape() const override { return {8, 8, 1}; }
  std::vector<InputSpec> more_inputs() const override { return {{.shape = {2}}}; }
  std::int64_t classes() const override { return 8; }
  void get(const data::SampleKey& key, const data::Sample& sample) const override {
    const std::int64_t bar = key.index % 8, shift = key.index / 8 % 2;
    for (std::int64_t i = 0; i < 64; ++i) {
      sample.values[static_cast<std::size_t>(i)] = i % 8 == bar ? 1.0f : static_cast<float>((i * key.index) % 7) / 20;
    }
    sample.more_inputs[0].values[0] = static_cast<float>(shift);
    sample.more_inputs[0].values[1] = static_cast<float>(key.index % 3);  // says nothing
    sample.labels[0] = (bar + shift) % 8;
  }

 private:
  std::int64_t samples_;
};

class TwoBranches final : public nn::MultiInputModule<2> {
 public:
  explicit TwoBranches(const model_zoo::ModelInput& input)
      : image_(add_module<nn::Linear>("image", input.sample_shape.numel(), 64)),
        table_(add_module<nn::Linear>("table", input.more_inputs.at(0).shape.numel(), 64)),
        head_(add_module<nn::Linear>("head", 64, input.outputs)) {}
  Tensor forward(const Tensor& image, const Tensor& table) override {
    return head_(ops::gelu(image_(ops::flatten(image)) + table_(table)));
  }

 private:
  nn::Linear& image_;
  nn::Linear& table_;
  nn::Linear& head_;
};

int main(int argc, char** argv) {
  model_zoo::register_model("two_branches", [](const model_zoo::ModelInput& input, const Settings&) {
    return std::make_unique<TwoBranches>(input);
  });
  data::register_dataset("bars_and_tables", [](const Settings& settings) {
    return std::make_shared<BarsAndTables>(settings.integer("samples"));
  });
  return lockstep::main(argc, argv);
}
