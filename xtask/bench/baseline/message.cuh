// The messages of the ping-pongs: what a check fills them with and looks for, as warpwire's kernels do.
#pragma once
#include <cstdint>

__device__ __forceinline__ uint32_t message_word(uint64_t index, uint32_t round) {
  return uint32_t(index) * 0x9E3779B9u + round;
}

// Called by a block: fills a message of this round.
__device__ __forceinline__ void fill(uint8_t* message, uint64_t words, uint32_t round) {
  for (uint64_t i = threadIdx.x; i < words; i += blockDim.x) {
    reinterpret_cast<uint32_t*>(message)[i] = message_word(i, round);
  }
}

// Called by a block: how many of the calling thread's words are not this round's.
__device__ __forceinline__ uint32_t count_wrong(const uint8_t* message, uint64_t words, uint32_t round) {
  uint32_t wrong = 0;
  for (uint64_t i = threadIdx.x; i < words; i += blockDim.x) {
    wrong += reinterpret_cast<const volatile uint32_t*>(message)[i] != message_word(i, round);
  }
  return wrong;
}

// What thread `thread` of a packet ping-pong's first end sends first.
__device__ __forceinline__ uint64_t first_payload(uint32_t thread) { return (thread * 0x9E3779B97F4A7C15ull) | 1ull << 32 | 1; }

__device__ __forceinline__ void to_payload(uint64_t value, uint32_t& payload) { payload = uint32_t(value); }
__device__ __forceinline__ void to_payload(uint64_t value, uint2& payload) {
  payload = {uint32_t(value), uint32_t(value >> 32)};
}
__device__ __forceinline__ uint64_t from_payload(uint32_t payload) { return payload; }
__device__ __forceinline__ uint64_t from_payload(uint2 payload) { return payload.x | uint64_t(payload.y) << 32; }

// The check of a grid barrier: each block writes its round before it and looks at its neighbour's behind it.
template <typename Barrier>
__device__ __forceinline__ void check_barrier(uint32_t* progress, uint32_t* late, uint32_t rounds, Barrier barrier) {
  const uint32_t neighbour = blockIdx.x + 1 == gridDim.x ? 0 : blockIdx.x + 1;
  uint32_t early = 0;
  for (uint32_t round = 1; round <= rounds; ++round) {
    if (threadIdx.x == 0) progress[blockIdx.x] = round;
    barrier();
    if (threadIdx.x == blockDim.x - 1) early += reinterpret_cast<volatile uint32_t*>(progress)[neighbour] != round;
    barrier();
  }
  if (threadIdx.x == blockDim.x - 1) late[blockIdx.x] = early;
}
