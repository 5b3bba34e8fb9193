// SPDX-License-Identifier: Apache-2.0
#include "comm/group/collective_costs.h"

#include <bit>

#include "comm/group/operation.h"
#include "comm/group/tcp/frame.h"
#include "comm/group/tcp/tcp_transport.h"

namespace lockstep::comm {

namespace {

using Between = RankLinks::Between;

constexpr auto kOperation = static_cast<double>(sizeof(Operation));
constexpr auto kFrame = static_cast<double>(sizeof(FrameHeader));

double number(std::int64_t count) { return static_cast<double>(count); }

double link_us(double bytes, const RankLinks& links) { return 8e-3 * bytes / links.network_gbps; }
double host_us(double bytes, const RankLinks& links) { return 1e-3 * bytes / links.host_gb_per_s; }

/// The time of a core that sends and receives so many bytes, and adds up as many: each is read and written once for it.
double core_us(double bytes, const RankLinks& links) {
  return links.copy_gb_per_s ? 3 * 2 * 1e-3 * bytes / *links.copy_gb_per_s : 0;
}

/// An exchange through rank 0, whose host sends `bytes` to each rank of the others.
CollectiveCost through_hub(const RankLayout& layout, const RankLinks& links, double bytes) {
  const double remote = number(layout.ranks - layout.ranks_per_host);
  return {.channel_us = 2 * links.latency_us, .link_us = link_us(remote * (kFrame + bytes), links)};
}

bool is_for_hub(const RankLayout& layout, const RankLinks& links, std::int64_t bytes) {
  return links.hosts == Between::kTcp && bytes * layout.ranks <= TcpTransport::kHubBytes;
}

/// Each rank learns what each is about to do.
CollectiveCost meeting(const RankLayout& layout, const RankLinks& links) {
  const double operations = number(layout.ranks) * kOperation;
  if (links.hosts == Between::kTcp) return through_hub(layout, links, operations);
  // MPI's gathering doubles what a rank knows with each message.
  const int messages = std::bit_width(static_cast<std::uint64_t>(layout.ranks - 1));
  return {.channel_us = messages * links.latency_us,
          .link_us = link_us(number(layout.ranks_per_host) * operations, links)};
}

CollectiveCost operator+(const CollectiveCost& a, const CollectiveCost& b) {
  return {
      .channel_us = a.channel_us + b.channel_us, .link_us = a.link_us + b.link_us, .core_us = a.core_us + b.core_us};
}

std::int64_t bytes_of(std::int64_t elements, DType dtype) {
  return elements * static_cast<std::int64_t>(size_of(dtype));
}

/// The dtype of a sum on its way between hosts.
DType between_hosts(const RankLayout& layout, DType dtype) {
  return layout.ranks_per_host > 1 && is_reduced(dtype) ? DType::kFloat32 : dtype;
}

}  // namespace

double all_reduce_link_bytes(const RankLayout& layout, std::int64_t elements, DType dtype) {
  const double hosts = number(layout.hosts());
  return 2 * (hosts - 1) / hosts * number(bytes_of(elements, between_hosts(layout, dtype)));
}

CollectiveCost all_reduce_cost(const RankLayout& layout, const RankLinks& links, std::int64_t elements, DType dtype) {
  if (layout.ranks == 1) return {};
  const std::int64_t bytes = bytes_of(elements, dtype);
  CollectiveCost in_host{.channel_us = links.host_alpha_us + host_us(number(bytes), links)};
  if (links.copy_gb_per_s) in_host.core_us = in_host.channel_us;
  if (layout.hosts() == 1) return in_host;
  const double sent = all_reduce_link_bytes(layout, elements, dtype);
  const CollectiveCost direct{.channel_us = 2 * links.latency_us,
                              .link_us = link_us(sent, links),
                              .core_us = core_us(sent / number(layout.ranks_per_host), links)};
  if (layout.ranks_per_host > 1) return in_host + meeting(layout, links) + direct;
  if (is_for_hub(layout, links, bytes)) return through_hub(layout, links, number(bytes));
  return meeting(layout, links) + direct;
}

CollectiveCost all_gather_cost(const RankLayout& layout, const RankLinks& links, std::int64_t bytes) {
  if (layout.ranks == 1) return {};
  const double all = number(layout.ranks) * number(bytes);
  if (layout.hosts() == 1) return {.channel_us = links.host_alpha_us + host_us(all, links)};
  if (is_for_hub(layout, links, bytes)) return through_hub(layout, links, all);
  // Each rank of a host gets what those of the others have, as if it were alone there.
  const double received = number(layout.ranks_per_host) * number(layout.ranks - layout.ranks_per_host) * number(bytes);
  return meeting(layout, links) + CollectiveCost{.channel_us = links.latency_us, .link_us = link_us(received, links)};
}

}  // namespace lockstep::comm
