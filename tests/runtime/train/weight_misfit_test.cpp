// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/weight_misfit.h"

#include <gmock/gmock.h>

namespace lockstep::train {
namespace {

Tensor misfit_tensor(const Shape& shape) { return Tensor::zeros(shape, DType::kFloat32); }

nn::StateDict misfit_model() {
  nn::StateDict model;
  for (const char* const name : {"block1.norm", "block1.linear.weight", "block10.norm", "head.weight", "head.bias"}) {
    model[name] = misfit_tensor({4});
  }
  return model;
}

std::string choice_without(const std::vector<std::string>& names) {
  nn::StateDict found = misfit_model();
  for (const std::string& name : names) found.erase(name);
  return WeightMisfit(misfit_model(), found, misfit_model()).choice();
}

TEST(WeightMisfit, NamesTheModulesThatDoNotFitInOnePattern) {
  EXPECT_EQ(choice_without({"head.weight", "head.bias"}), "except: \"^head\"");
  EXPECT_EQ(choice_without({"head.bias"}), "except: \"^head.bias\"");
  EXPECT_EQ(choice_without({"head.bias", "head.weight", "block10.norm"}), "except: \"^(block10|head)\"");
  // "^block1" would take block10 with it.
  EXPECT_EQ(choice_without({"block1.norm", "block1.linear.weight"}), "except: \"^block1([.]|$)\"");
  EXPECT_EQ(choice_without({"block1.linear.weight"}), "except: \"^block1.linear\"");
}

TEST(WeightMisfit, HasNoPatternWhereAllOrNothingFits) {
  EXPECT_EQ(choice_without({}), "");
  EXPECT_EQ(choice_without({"block1.norm", "block1.linear.weight", "block10.norm", "head.weight", "head.bias"}), "");
  nn::StateDict more = misfit_model();
  more["pooler.weight"] = misfit_tensor({2});
  EXPECT_EQ(WeightMisfit(misfit_model(), more, misfit_model()).choice(), "match: \".\"");
}

TEST(WeightMisfit, TellsShapesInATable) {
  nn::StateDict found = misfit_model();
  found.erase("block10.norm");
  found["head.weight"] = misfit_tensor({5, 3});
  found["more"] = Tensor::zeros({2}, DType::kInt64);
  EXPECT_EQ(WeightMisfit(misfit_model(), found, misfit_model()).table(),
            "  name          shape in the file  shape in the model\n"
            "  block10.norm  missing            [4]\n"
            "  head.weight   [5, 3]             [4]\n"
            "  more          int64 [2]          none");
}

}  // namespace
}  // namespace lockstep::train
