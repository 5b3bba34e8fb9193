// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/build.h"

#include <fmt/format.h>

#include "model_zoo/largest_count.h"
#include "runtime/base/byte_size.h"
#include "runtime/base/error.h"
#include "runtime/nn/outline_tally.h"
#include "runtime/tensor/memory_room.h"

namespace lockstep::model_zoo {

namespace {

std::unique_ptr<nn::Module> outline_of(const ModelOptions& options, const ModelInput& input) {
  const nn::WithoutValues without_values;
  return std::visit([&input](const auto& kind) -> std::unique_ptr<nn::Module> { return make_model(kind, input); },
                    options);
}

/// ", and its weights take 26.4 PiB" of a model with so many equal layers that it is not built, by two small ones of
/// its kind. Empty of other kinds, and where one layer is too large by itself.
std::string memory_of_layers(const ModelOptions& options, const ModelInput& input) {
  return std::visit(
      [&input]<class Options>(Options kind) -> std::string {
        if constexpr (requires { kind.layers; }) {
          const auto layers = static_cast<double>(kind.layers);
          const auto bytes = [&](std::int64_t count) {
            kind.layers = count;
            double sum = 0;
            for (const nn::Parameter& parameter : outline_of(kind, input)->parameters()) {
              sum += 4.0 * static_cast<double>(parameter.tensor.numel());
            }
            return sum;
          };
          try {
            const double first = bytes(1);
            return ", and its weights take " + byte_size(first + (layers - 1) * (bytes(2) - first));
          } catch (const Error&) {
            return "";
          }
        } else {
          return "";
        }
      },
      options);
}

}  // namespace

std::unique_ptr<nn::Module> build(const ModelOptions& options, const ModelInput& input, std::uint64_t seed) {
  std::unique_ptr<nn::Module> model = outline(options, input);
  nn::initialize(*model, seed);
  return model;
}

std::unique_ptr<nn::Module> outline(const ModelOptions& options, const ModelInput& input) {
  const bool takes_more =
      std::holds_alternative<RegisteredOptions>(options) || std::holds_alternative<MlpOptions>(options);
  if (!input.more_inputs.empty() && !takes_more) {
    throw FieldError("model",
                     fmt::format("{} takes one input, and the samples of data.train have {}", name_of(options),
                                 input.more_inputs.size() + 1),
                     "For a table choose mlp, or make all of its columns numbers: csv { one_hot_up_to: 1024 }. For "
                     "other data register a model of your own: nn::MultiInputModule.");
  }
  try {
    return outline_of(options, input);
  } catch (const nn::ModelTooLarge& error) {
    const Count count = largest_count(options);
    std::string why = error.what() + memory_of_layers(options, input);
    if (const auto whole = whole_memory()) {
      why += "; this machine has " + byte_size(static_cast<double>(*whole)) + " of memory";
    }
    throw FieldError(count.path, fmt::format("{} makes too large a model: {}", count.value, why),
                     "Choose a smaller one.");
  }
}

std::string name_of(const ModelOptions& options) {
  return std::visit(
      []<class Options>(const Options& kind) {
        if constexpr (requires { kind.model_name(); }) {
          return kind.model_name();
        } else if constexpr (requires { kind.name; }) {
          return kind.name;
        } else {
          return std::string(Options::kKind);
        }
      },
      options);
}

}  // namespace lockstep::model_zoo
