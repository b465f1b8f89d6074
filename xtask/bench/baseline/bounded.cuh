// The waits again with warpwire's contract: a limit by the global timer, an abort word in host memory that is looked at every
// 256 looks, and a report of the first wait to fail on the host's board.
#pragma once
#include "primitives.cuh"

// device/src/abi/status.rs.
struct Board {
  uint32_t abort;
  uint32_t reserved[15];
  uint32_t error, kind, peer, channel;
  uint32_t block, thread;
  uint64_t expected, seen;
  uint32_t rank, state;
  uint32_t unused[4];
};
static_assert(sizeof(Board) == 128);

struct Site {
  uint32_t kind, peer, channel;
};
constexpr uint32_t SEMAPHORE = 1, PACKET = 2, BARRIER = 3;
constexpr uint32_t TIMEOUT = 1, ABORTED = 2;
constexpr uint32_t LOOKS = 256;

__device__ __forceinline__ void report(const Policy& policy, const Site& site, uint32_t error, uint64_t expected,
                                       uint64_t seen) {
  auto board = reinterpret_cast<Board*>(policy.board);
  cuda::atomic_ref<uint32_t, cuda::thread_scope_device> claim(board->state);
  uint32_t clear = 0;
  if (!claim.compare_exchange_strong(clear, 1, cuda::memory_order_relaxed)) return;
  *reinterpret_cast<uint2*>(&board->error) = make_uint2(error, site.kind);
  *reinterpret_cast<uint2*>(&board->peer) = make_uint2(site.peer, site.channel);
  *reinterpret_cast<uint2*>(&board->block) = make_uint2(blockIdx.x, threadIdx.x);
  board->expected = expected;
  board->seen = seen;
  board->rank = policy.rank;
  cuda::atomic_ref<uint32_t, cuda::thread_scope_system>(board->state).store(2, cuda::memory_order_release);
}

// `look` gives whether it found what is waited for, and what it saw; 0, or why the wait ended without it. `Turn` looks stand in
// one turn of the loop, as many as ours have.
template <int Turn, typename Look>
__device__ __forceinline__ uint32_t bounded(const Policy& policy, const Site& site, uint64_t expected, Look look) {
  uint64_t started = 0;
  for (;;) {
    uint64_t seen = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < LOOKS / Turn; ++i) {
#pragma unroll
      for (int k = 0; k < Turn; ++k) {
        if (look(seen)) return 0;
      }
    }
    auto abort = reinterpret_cast<uint32_t*>(policy.board);
    uint32_t error = cuda::atomic_ref<uint32_t, cuda::thread_scope_system>(*abort).load(cuda::memory_order_relaxed) ? ABORTED : 0;
    if (!error) {
      uint64_t now;
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
      if (!started) started = now;
      if (now - started > policy.timeout_ns) error = TIMEOUT;
    }
    if (error) {
      report(policy, site, error, expected, seen);
      return error;
    }
  }
}

template <bool Ordered>
__device__ __forceinline__ uint32_t wait(const Inbound& inbound, const Policy& policy) {
  constexpr auto order = Ordered ? cuda::memory_order_acquire : cuda::memory_order_relaxed;
  DeviceWord expected(*inbound.expected);
  const uint64_t taken = expected.load(cuda::memory_order_relaxed);
  const Site site{SEMAPHORE, inbound.peer, inbound.channel};
  const uint32_t error = bounded<3>(policy, site, taken + 1, [&](uint64_t& seen) {
    seen = SystemWord(*inbound.token).load(order);
    return seen > taken;
  });
  if (!error) expected.store(taken + 1, cuda::memory_order_relaxed);
  return error;
}

// One packet, from the sender and over the channel that `inbound` names.
template <typename P>
__device__ __forceinline__ uint32_t read(const void* at, uint32_t flag, typename P::Payload& payload, const Policy& policy,
                                         const Inbound& inbound) {
  const Site site{PACKET, inbound.peer, inbound.channel};
  return bounded<1>(policy, site, flag, [&](uint64_t& seen) {
    uint32_t other;
    const bool ready = P::look(at, flag, payload, other);
    seen = other;
    return ready;
  });
}

// The grid barrier; a block whose wait failed gives the error to all of its threads.
__device__ __forceinline__ bool grid_barrier(uint32_t* word, const Policy& policy) {
  __syncthreads();
  bool failed = false;
  if (threadIdx.x == 0) {
    cuda::atomic_ref<uint32_t, cuda::thread_scope_device> ref(*word);
    const uint32_t step = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1;
    const uint32_t before = ref.fetch_add(step, cuda::memory_order_release);
    const Site site{BARRIER, policy.rank, 0};
    failed = bounded<3>(policy, site, (before ^ 0x80000000u) & 0x80000000u, [&](uint64_t& seen) {
      const uint32_t now = ref.load(cuda::memory_order_acquire);
      seen = now;
      return ((now ^ before) & 0x80000000u) != 0;
    });
  }
  return __syncthreads_or(failed);
}
