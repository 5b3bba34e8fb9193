// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/memory_budget.h"

#include <gmock/gmock.h>

#include <limits>

#include "runtime/base/error.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(MemoryBudget, RefusesWhatDoesNotFitAndNamesIt) {
  MemoryBudget budget(std::uint64_t{2} << 30);
  budget.take(std::uint64_t{1} << 30, "a.csv");
  budget.take(std::uint64_t{1} << 30, "a.csv");
  EXPECT_THAT([&] { budget.take(std::uint64_t{1} << 30, "b.csv"); },
              ThrowsMessage<StorageError>(AllOf(HasSubstr("b.csv takes 3.0 GiB of memory"),
                                                HasSubstr("2.0 GiB may be taken"), HasSubstr("free on this machine"))));
  budget.take(0, "b.csv");
}

TEST(MemoryBudget, IsThatOfThisMachine) {
  MemoryBudget budget;
  budget.take(std::uint64_t{100} << 20, "a.csv");
  EXPECT_THROW(budget.take(std::numeric_limits<std::uint64_t>::max(), "a.csv"), StorageError);
  EXPECT_THROW(budget.take(std::uint64_t{1} << 50, "a.csv"), StorageError);
}

}  // namespace
}  // namespace lockstep
