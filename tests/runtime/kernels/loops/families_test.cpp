// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>

#include "runtime/kernels/backend.h"
#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

using testing::kDevices;
using testing::KernelTest;
using testing::name_of_on;

class Families : public KernelTest<> {};
INSTANTIATE_TEST_SUITE_P(On, Families, kDevices, name_of_on);

/// A family is a struct of pointers to functions and nothing else.
template <class Family>
void expect_complete(const Family& family) {
  using Entry = void (*)();
  static_assert(sizeof(Family) % sizeof(Entry) == 0);
  std::array<Entry, sizeof(Family) / sizeof(Entry)> entries;
  std::memcpy(entries.data(), &family, sizeof(Family));
  for (std::size_t i = 0; i < entries.size(); ++i) EXPECT_NE(entries[i], nullptr) << "entry " << i;
}

void expect_complete(const Backend& backend) {
  SCOPED_TRACE(backend.name);
  expect_complete<Elementwise>(backend);
  expect_complete<Pointwise>(backend);
  expect_complete<Reductions>(backend);
  expect_complete<MatrixProducts>(backend);
  expect_complete<Convolution>(backend);
  expect_complete<Pooling>(backend);
  expect_complete<Softmax>(backend);
  expect_complete<Losses>(backend);
  expect_complete<Attention>(backend);
  expect_complete<BatchNormalization>(backend);
  expect_complete<Normalization>(backend);
  expect_complete<Embedding>(backend);
  expect_complete<Upsampling>(backend);
  expect_complete<ArenaSteps>(backend);
  expect_complete<Decisions>(backend);
  expect_complete<Movement>(backend);
  expect_complete<DimReductions>(backend);
  expect_complete<Scans>(backend);
  expect_complete<Indexing>(backend);
}

TEST_P(Families, ADeviceHasEveryFunction) {
  expect_complete(backend(device()));
  expect_complete(reference_backend());
}

}  // namespace
}  // namespace lockstep::kernels
