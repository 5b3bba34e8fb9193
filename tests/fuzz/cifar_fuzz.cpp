// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/cifar.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

/// An image of CIFAR-10 and one of CIFAR-100.
std::vector<std::string> cifar_seeds() {
  const std::string image(3 * 32 * 32, '\x55');
  return {"\7" + image, "\3\x0c" + image};
}

/// As each kind of records, opened and described.
void fuzz_cifar(std::string_view bytes) {
  for (const data::CifarLabels labels :
       {data::CifarLabels::kCifar10, data::CifarLabels::kCifar100Coarse, data::CifarLabels::kCifar100Fine}) {
    with_file(bytes, [labels](const std::string& path) { data::CifarKind::describe({{path}, labels}); });
    with_file(bytes, [labels](const std::string& path) {
      const data::DatasetPtr set = data::CifarKind::open({{path}, labels});
      std::vector<float> values(32 * 32 * 3);
      std::int64_t label = 0;
      set->get({.index = set->size() - 1}, {.values = values, .labels = std::span(&label, 1)});
    });
  }
}

}  // namespace

Target cifar_target() { return {.parse = fuzz_cifar, .seeds = cifar_seeds(), .rounds = 3'000}; }

}  // namespace lockstep::fuzz
