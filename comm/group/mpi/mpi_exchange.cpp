// SPDX-License-Identifier: Apache-2.0
#include "comm/group/mpi/mpi_exchange.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace lockstep::comm::exchange {

namespace {

// Buffers go in chunks: it bounds the scratch memory, and MPI counts bytes in an int.
constexpr std::int64_t kChunkBytes = std::int64_t{16} << 20;
/// Pieces of an all-reduce, whose two halves overlap: small enough that little stands alone at either end.
constexpr std::int64_t kPieceBytes = std::int64_t{1} << 20;

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

/// How the ranks divide a piece of a buffer.
struct PieceLayout {
  PieceLayout(std::int64_t elements, const MpiComm& group, DType dtype)
      : count(elements), own(part_of(elements, group.rank(), group.size(), dtype)) {
    const std::int64_t size = bytes_in(dtype);
    for (int r = 0; r < group.size(); ++r) {
      const Range part = part_of(count, r, group.size(), dtype);
      part_bytes.push_back(static_cast<int>(part.count() * size));
      part_begin.push_back(static_cast<int>(part.begin * size));
      own_bytes.push_back(static_cast<int>(own.count() * size));
      own_begin.push_back(static_cast<int>(r * own.count() * size));
    }
  }

  std::int64_t count;
  Range own;
  std::vector<int> part_bytes, part_begin, own_bytes, own_begin;  // in the form that MPI takes
};

/// The all-reduce of one piece, as two calls of MPI: each rank gets the contributions to its part of the piece, and
/// gives the others the sums.
class PieceSum {
 public:
  /// `layout` lives as long as this. `staging` holds a part from each rank, from scatter() to gather().
  PieceSum(MpiComm& group, const Operation& operation, const Reduction& reduction, const PieceLayout& layout,
           std::byte* data, std::byte* staging)
      : group_(group), operation_(operation), reduction_(reduction), layout_(layout), data_(data), staging_(staging) {}

  void scatter() {
    request_ = group_.start(operation_, [&](MPI_Request* request) {
      return MPI_Ialltoallv(data_, layout_.part_bytes.data(), layout_.part_begin.data(), MPI_BYTE, staging_,
                            layout_.own_bytes.data(), layout_.own_begin.data(), MPI_BYTE, group_.comm(), request);
    });
  }

  void gather() {
    group_.finish(operation_, request_);
    const Range own = layout_.own;
    reduce_contributions(reduction_, staging_, data_ + own.begin * bytes_in(reduction_.dtype), own.count());
    request_ = group_.start(operation_, [&](MPI_Request* request) {
      return MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, data_, layout_.part_bytes.data(), layout_.part_begin.data(),
                             MPI_BYTE, group_.comm(), request);
    });
  }

  void finish() { group_.finish(operation_, request_); }

 private:
  MpiComm& group_;
  const Operation& operation_;
  const Reduction& reduction_;
  const PieceLayout& layout_;
  std::byte* data_;
  std::byte* staging_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace

void all_reduce(MpiComm& group, const Operation& operation, const Reduction& reduction, std::byte* data,
                std::int64_t count) {
  const std::int64_t size = bytes_in(reduction.dtype);
  const std::int64_t most = kPieceBytes / size;
  const std::int64_t row = (std::min(count, most) / group.size() + 128 / size) * size * group.size();
  const Storage received = Storage::allocate(static_cast<std::size_t>(2 * row), kCpu);

  const PieceLayout whole(std::min(count, most), group, reduction.dtype);
  const PieceLayout rest(count % most, group, reduction.dtype);
  // The sums of one piece go back while the contributions to the next one come.
  std::deque<PieceSum> pieces;
  for_each_chunk(count, most, [&](std::int64_t begin, std::int64_t end) {
    std::byte* const staging = bytes_of(received) + begin / most % 2 * row;
    const PieceLayout& layout = end - begin == whole.count ? whole : rest;
    pieces.emplace_back(group, operation, reduction, layout, data + begin * size, staging).scatter();
    if (pieces.size() > 1) pieces[pieces.size() - 2].gather();
    if (pieces.size() > 2) {
      pieces.front().finish();
      pieces.pop_front();
    }
  });
  if (pieces.empty()) return;
  pieces.back().gather();
  for (PieceSum& piece : pieces) piece.finish();
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
