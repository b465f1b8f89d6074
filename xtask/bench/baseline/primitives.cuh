// The primitives the way an expert writes them in CUDA C++: inline PTX for vector accesses, libcu++ for the rest, waits that
// spin without a limit.
#pragma once
#include <cuda/atomic>

#include "abi.cuh"

using SystemWord = cuda::atomic_ref<uint64_t, cuda::thread_scope_system>;
using DeviceWord = cuda::atomic_ref<uint64_t, cuda::thread_scope_device>;

// --- semaphore ---------------------------------------------------------------------------------------------------------

template <bool Ordered>
__device__ __forceinline__ void signal(uint64_t* token) {
  if constexpr (Ordered) {
    asm volatile("red.release.sys.global.add.u64 [%0], 1;" ::"l"(token) : "memory");
  } else {
    asm volatile("red.relaxed.sys.global.add.u64 [%0], 1;" ::"l"(token) : "memory");
  }
}

// By one thread at a time.
template <bool Ordered>
__device__ __forceinline__ void wait(const Inbound& inbound) {
  constexpr auto order = Ordered ? cuda::memory_order_acquire : cuda::memory_order_relaxed;
  DeviceWord expected(*inbound.expected);
  const uint64_t taken = expected.load(cuda::memory_order_relaxed);
  while (SystemWord(*inbound.token).load(order) <= taken) {
  }
  expected.store(taken + 1, cuda::memory_order_relaxed);
}

__device__ __forceinline__ bool poll(const Inbound& inbound) {
  const uint64_t expected = DeviceWord(*inbound.expected).load(cuda::memory_order_relaxed) + 1;
  const bool ready = SystemWord(*inbound.token).load(cuda::memory_order_acquire) >= expected;
  if (ready) DeviceWord(*inbound.expected).store(expected, cuda::memory_order_relaxed);
  return ready;
}

// --- packets -----------------------------------------------------------------------------------------------------------

struct Ll8 {
  using Payload = uint32_t;
  static __device__ __forceinline__ void write(void* at, Payload payload, uint32_t flag) {
    asm volatile("st.volatile.global.v2.u32 [%0], {%1,%2};" ::"l"(at), "r"(payload), "r"(flag) : "memory");
  }
  static __device__ __forceinline__ bool look(const void* at, uint32_t flag, Payload& payload) {
    uint32_t seen;
    asm volatile("ld.volatile.global.v2.u32 {%0,%1}, [%2];" : "=r"(payload), "=r"(seen) : "l"(at) : "memory");
    return seen == flag;
  }
  // Also what flag there was, for a report.
  static __device__ __forceinline__ bool look(const void* at, uint32_t flag, Payload& payload, uint32_t& seen) {
    asm volatile("ld.volatile.global.v2.u32 {%0,%1}, [%2];" : "=r"(payload), "=r"(seen) : "l"(at) : "memory");
    return seen == flag;
  }
};

struct Ll16 {
  using Payload = uint2;
  static __device__ __forceinline__ void write(void* at, Payload payload, uint32_t flag) {
    asm volatile("st.volatile.global.v4.u32 [%0], {%1,%3,%2,%3};" ::"l"(at), "r"(payload.x), "r"(payload.y), "r"(flag)
                 : "memory");
  }
  static __device__ __forceinline__ bool look(const void* at, uint32_t flag, Payload& payload) {
    uint32_t a, b;
    asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(payload.x), "=r"(a), "=r"(payload.y), "=r"(b)
                 : "l"(at)
                 : "memory");
    return a == flag && b == flag;
  }
  static __device__ __forceinline__ bool look(const void* at, uint32_t flag, Payload& payload, uint32_t& seen) {
    uint32_t a, b;
    asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(payload.x), "=r"(a), "=r"(payload.y), "=r"(b)
                 : "l"(at)
                 : "memory");
    seen = a == flag ? b : a;
    return a == flag && b == flag;
  }
};

template <typename P>
__device__ __forceinline__ typename P::Payload read(const void* at, uint32_t flag) {
  typename P::Payload payload;
  while (!P::look(at, flag, payload)) {
  }
  return payload;
}

// --- copies ------------------------------------------------------------------------------------------------------------

// 16-byte words, four in flight a thread; both sides aligned to 16. `threads` threads take part, this one is `thread`.
__device__ __forceinline__ void copy16(uint4* __restrict__ dst, const uint4* __restrict__ src, uint64_t words,
                                       uint64_t thread, uint64_t threads) {
  uint64_t i = thread;
  for (; i + 3 * threads < words; i += 4 * threads) {
    const uint4 a = src[i], b = src[i + threads], c = src[i + 2 * threads], d = src[i + 3 * threads];
    dst[i] = a, dst[i + threads] = b, dst[i + 2 * threads] = c, dst[i + 3 * threads] = d;
  }
  for (; i < words; i += threads) dst[i] = src[i];
}

// Bytes, for the edges and for what no wider word serves.
__device__ __forceinline__ void copy_bytes(uint8_t* dst, const uint8_t* src, uint64_t bytes, uint64_t thread,
                                           uint64_t threads) {
  for (uint64_t i = thread; i < bytes; i += threads) dst[i] = src[i];
}

// Any alignment: where both addresses are alike modulo 16, 16-byte words between the edges, else the widest word that both
// addresses allow.
__device__ __forceinline__ void copy(uint8_t* dst, const uint8_t* src, uint64_t bytes, uint64_t thread, uint64_t threads) {
  const uint64_t to = reinterpret_cast<uint64_t>(dst), from = reinterpret_cast<uint64_t>(src);
  uint64_t done = 0;
  if ((to ^ from) % 16 == 0) {
    const uint64_t head = -to % 16 < bytes ? -to % 16 : bytes, words = (bytes - head) / 16;
    copy_bytes(dst, src, head, thread, threads);
    copy16(reinterpret_cast<uint4*>(dst + head), reinterpret_cast<const uint4*>(src + head), words, thread, threads);
    done = head + words * 16;
  } else if ((to | from) % 4 == 0) {
    auto to_words = reinterpret_cast<uint32_t*>(dst);
    auto from_words = reinterpret_cast<const uint32_t*>(src);
    const uint64_t words = bytes / 4;
    uint64_t i = thread;
    for (; i + 3 * threads < words; i += 4 * threads) {
      const uint32_t a = from_words[i], b = from_words[i + threads], c = from_words[i + 2 * threads],
                     d = from_words[i + 3 * threads];
      to_words[i] = a, to_words[i + threads] = b, to_words[i + 2 * threads] = c, to_words[i + 3 * threads] = d;
    }
    for (; i < words; i += threads) to_words[i] = from_words[i];
    done = words * 4;
  }
  copy_bytes(dst + done, src + done, bytes - done, thread, threads);
}

// --- barrier -----------------------------------------------------------------------------------------------------------

// The barrier of cooperative groups: the top bit flips when all blocks have come.
__device__ __forceinline__ void grid_barrier(uint32_t* word) {
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::atomic_ref<uint32_t, cuda::thread_scope_device> ref(*word);
    const uint32_t step = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1;
    const uint32_t before = ref.fetch_add(step, cuda::memory_order_release);
    while (((ref.load(cuda::memory_order_acquire) ^ before) & 0x80000000u) == 0) {
    }
  }
  __syncthreads();
}
