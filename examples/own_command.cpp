// SPDX-License-Identifier: Apache-2.0
// A command that knows a model, a data set and a loss of one's own. The job calls them by their names; run directory,
// metrics, checkpoints, resume and all commands are lockstep's:
//   own_command train own_command.pbtxt --nproc 2 --run-dir RUN
#include <lockstep/lockstep.h>

#include <cmath>
#include <memory>

using namespace lockstep;

/// Samples x in [-3, 3), targets sin x.
class Sine final : public data::Dataset {
 public:
  explicit Sine(std::int64_t samples) : samples_(samples) {}
  std::int64_t size() const override { return samples_; }
  Shape sample_shape() const override { return {1}; }
  std::int64_t classes() const override { return 0; }  // regression
  Shape target_shape() const override { return {1}; }
  void get(const data::SampleKey& key, const data::Sample& sample) const override {
    sample.values[0] = 6.0f * static_cast<float>(key.index) / static_cast<float>(samples_) - 3.0f;
    sample.target[0] = std::sin(sample.values[0]);
  }

 private:
  std::int64_t samples_;
};

class Residual final : public nn::Module {
 public:
  Residual(const model_zoo::ModelInput& input, std::int64_t width)
      : in_(add_module<nn::Linear>("in", input.sample_shape.numel(), width)),
        middle_(add_module<nn::Linear>("middle", width, width)),
        out_(add_module<nn::Linear>("out", width, input.outputs)) {}
  Tensor forward(const Tensor& x) override {
    const Tensor hidden = ops::gelu(in_(x));
    return out_(hidden + ops::gelu(middle_(hidden)));
  }

 private:
  nn::Linear& in_;
  nn::Linear& middle_;
  nn::Linear& out_;
};

int main(int argc, char** argv) {
  model_zoo::register_model("residual", [](const model_zoo::ModelInput& input, const Settings& settings) {
    return std::make_unique<Residual>(input, settings.integer("width", 64));
  });
  data::register_dataset("sine",
                         [](const Settings& settings) { return std::make_shared<Sine>(settings.integer("samples")); });
  step::register_loss("huber", [](const Settings& settings) {
    return
        [delta = settings.number("delta", 1)](const Tensor& output, const Tensor& target, const ops::LossOptions& of) {
          return ops::huber(output, target, delta, {.divisor = of.divisor});
        };
  });
  return lockstep::main(argc, argv);
}
