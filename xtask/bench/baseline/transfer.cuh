// Payload to packets and back, for a group of threads of which each call makes one.
#pragma once
#include "primitives.cuh"

template <typename P>
__device__ __forceinline__ void put_packets(uint8_t* dst, const uint8_t* from, uint64_t bytes, uint32_t flag, uint64_t thread,
                                            uint64_t threads) {
  using Payload = typename P::Payload;
  constexpr uint64_t Bytes = 2 * sizeof(Payload);
  auto src = reinterpret_cast<const Payload*>(from);
  const uint64_t packets = bytes / sizeof(Payload);
  uint64_t i = thread;
  for (; i + 3 * threads < packets; i += 4 * threads) {
    Payload payload[4];
    for (int k = 0; k < 4; ++k) payload[k] = src[i + k * threads];
    for (int k = 0; k < 4; ++k) P::write(dst + (i + k * threads) * Bytes, payload[k], flag);
  }
  for (; i < packets; i += threads) P::write(dst + i * Bytes, src[i], flag);
}

template <typename P>
__device__ __forceinline__ void unpack_packets(uint8_t* to, const uint8_t* src, uint64_t bytes, uint32_t flag, uint64_t thread,
                                               uint64_t threads) {
  using Payload = typename P::Payload;
  constexpr uint64_t Bytes = 2 * sizeof(Payload);
  auto dst = reinterpret_cast<Payload*>(to);
  const uint64_t packets = bytes / sizeof(Payload);
  uint64_t i = thread;
  for (; i + 3 * threads < packets; i += 4 * threads) {
    Payload payload[4];
    bool ready;
    do {
      ready = true;
      for (int k = 0; k < 4; ++k) ready &= P::look(src + (i + k * threads) * Bytes, flag, payload[k]);
    } while (!ready);
    for (int k = 0; k < 4; ++k) dst[i + k * threads] = payload[k];
  }
  for (; i < packets; i += threads) dst[i] = read<P>(src + i * Bytes, flag);
}
