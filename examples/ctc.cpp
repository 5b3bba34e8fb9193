// SPDX-License-Identifier: Apache-2.0
// Labels without their places: a recurrent network learns to spell strips of symbols, each of them several elements
// long, from the order of the symbols alone. Started as ctc, or as mpirun -n 2 ctc. Ends with 0 when it spells.
#include <lockstep/lockstep.h>

#include <cmath>
#include <cstdio>
#include <string>

using namespace lockstep;
constexpr std::int64_t kStrips = 16, kElements = 12, kSymbols = 3;

class Speller final : public nn::Module {
 public:
  Speller()
      : gru_(add_module<nn::Gru>("gru", kSymbols, 32, nn::RecurrentOptions{.bidirectional = true})),
        out_(add_module<nn::Linear>("out", 64, 1 + kSymbols)) {}  // class 0 is the blank
  Tensor forward(const Tensor& x) override { return ops::log_softmax(out_(gru_(x))); }

 private:
  nn::Gru& gru_;
  nn::Linear& out_;
};

int main() try {
  auto world = comm::World::from_environment();
  nn::manual_seed(1);
  Speller model;
  const auto optimizer = optim::adam(model.parameters(), {.lr = 0.01});
  amp::initialize(model, *optimizer, {.opt_level = amp::OptLevel::kO1, .dtype = DType::kBFloat16});
  comm::DistributedDataParallel ddp(model, world);

  // Three symbols a strip, each four elements long: [strips, elements, symbols] with noise; other strips on each rank.
  const std::uint64_t first = static_cast<std::uint64_t>(world.rank()) * kStrips;
  const Tensor drawn = ops::uniform({kStrips, 3}, {.seed = 2, .step = first}, {.high = kSymbols});
  const Tensor symbols = ops::minimum(drawn.to(DType::kInt64), ops::full({}, kSymbols - 1, {DType::kInt64}));
  const Tensor strips = ops::one_hot(
      ops::index_select(symbols, 1, Tensor::from<std::int64_t>({0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}, {12})), kSymbols);
  const Tensor x = strips + ops::normal(strips.shape(), {.seed = 3, .step = first}, {.deviation = 0.2});
  const Tensor lengths = ops::full({kStrips}, kElements, {DType::kInt64}),
               counts = ops::full({kStrips}, 3, {DType::kInt64});

  double loss = INFINITY;
  for (int i = 0; i < 150; ++i) {
    optimizer->zero_grad();
    const Tensor losses = ops::ctc(ddp.forward(x), ops::add(symbols, 1), lengths, counts, {.zero_infinity = true});
    losses.backward();
    optimizer->step();
    loss = losses.item();
  }
  // The likeliest class of each element: repeated ones are one symbol, blanks none.
  std::string spelt;
  const Tensor likeliest = ops::argmax(ddp.forward(x), -1)[0];
  for (const std::int64_t c : likeliest.as<std::int64_t>()) spelt += " 123"[c];
  std::printf("loss %.4f, the first strip is %s\n", loss, spelt.c_str());
  return loss < 0.1 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n%s\n", error.what(), error.advice().c_str());
  return static_cast<int>(error.code());
}
