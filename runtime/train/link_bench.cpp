// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/link_bench.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "comm/group/seating.h"
#include "comm/group/transport_choice.h"
#include "runtime/tensor/stream.h"

namespace lockstep::train {

namespace {

using comm::Communicator;
using comm::RankLayout;
using comm::RankLinks;

constexpr std::int64_t kNumbers = std::int64_t{1} << 20;
constexpr int kSmallOnes = 50, kLargeOnes = 10;

/// All-reduces of one number and of kNumbers.
struct AllReduceTimes {
  double small_us = 0;
  double large_us = 0;

  double large_gb_per_s() const {
    return 1e-3 * static_cast<double>(kNumbers * sizeof(float)) / std::max(large_us - small_us, 1e-3);
  }
};

/// The times of `count` all-reduces, in us. A collective.
std::vector<double> all_reduce_us(Communicator& communicator, const Tensor& buffer, int count) {
  const Stream stream = Stream::current(buffer.device());
  std::vector<double> times;
  for (int i = 0; i <= count; ++i) {  // the first one apart: it may make connections
    communicator.barrier(Stream::calling_thread());
    const auto begin = std::chrono::steady_clock::now();
    communicator.all_reduce(buffer, comm::ReduceOp::kSum, 1.0f, stream);
    stream.synchronize();
    const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    if (i > 0) times.push_back(us);
  }
  return times;
}

double least_time(std::vector<double> times) { return std::ranges::min(times); }
double median_time(std::vector<double> times) { return spread_of(std::move(times)).p50; }

/// `choose` gives the time that stands for all.
AllReduceTimes time_all_reduces(Communicator& communicator, double (*choose)(std::vector<double> times)) {
  const Storage memory = communicator.allocate(kNumbers * sizeof(float));
  const Tensor all = Tensor::view(memory, 0, {kNumbers}, DType::kFloat32);
  return {.small_us = choose(all_reduce_us(communicator, all.rows(0, 1), kSmallOnes)),
          .large_us = choose(all_reduce_us(communicator, all, kLargeOnes))};
}

/// The links with which hosts of one rank each would take these times.
void fit_network(const AllReduceTimes& times, std::int64_t hosts, RankLinks& links) {
  const RankLayout layout{.ranks = hosts};
  links.network_gbps = 1;
  links.latency_us = 1;
  links.latency_us = times.small_us / all_reduce_cost(layout, links, 1, DType::kFloat32).channel_us;
  const comm::CollectiveCost at_1_gbps = all_reduce_cost(layout, links, kNumbers, DType::kFloat32);
  links.network_gbps = at_1_gbps.link_us / std::max(times.large_us - at_1_gbps.channel_us, 1e-3);
}

RankLayout layout_of(const comm::Topology& topology) { return {topology.size, topology.local_size()}; }

}  // namespace

TransportFloor measure_transport(Communicator& communicator) {
  const AllReduceTimes times = time_all_reduces(communicator, least_time);
  return {.transport = communicator.description(), .alpha_us = times.small_us, .gb_per_s = times.large_gb_per_s()};
}

RankLayout layout_of(Communicator& communicator) { return layout_of(comm::topology_of(communicator)); }

MeasuredLinks measure_links(Communicator& communicator, int threads) {
  const comm::Topology topology = comm::topology_of(communicator);
  MeasuredLinks measured{.layout = layout_of(topology)};
  RankLinks& links = measured.links;
  measured.spare_cores = topology.machine_cores >= topology.machine_ranks * (threads + 1);
  // On one host the ranks have not chosen: these are the costs of a run on several.
  const std::string transport = topology.one_node() ? comm::transport_between_hosts() : communicator.description();
  if (transport.starts_with("tcp")) links.hosts = RankLinks::Between::kTcp;
  const auto host = communicator.split(topology.local.front(), communicator.rank(), "bench a host");
  if (host->size() > 1) {
    const AllReduceTimes times = time_all_reduces(*host, median_time);
    measured.in_host = true;
    links.host_alpha_us = times.small_us;
    links.host_gb_per_s = times.large_gb_per_s();
  }
  if (topology.one_node()) return measured;
  const auto firsts = communicator.split(topology.local_rank == 0 ? 0 : -1, communicator.rank(), "bench the network");
  if (firsts) fit_network(time_all_reduces(*firsts, median_time), firsts->size(), links);
  measured.between_hosts = true;
  communicator.barrier(Stream::calling_thread());
  return measured;
}

}  // namespace lockstep::train
