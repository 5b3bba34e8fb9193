// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/record_observer.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "runtime/autograd/anomaly.h"
#include "runtime/autograd/engine.h"
#include "tests/runtime/autograd/graph.h"

namespace lockstep::autograd {
namespace {

using ::testing::ElementsAre;

/// Lists what it is told, while it lives.
class Listing final : public RecordObserver {
 public:
  Listing() : outer_(observe_records(this)) {}
  ~Listing() override { observe_records(outer_); }

  void recorded(std::string_view name, const std::vector<Tensor>&, const std::vector<Tensor>&) override {
    told.push_back("recorded " + std::string(name));
  }
  void placed(const Node& node) override { told.push_back("placed " + std::string(node.name())); }
  void backward_begins(const Node& node) override { told.push_back("begin " + std::string(node.name())); }
  void backward_ends(const Node& node) override { told.push_back("end " + std::string(node.name())); }

  std::vector<std::string> told;

 private:
  RecordObserver* outer_;
};

TEST(RecordObserver, IsToldOfEachPlaceAndOfBothEndsOfItsBackward) {
  const Tensor x = testing::leaf({1});
  Listing listing;
  const Tensor y = testing::probe(x, [&] { listing.told.push_back("run"); });
  backward(y);
  EXPECT_THAT(listing.told, ElementsAre("recorded probe", "placed probe", "begin probe", "run", "end probe"));
}

TEST(RecordObserver, AnOperationWithoutGradientsHasNoPlace) {
  Listing listing;
  testing::probe(testing::leaf({1}).detach(), [] {});
  EXPECT_THAT(listing.told, ElementsAre("recorded probe"));
}

TEST(RecordObserver, IsToldThroughASearchForAnomalies) {
  const Tensor x = testing::leaf({1});
  Listing listing;
  const DetectAnomaly search;
  backward(testing::probe(x, [] {}));
  EXPECT_THAT(listing.told, ElementsAre("recorded probe", "placed probe", "begin probe", "end probe"));
}

TEST(RecordObserver, ABackwardThatThrowsHasEnded) {
  const Tensor x = testing::leaf({1});
  Listing listing;
  const Tensor y = testing::probe(x, [] { throw std::runtime_error("stop"); });
  EXPECT_THROW(backward(y), std::runtime_error);
  EXPECT_EQ(listing.told.back(), "end probe");
}

}  // namespace
}  // namespace lockstep::autograd
