// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/nn/parameter.h"

namespace lockstep::optim {

/// Options of some of the parameters, which are named by `match` or by `parameters`.
struct ParameterGroup {
  std::string match = {};                      ///< a regular expression searched in the parameter's name, "\\.bias$"
  double lr_scale = 1;                         ///< >= 0: factor of the learning rate
  std::optional<double> weight_decay = {};     ///< >= 0; default: the optimizer's, and none for norms and biases
  std::vector<nn::Parameter> parameters = {};  ///< the parameters themselves: model->parameters() of a part of it
  /// >= 0: a learning rate instead of lr_scale. It is kept as the ratio to the optimizer's, so a schedule moves both.
  std::optional<double> lr = {};
  /// Whether their norms change their rate: LAMB, LARC, LARS. Default: under LAMB where they decay, or use_nvlamb is
  /// set; under LARC always; under LARS weights alone, not norms and biases.
  std::optional<bool> layer_adaptation = {};
  bool frozen = false;  ///< they require no gradient from then on, and stay as they are until they do
  /// Of a frozen group: the batch norms whose weights it has normalise by their running statistics in training, too,
  /// and leave them as they are, as in evaluation; amp::initialize() sees to it.
  bool freeze_statistics = false;

  static constexpr auto fields() {
    return std::tuple(
        option("match", &ParameterGroup::match), option("lr_scale", &ParameterGroup::lr_scale, kNotNegative),
        option("weight_decay", &ParameterGroup::weight_decay, kNotNegative),
        option("layer_adaptation", &ParameterGroup::layer_adaptation), option("frozen", &ParameterGroup::frozen),
        option("freeze_statistics", &ParameterGroup::freeze_statistics));
  }
  bool operator==(const ParameterGroup&) const = default;
};

/// Apex's LARC (You et al.: arXiv 1708.03888), around an optimizer's rule: each parameter's gradient, weight decay
/// included, is multiplied by a rate of its own, trust_coefficient * |weight| / (|gradient| + weight_decay * |weight| +
/// epsilon). Where the weight or the gradient is 0, the rate is 1, and the weight does not decay.
struct LarcOptions {
  double trust_coefficient = 0.02;  ///< > 0
  bool clip = true;                 ///< the rate limits lr: it is divided by it, and at most 1; false: it multiplies lr
  double epsilon = 1e-8;            ///< >= 0

  static constexpr auto fields() {
    return std::tuple(option("trust_coefficient", &LarcOptions::trust_coefficient, kPositive),
                      option("clip", &LarcOptions::clip), option("epsilon", &LarcOptions::epsilon, kNotNegative));
  }
  bool operator==(const LarcOptions&) const = default;
};

/// Options of every optimizer, beside those of its rule.
struct OptimizerOptions {
  std::optional<double> clip_norm = {};     ///< > 0: clips by global norm after unscaling; default: does not
  std::optional<double> clip_value = {};    ///< > 0: clips each element after unscaling; default: does not
  std::vector<ParameterGroup> groups = {};  ///< the first one that matches a parameter's name applies
  /// Default: none. Refused by LAMB, LARS and NovoGrad, whose rules look at norms themselves.
  std::optional<LarcOptions> larc = {};

  static constexpr auto fields() {
    return std::tuple(option("clip_norm", &OptimizerOptions::clip_norm, kPositive),
                      option("clip_value", &OptimizerOptions::clip_value, kPositive),
                      option("group", &OptimizerOptions::groups), option("larc", &OptimizerOptions::larc));
  }
  bool operator==(const OptimizerOptions&) const = default;
};

/// LAMB, with the names and defaults of Apex's FusedLAMB. Norms and biases never decay unless a group says so.
struct LambOptions {
  double lr = 0;                ///< > 0: has to be given
  double beta1 = 0.9;           ///< >= 0 and < 1
  double beta2 = 0.999;         ///< >= 0 and < 1
  double epsilon = 1e-6;        ///< > 0
  double weight_decay = 0.01;   ///< >= 0
  bool bias_correction = true;  ///< of both moments, by the parameter's own steps
  bool grad_averaging = true;   ///< 1 - beta1 of a gradient enters the first moment; false: all of it
  /// >= 0: of all gradients together, unscaled; 0: no limit. With OptimizerOptions::clip_norm the smaller one holds.
  double max_grad_norm = 1.0;
  bool use_nvlamb = false;  ///< the trust ratio applies to parameters that do not decay, too
  bool adam_w_mode = true;  ///< weight decay is part of the update; false: it is added to the gradient

