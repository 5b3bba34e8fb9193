// SPDX-License-Identifier: Apache-2.0
// Functions of one, two and three numbers with their gradients, and the gradients of those.
#include <functional>

#include "runtime/autograd/engine.h"
#include "runtime/ops/ops.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::kernels {
namespace {

using Inputs = std::vector<Tensor>;
using Function = std::function<Tensor(const Inputs&)>;

class GoldenPointwise : public GoldenTest {
 protected:
  void check(const Function& function, const json& stored) const {
    const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
    Inputs inputs, directions;
    for (const json& input : stored["inputs"]) {
      inputs.push_back(read(input));
      inputs.back().set_requires_grad(true);
    }
    const Tensor y = function(inputs), dy = read(stored["dy"]);
    expect(y, stored["y"]);
    const Sums sums = Sums::over({y});  // over what was broadcast
    const Inputs gradients = autograd::grad(y, inputs, dy, {.retain_graph = true});
    const Inputs recorded = autograd::grad(y, inputs, dy, {.create_graph = true});
    Inputs outputs, seeds;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      SCOPED_TRACE("input " + std::to_string(i));
      expect(gradients[i], stored["gradients"][i], sums);
      expect(recorded[i], stored["gradients"][i], sums);
      if (!recorded[i].requires_grad()) continue;  // a constant
      outputs.push_back(recorded[i]);
      seeds.push_back(read(stored["directions"][i]));
    }
    Inputs second(inputs.size());
    if (!outputs.empty()) second = autograd::grad(outputs, inputs, seeds, {.allow_unused = true});
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      SCOPED_TRACE("second gradient, of input " + std::to_string(i));
      const Tensor found = second[i].defined() ? second[i] : ops::zeros_like(inputs[i]);
      expect(found, stored["second_gradients"][i], sums.twice());
    }
  }

  void check_group(const std::string& group, const std::map<std::string, Function>& functions) const {
    const json& cases = golden("pointwise").at(group);
    ASSERT_FALSE(cases.empty());
    for (const auto& [name, stored] : cases.items()) {
      SCOPED_TRACE(group + "." + name);
      // "mul_row" is a case of "mul".
      const auto function =
          functions.contains(name) ? functions.find(name) : functions.find(name.substr(0, name.find('_')));
      ASSERT_NE(function, functions.end());
      check(function->second, stored);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenPointwise, ::testing::ValuesIn(kComputers), name_of_computer);

Function of_one(Tensor (*function)(const Tensor&)) {
  return [function](const Inputs& in) { return function(in[0]); };
}
Function of_two(Tensor (*function)(const Tensor&, const Tensor&)) {
  return [function](const Inputs& in) { return function(in[0], in[1]); };
}

TEST_P(GoldenPointwise, FunctionsOfOneNumberArePyTorchs) {
  check_group("unary", {{"neg", of_one(ops::neg)},
                        {"abs", of_one(ops::abs)},
                        {"exp", of_one(ops::exp)},
                        {"expm1", of_one(ops::expm1)},
                        {"sin", of_one(ops::sin)},
                        {"cos", of_one(ops::cos)},
                        {"sinh", of_one(ops::sinh)},
                        {"cosh", of_one(ops::cosh)},
                        {"atan", of_one(ops::atan)},
                        {"erf", of_one(ops::erf)},
                        {"erfinv", of_one(ops::erfinv)},
                        {"sign", of_one(ops::sign)},
                        {"floor", of_one(ops::floor)},
                        {"ceil", of_one(ops::ceil)},
                        {"round", of_one(ops::round)},
                        {"trunc", of_one(ops::trunc)},
                        {"tanh", of_one(ops::tanh)},
                        {"sigmoid", of_one(ops::sigmoid)},
                        {"sqrt", of_one(ops::sqrt)},
                        {"rsqrt", of_one(ops::rsqrt)},
                        {"reciprocal", of_one(ops::reciprocal)},
                        {"log", of_one(ops::log)},
                        {"log1p", of_one(ops::log1p)},
                        {"log2", of_one(ops::log2)},
                        {"log10", of_one(ops::log10)},
                        {"tan", of_one(ops::tan)},
                        {"asin", of_one(ops::asin)},
                        {"acos", of_one(ops::acos)},
                        {"relu", of_one(ops::relu)},
                        {"gelu", of_one(ops::gelu)},
                        {"gelu_tanh", of_one(ops::gelu_tanh)},
                        {"silu", of_one(ops::silu)},
                        {"leaky_relu", [](const Inputs& in) { return ops::leaky_relu(in[0], 0.2); }},
                        {"elu", [](const Inputs& in) { return ops::elu(in[0], 1.5); }},
                        {"softplus", [](const Inputs& in) { return ops::softplus(in[0], 2, 3); }},
                        {"clamp", [](const Inputs& in) { return ops::clamp(in[0], -1, 0.5); }},
                        {"pow_number", [](const Inputs& in) { return ops::pow(in[0], 2.5); }},
                        {"number_pow", [](const Inputs& in) { return ops::pow(2.5, in[0]); }},
                        {"number_div", [](const Inputs& in) { return 2.5 / in[0]; }},
                        {"number_sub", [](const Inputs& in) { return 2.5 - in[0]; }}});
}

TEST_P(GoldenPointwise, FunctionsOfTwoBroadcastOperandsArePyTorchs) {
  check_group("binary", {{"add", of_two(ops::add)},
                         {"sub", of_two(ops::sub)},
                         {"mul", of_two(ops::mul)},
                         {"div", of_two(ops::div)},
                         {"pow", of_two(ops::pow)},
                         {"atan2", of_two(ops::atan2)},
                         {"maximum", of_two(ops::maximum)},
                         {"minimum", of_two(ops::minimum)}});
}

TEST_P(GoldenPointwise, FunctionsOfThreeNumbersArePyTorchs) {
  check_group("ternary",
              {{"lerp", [](const Inputs& in) { return ops::lerp(in[0], in[1], in[2]); }},
               {"addcmul", [](const Inputs& in) { return ops::addcmul(in[0], in[1], in[2], 0.75); }},
               {"addcdiv", [](const Inputs& in) { return ops::addcdiv(in[0], in[1], in[2], 0.75); }},
               {"where", [](const Inputs& in) { return ops::where(ops::gt(in[0].detach(), 0), in[0] * in[1], in[2]); }},
               {"clamp", [](const Inputs& in) { return ops::clamp(in[0], in[1], in[2]); }}});
}

TEST_P(GoldenPointwise, PreluIsPyTorchs) {
  check_group("prelu", {{"channels", of_two(ops::prelu)}, {"one", of_two(ops::prelu)}});
}

}  // namespace
}  // namespace lockstep::kernels
