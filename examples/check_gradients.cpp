// SPDX-License-Identifier: Apache-2.0
// Two tools for whoever writes an operation or meets NaN: gradcheck compares a backward with differences, and
// DetectAnomaly names the operation that made the first NaN. Ends with 0 when both have found what is wrong here.
#include <lockstep/lockstep.h>

#include <cstdio>

using namespace lockstep;
using Tensors = std::vector<Tensor>;

/// x^2, with a backward that forgot the 2 unless `right`.
struct Square : autograd::Function<Square> {
  static Tensor forward(autograd::FunctionContext& context, const Tensor& x, bool right) {
    context.save_for_backward({x});
    context.saved_data["slope"] = right ? 2.0 : 1.0;
    return x * x;
  }
  static Tensors backward(autograd::FunctionContext& context, const Tensors& grads) {
    const double slope = std::any_cast<double>(context.saved_data["slope"]);
    return {ops::scale(grads[0] * context.saved_tensors()[0], slope), {}};
  }
};

/// The message of gradcheck on Square; empty where the gradients are right.
std::string mistake(bool right) try {
  const Tensor x = Tensor::from(std::vector<double>{0.5, -1, 2}, {3});
  x.set_requires_grad(true);
  const auto square = [right](const Tensors& in) { return Tensors{Square::apply(in[0], right)}; };
  autograd::gradcheck(square, {x});
  autograd::gradgradcheck(square, {x});
  return "";
} catch (const NumericsError& error) {
  return error.what();
}

/// The message of DetectAnomaly on the gradient of a distance that is 0; empty where it found no NaN.
std::string first_nan() try {
  const autograd::DetectAnomaly search;
  const Tensor a = Tensor::from(std::vector<float>{1, 2}, {2}), b = Tensor::from(std::vector<float>{1, 2}, {2});
  a.set_requires_grad(true);
  ops::sqrt(ops::sum((a - b) * (a - b))).backward();
  return "";
} catch (const NumericsError& error) {
  return error.what();
}

int main() try {
  const std::string right = mistake(true), wrong = mistake(false), nan = first_nan();
  std::printf("the backward with the 2: %s\nwithout: %s\n%s\n", right.empty() ? "right" : right.c_str(), wrong.c_str(),
              nan.c_str());
  return right.empty() && !wrong.empty() && !nan.empty() ? 0 : 1;
} catch (const Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), static_cast<int>(error.code());
}