  static constexpr std::string_view kKind = "lamb";  ///< its name in a job
  static constexpr bool kTakesLarc = false;
  static constexpr auto fields() {
    return std::tuple(option("lr", &LambOptions::lr, kPositive, Required{"the learning rate"}),
                      option("beta1", &LambOptions::beta1, kFraction), option("beta2", &LambOptions::beta2, kFraction),
                      option("epsilon", &LambOptions::epsilon, kPositive),
                      option("weight_decay", &LambOptions::weight_decay, kNotNegative),
                      option("bias_correction", &LambOptions::bias_correction),
                      option("grad_averaging", &LambOptions::grad_averaging),
                      option("max_grad_norm", &LambOptions::max_grad_norm, kNotNegative),
                      option("use_nvlamb", &LambOptions::use_nvlamb), option("adam_w_mode", &LambOptions::adam_w_mode));
  }
  bool operator==(const LambOptions&) const = default;
};

/// A gradient's norm.
enum class NovogradNorm { kL2, kLargest };

/// NovoGrad, with the names and defaults of Apex's FusedNovoGrad. Norms and biases never decay unless a group says so.
struct NovogradOptions {
  double lr = 0;                          ///< > 0: has to be given
  double beta1 = 0.9;                     ///< >= 0 and < 1
  double beta2 = 0.999;                   ///< >= 0 and < 1
  double epsilon = 1e-8;                  ///< > 0
  double weight_decay = 0;                ///< >= 0
  bool bias_correction = true;            ///< of both moments, by the parameter's own steps
  bool grad_averaging = true;             ///< 1 - beta1 of a gradient enters the first moment; false: all of it
  bool reg_inside_moment = false;         ///< as in the paper: the moment is of normalised gradients with their decay
  NovogradNorm norm = NovogradNorm::kL2;  ///< Apex's norm_type: 2, and 0 for kLargest, the largest magnitude
  bool init_zero = false;                 ///< the second moment starts at 0; false: at the first gradient's

  static constexpr std::string_view kKind = "novograd";  ///< its name in a job
  static constexpr bool kTakesLarc = false;
  static constexpr auto fields() {
    return std::tuple(option("lr", &NovogradOptions::lr, kPositive, Required{"the learning rate"}),
                      option("beta1", &NovogradOptions::beta1, kFraction),
                      option("beta2", &NovogradOptions::beta2, kFraction),
                      option("epsilon", &NovogradOptions::epsilon, kPositive),
                      option("weight_decay", &NovogradOptions::weight_decay, kNotNegative),
                      option("bias_correction", &NovogradOptions::bias_correction),
                      option("grad_averaging", &NovogradOptions::grad_averaging),
                      option("reg_inside_moment", &NovogradOptions::reg_inside_moment),
                      option("norm", &NovogradOptions::norm), option("init_zero", &NovogradOptions::init_zero));
  }
  bool operator==(const NovogradOptions&) const = default;
};

/// LARS (You, Gitman, Ginsburg: arXiv 1708.03888): SGD whose momentum is of steps, so that it keeps the rate that each
/// gradient came with, at a rate for each parameter of lr * trust_coefficient * |weight| / (|gradient| + weight_decay *
/// |weight| + epsilon), and lr where one of the norms is 0. Norms and biases neither decay nor have rates of their own
/// unless a group says so.
struct LarsOptions {
  double lr = 0;                     ///< > 0: has to be given
  double momentum = 0.9;             ///< >= 0 and < 1
  double weight_decay = 0;           ///< >= 0
  double trust_coefficient = 0.001;  ///< > 0
  double epsilon = 0;                ///< >= 0
  bool nesterov = false;             ///< needs momentum > 0

  static constexpr std::string_view kKind = "lars";  ///< its name in a job
  static constexpr bool kTakesLarc = false;
  static constexpr auto fields() {
    return std::tuple(option("lr", &LarsOptions::lr, kPositive, Required{"the learning rate"}),
                      option("momentum", &LarsOptions::momentum, kFraction),
                      option("weight_decay", &LarsOptions::weight_decay, kNotNegative),
                      option("trust_coefficient", &LarsOptions::trust_coefficient, kPositive),
                      option("epsilon", &LarsOptions::epsilon, kNotNegative),
                      option("nesterov", &LarsOptions::nesterov));
  }
  bool operator==(const LarsOptions&) const = default;
};

// The problems for which an optimizer refuses the options; empty where they can be used.
FieldProblems problems_of(const OptimizerOptions& options);
FieldProblems problems_of(const LambOptions& options);
FieldProblems problems_of(const NovogradOptions& options);
FieldProblems problems_of(const LarsOptions& options);

/// Whether LARC can be around the rule.
template <class Options>
constexpr bool takes_larc() {
  if constexpr (requires { Options::kTakesLarc; }) {
    return Options::kTakesLarc;
  } else {
    return true;
  }
}
/// The problems of these options beside a rule that does not take LARC.
FieldProblems problems_without_larc(const OptimizerOptions& options);
/// Returns the options. Throws FieldError for options.larc.
const OptimizerOptions& without_larc(const OptimizerOptions& options);

/// `options`, unless they have problems: then throws FieldError for the first. `path`: require_none().
template <class Options>
const Options& checked(const Options& options, const std::string& path) {
  require_none(problems_of(options), path);
  return options;
}

}  // namespace lockstep::optim

namespace lockstep {

template <>
struct EnumNames<optim::NovogradNorm> {
  static constexpr std::array kNames{std::pair{optim::NovogradNorm::kL2, std::string_view("L2")},
                                     std::pair{optim::NovogradNorm::kLargest, std::string_view("LARGEST")}};
};

}  // namespace lockstep
