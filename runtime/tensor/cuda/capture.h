// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::gpu {

/// Whether the calling thread records a graph; the recorder sets it.
bool& capturing();

/// Whether the address is one of host memory that is not pinned.
bool is_pageable(const void* data);

/// Throws UsageError where the calling thread records a graph and `data` is host memory that is not pinned: a copy from
/// or to it would be recorded with an address that is stale when the graph is launched.
void require_capturable(const void* data);

}  // namespace lockstep::gpu
