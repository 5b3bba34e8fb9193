// SPDX-License-Identifier: Apache-2.0
#include "comm/group/mpi/mpi_exchange.h"

#include <algorithm>
#include <utility>

namespace lockstep::comm::exchange {

namespace {

// Buffers go in chunks: it bounds the scratch memory, and MPI counts bytes in an int.
constexpr std::int64_t kChunkBytes = std::int64_t{16} << 20;

/// Calls f(begin, end) for consecutive pieces of [0, count) of at most `most` elements.
template <class F>
void for_each_chunk(std::int64_t count, std::int64_t most, F f) {
  for (std::int64_t begin = 0; begin < count; begin += most) f(begin, std::min(begin + most, count));
}

std::int64_t bytes_in(DType dtype) { return static_cast<std::int64_t>(size_of(dtype)); }

/// `bytes` consecutive bytes, of which the next come `stride` bytes later: a chunk of each rank's share of a buffer.
class StridedBytes {
 public:
  StridedBytes(std::int64_t bytes, std::int64_t stride) {
    const std::lock_guard lock(mpi_mutex());
    MPI_Datatype chunk = MPI_DATATYPE_NULL;
    check_mpi(MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &chunk), "MPI_Type_contiguous");
    check_mpi(MPI_Type_create_resized(chunk, 0, stride, &type_), "MPI_Type_create_resized");
    check_mpi(MPI_Type_commit(&type_), "MPI_Type_commit");
    check_mpi(MPI_Type_free(&chunk), "MPI_Type_free");
  }
  StridedBytes(const StridedBytes&) = delete;
  StridedBytes& operator=(const StridedBytes&) = delete;
  ~StridedBytes() {
    const std::lock_guard lock(mpi_mutex());
    MPI_Type_free(&type_);
  }
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

/// out = reduction of one contribution of `count` elements from each rank, which lie one after the other.
void reduce_contributions(const Reduction& reduction, const std::byte* contributions, std::byte* out,
                          std::int64_t count) {
  std::vector<const void*> sources;
  for (std::size_t r = 0; r < reduction.premultiply.size(); ++r) {
    sources.push_back(contributions + static_cast<std::int64_t>(r) * count * bytes_in(reduction.dtype));
  }
  void* const output = out;
  reduce(reduction, sources, {&output, 1}, count);
}

std::byte* bytes_of(const Storage& storage) { return static_cast<std::byte*>(storage.data()); }

}  // namespace

void all_reduce(MpiComm& group, const Operation& operation, const Reduction& reduction, std::byte* data,
                std::int64_t count) {
  const std::int64_t size = bytes_in(reduction.dtype);
  const std::int64_t most = kChunkBytes / size;
  const auto largest_part = static_cast<std::size_t>(std::min(count, most) / group.size() + 128 / size);
  const Storage received = Storage::allocate(largest_part * static_cast<std::size_t>(size * group.size()), kCpu);
  const auto ranks = static_cast<std::size_t>(group.size());

  for_each_chunk(count, most, [&](std::int64_t begin, std::int64_t end) {
    std::byte* const chunk = data + begin * size;
    const Range own = part_of(end - begin, group.rank(), group.size(), reduction.dtype);
    std::vector<int> part_bytes(ranks), part_begin(ranks), own_bytes(ranks), own_begin(ranks);
    for (int r = 0; r < group.size(); ++r) {
      const auto i = static_cast<std::size_t>(r);
      const Range part = part_of(end - begin, r, group.size(), reduction.dtype);
      part_bytes[i] = static_cast<int>(part.count() * size);
      part_begin[i] = static_cast<int>(part.begin * size);
      own_bytes[i] = static_cast<int>(own.count() * size);
      own_begin[i] = static_cast<int>(r * own.count() * size);
    }
    group.complete(operation, [&](MPI_Request* request) {
      return MPI_Ialltoallv(chunk, part_bytes.data(), part_begin.data(), MPI_BYTE, received.data(), own_bytes.data(),
                            own_begin.data(), MPI_BYTE, group.comm(), request);
    });
    reduce_contributions(reduction, bytes_of(received), chunk + own.begin * size, own.count());
    group.complete(operation, [&](MPI_Request* request) {
      return MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, chunk, part_bytes.data(), part_begin.data(), MPI_BYTE,
                             group.comm(), request);
    });
  });
}

void reduce_scatter(MpiComm& group, const Operation& operation, const Reduction& reduction, const std::byte* in,
                    std::byte* out, std::int64_t count) {
  const std::int64_t size = bytes_in(reduction.dtype);
  const std::int64_t most = std::max<std::int64_t>(kChunkBytes / size / group.size(), 1);
  const Storage received =
      Storage::allocate(static_cast<std::size_t>(std::min(count, most) * size * group.size()), kCpu);
  for_each_chunk(count, most, [&](std::int64_t begin, std::int64_t end) {
    const auto bytes = static_cast<int>((end - begin) * size);
    const StridedBytes share(bytes, count * size);
    group.complete(operation, [&](MPI_Request* request) {
      return MPI_Ialltoall(in + begin * size, 1, share.get(), received.data(), bytes, MPI_BYTE, group.comm(), request);
    });
    reduce_contributions(reduction, bytes_of(received), out + begin * size, end - begin);
  });
}

void all_gather(MpiComm& group, const Operation& operation, const std::byte* in, std::byte* out, std::int64_t bytes) {
  const bool in_place = in == out + group.rank() * bytes;
  for_each_chunk(bytes, kChunkBytes, [&](std::int64_t begin, std::int64_t end) {
    const StridedBytes share(end - begin, bytes);
    group.complete(operation, [&](MPI_Request* request) {
      return MPI_Iallgather(in_place ? MPI_IN_PLACE : in + begin, static_cast<int>(end - begin), MPI_BYTE, out + begin,
                            1, share.get(), group.comm(), request);
    });
  });
}

void broadcast(MpiComm& group, const Operation& operation, std::byte* data, std::int64_t bytes) {
  for_each_chunk(bytes, kChunkBytes, [&](std::int64_t begin, std::int64_t end) {
    group.complete(operation, [&](MPI_Request* request) {
      return MPI_Ibcast(data + begin, static_cast<int>(end - begin), MPI_BYTE, operation.root, group.comm(), request);
    });
  });
}

}  // namespace lockstep::comm::exchange
