// SPDX-License-Identifier: Apache-2.0
// What of CUDA the lowest floor calls, and from where, on a runtime that writes it down.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <thread>

#include "runtime/tensor/gpu.h"
#include "tests/runtime/tensor/cuda/recorded_runtime.h"

namespace lockstep::gpu {
namespace {

using testing::ElementsAre;

/// Not the machine's first one, which CUDA takes where a thread has named none.
constexpr Device kSecond{DeviceType::kCuda, 1};

/// Runs `work` on a thread that has named no device.
template <class Work>
void on_another_thread(Work&& work) {
  std::thread(std::forward<Work>(work)).join();
}

TEST(CudaCalls, OfAThreadThatDestroysWhatAnotherMadeMakeNoContextOnTheFirstDevice) {
  recorded_cuda::forget();
  on_another_thread([] {
    std::optional<Event> event = Stream::current(kSecond).record();
    std::optional<Stream> stream = Stream::create(kSecond, "side");
    std::optional<Moment> moment(Stream::current(kSecond));
    auto graph = std::make_unique<Graph>(kSecond);
    graph->capture([] {});
    graph->launch();
    std::optional<Storage> pinned = allocate_pinned(16);
    on_another_thread([&] { event.reset(); });
    on_another_thread([&] { stream.reset(); });
    on_another_thread([&] { moment.reset(); });
    on_another_thread([&] { graph.reset(); });
    on_another_thread([&] { pinned.reset(); });
  });
  EXPECT_THAT(recorded_cuda::contexts(), ElementsAre(1));
}

TEST(CudaCalls, OfAThreadThatAsksForWhatAnotherAppendedMakeNoContextOnTheFirstDevice) {
  recorded_cuda::forget();
  on_another_thread([] {
    const Stream stream = Stream::create(kSecond, "side");
    const Event event = stream.record();
    on_another_thread([&] { event.synchronize(); });
    on_another_thread([&] { stream.synchronize(); });
    on_another_thread([&] { stream.wait(event); });
    on_another_thread([&] { stream.record(); });
    const Moment before(stream), after(stream);
    on_another_thread([&] { EXPECT_EQ(after.since(before), recorded_cuda::kBetweenEvents); });
    on_another_thread([&] { Moment(stream).since(after); });
    on_another_thread([] { give_up_graphs(kSecond); });
  });
  EXPECT_THAT(recorded_cuda::contexts(), ElementsAre(1));
}

TEST(CudaCalls, GiveComputeTheLeastPriorityAndWhatItWaitsForTheGreatest) {
  on_another_thread([] {
    recorded_cuda::forget();
    const Stream compute = Stream::current(kSecond);
    const Stream lane = Stream::create(kSecond, "buckets");
    EXPECT_THAT(recorded_cuda::priorities(),
                ElementsAre(recorded_cuda::kLeastPriority, recorded_cuda::kGreatestPriority));
  });
}

TEST(CudaCalls, KeepThePrioritiesOfStreamsInAGraph) {
  on_another_thread([] {
    recorded_cuda::forget();
    Graph graph(kSecond);
    graph.capture([] {});
    EXPECT_THAT(recorded_cuda::graph_flags(), ElementsAre(cudaGraphInstantiateFlagUseNodePriority));
  });
}

}  // namespace
}  // namespace lockstep::gpu
