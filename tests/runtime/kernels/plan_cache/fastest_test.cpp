// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/plan_cache/fastest.h"

#include <gmock/gmock.h>

#include <functional>

namespace lockstep::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::Optional;
using Times = std::vector<std::optional<float>>;

TEST(Fastest, IsTheOneThatIsClearlyFasterThanThoseRankedBefore) {
  EXPECT_THAT(fastest(Times{5.0f}), Optional(Eq(0u)));
  EXPECT_THAT(fastest(Times{5.0f, 3.0f, 4.0f}), Optional(Eq(1u)));
  EXPECT_THAT(fastest(Times{5.0f, 4.0f, 3.0f}), Optional(Eq(2u)));
  EXPECT_THAT(fastest(Times{5.0f, 4.9f, 5.0f}), Optional(Eq(0u))) << "noise";
  EXPECT_THAT(fastest(Times{5.0f, 4.9f, 4.8f}), Optional(Eq(2u)));
}

TEST(Fastest, PassesByWhatDoesNotRun) {
  EXPECT_THAT(fastest(Times{std::nullopt, 5.0f, std::nullopt, 4.9f}), Optional(Eq(1u)));
  EXPECT_EQ(fastest(Times{std::nullopt, std::nullopt}), std::nullopt);
  EXPECT_EQ(fastest(Times{}), std::nullopt);
}

TEST(PutFirst, TheOthersKeepTheirOrder) {
  std::vector<int> ranked{1, 2, 3, 4};
  put_first(ranked, 3, std::equal_to<>());
  EXPECT_THAT(ranked, ElementsAre(3, 1, 2, 4));
  put_first(ranked, 3, std::equal_to<>());
  EXPECT_THAT(ranked, ElementsAre(3, 1, 2, 4));
}

TEST(PutFirst, AChoiceThatIsNotRankedComesBesideTheOthers) {
  std::vector<int> ranked{1, 2};
  put_first(ranked, 9, std::equal_to<>());
  EXPECT_THAT(ranked, ElementsAre(9, 1, 2));
}

}  // namespace
}  // namespace lockstep::kernels
