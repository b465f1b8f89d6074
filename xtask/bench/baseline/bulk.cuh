// Copies by the bulk asynchronous copy engine (sm_90), through libcu++'s cuda::ptx: a ring of stages in the block's dynamic
// shared memory, each filled by a bulk load that completes on its mbarrier and emptied by a bulk store.
#pragma once
#include <cuda/ptx>

#include "primitives.cuh"

constexpr uint32_t STAGE = 16 << 10;
constexpr uint32_t STAGES = 12;
// Stores that may still be reading their stage when the next one begins.
constexpr uint32_t READING = 2;
// Bytes before the first stage: its mbarriers. A launch has BARRIERS + STAGES * STAGE bytes of dynamic shared memory.
constexpr uint32_t BARRIERS = 128;

extern __shared__ __align__(128) uint8_t bulk_ring[];

// Called by one thread of each block; both addresses and `bytes` are multiples of 16.
__device__ __forceinline__ void bulk_copy(uint8_t* dst, const uint8_t* src, uint64_t bytes) {
  namespace ptx = cuda::ptx;
  auto barriers = reinterpret_cast<uint64_t*>(bulk_ring);
  uint8_t* stages = bulk_ring + BARRIERS;
  for (uint32_t i = 0; i < STAGES; ++i) ptx::mbarrier_init(barriers + i, 1);
  ptx::fence_proxy_async(ptx::space_shared);

  const uint64_t step = uint64_t(STAGE) * gridDim.x, first = uint64_t(STAGE) * blockIdx.x;
  auto length = [&](uint64_t at) { return bytes - at < STAGE ? uint32_t(bytes - at) : STAGE; };
  auto fill = [&](uint64_t at, uint32_t slot) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barriers + slot, length(at));
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, stages + slot * STAGE, src + at, length(at), barriers + slot);
  };

  uint64_t load = first;
  for (uint32_t slot = 0; slot < STAGES && load < bytes; ++slot, load += step) fill(load, slot);
  uint32_t slot = 0, parity = 0, refill = 0, behind = 0;
  for (uint64_t store = first; store < bytes; store += step) {
    while (!ptx::mbarrier_try_wait_parity(barriers + slot, parity)) {
    }
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, dst + store, stages + slot * STAGE, length(store));
    ptx::cp_async_bulk_commit_group();
    if (++slot == STAGES) slot = 0, parity ^= 1;
    if (behind < READING) {
      ++behind;
      continue;
    }
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<READING>());
    if (load < bytes) {
      fill(load, refill);
      load += step;
      if (++refill == STAGES) refill = 0;
    }
  }
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}
