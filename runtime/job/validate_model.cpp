// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/validate_parts.h"

namespace lockstep::job {

namespace {

void check_widths(const google::protobuf::RepeatedField<std::uint32_t>& widths, const std::string& path,
                  Checker& checker) {
  for (int i = 0; i < widths.size(); ++i) checker.at_least_one(widths[i], element_path(path, i));
}

void check(const Mlp& mlp, Checker& checker) {
  check_widths(mlp.hidden(), "model.mlp.hidden", checker);
  checker.fraction(mlp.dropout(), "model.mlp.dropout");
  if (mlp.has_outputs()) checker.at_least_one(mlp.outputs(), "model.mlp.outputs");
}

void check(const ConvBlock& block, const std::string& path, Checker& checker) {
  checker.required_positive(block.channels(), path + ".channels", "the number of output channels");
  checker.check(block.kernel() % 2 == 1, path + ".kernel", "odd", block.kernel());
  checker.at_least_one(block.stride(), path + ".stride");
  if (block.has_max_pool()) checker.at_least_one(block.max_pool(), path + ".max_pool");
  checker.fraction(block.dropout(), path + ".dropout");
}

void check(const Convnet& convnet, Checker& checker) {
  checker.require(convnet.block_size() > 0, "model.convnet.block", "at least one convolution, block { channels: 32 }");
  for (int i = 0; i < convnet.block_size(); ++i) {
    check(convnet.block(i), element_path("model.convnet.block", i), checker);
  }
  checker.fraction(convnet.dropout(), "model.convnet.dropout");
  check_widths(convnet.hidden(), "model.convnet.hidden", checker);
}

void check(const Resnet& resnet, Checker& checker) {
  const std::uint32_t depth = resnet.depth();
  const bool known = depth == 18 || depth == 34 || depth == 50 || depth == 101 || depth == 152;
  if (checker.require(depth != 0, "model.resnet.depth", "one of 18, 34, 50, 101, 152")) {
    checker.check(known, "model.resnet.depth", "one of 18, 34, 50, 101, 152", depth);
  }
  checker.at_least_one(resnet.width(), "model.resnet.width");
}

}  // namespace

void validate_model(const Model& model, Checker& checker) {
  switch (model.kind_case()) {
    case Model::kMlp:
      return check(model.mlp(), checker);
    case Model::kConvnet:
      return check(model.convnet(), checker);
    case Model::kResnet:
      return check(model.resnet(), checker);
    case Model::KIND_NOT_SET:
      checker.require(false, "model", "one of mlp, convnet, resnet");
  }
}

}  // namespace lockstep::job
