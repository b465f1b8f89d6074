// A FIFO's producers and a port channel the way an expert writes them in CUDA C++: waits that spin without a limit, and
// requests that fit one trigger. Layouts and marks are those of device/src/fifo.rs, so the same host consumes them.
#pragma once
#include "primitives.cuh"

// Takes a position, waits for room, and publishes the trigger with one 16-byte release store.
__device__ __forceinline__ uint64_t push(const Fifo& fifo, uint64_t low, uint64_t high) {
  const uint64_t position = DeviceWord(*fifo.head).fetch_add(1, cuda::memory_order_relaxed);
  if (position >= fifo.capacity + DeviceWord(*fifo.tail_cache).load(cuda::memory_order_relaxed)) {
    uint64_t tail;
    do {
      tail = SystemWord(*fifo.tail).load(cuda::memory_order_acquire);
    } while (position >= fifo.capacity + tail);
    DeviceWord(*fifo.tail_cache).store(tail, cuda::memory_order_relaxed);
  }
  const uint64_t mark = position & fifo.capacity ? 0 : 1ull << 63;
  asm volatile("st.release.sys.global.v2.u64 [%0], {%1,%2};" ::"l"(fifo.slots + (position & (fifo.capacity - 1))),
               "l"((low & ~(1ull << 63)) | mark), "l"((high & ~(1ull << 63)) | mark)
               : "memory");
  return position;
}

// Waits until the consumer has taken the trigger at this position.
__device__ __forceinline__ void sync(const Fifo& fifo, uint64_t position) {
  while (SystemWord(*fifo.tail).load(cuda::memory_order_acquire) <= position) {
  }
}

constexpr uint64_t DATA = 1, SIGNAL = 2, FLUSH = 4;

// Offsets below 4 GiB and lengths below 2 GiB.
__device__ __forceinline__ uint64_t request(const PortChannel& channel, uint64_t kind, uint64_t to, uint64_t from,
                                            uint64_t bytes) {
  const uint64_t ids = uint64_t(channel.source) << 32 | uint64_t(channel.destination) << 41 |
                       uint64_t(channel.port) << 50 | kind << 60;
  return push(channel.fifo, uint32_t(from) | bytes << 32, uint32_t(to) | ids);
}

__device__ __forceinline__ void wait_flushed(const PortChannel& channel, uint64_t position) {
  while (SystemWord(*channel.flushed).load(cuda::memory_order_acquire) <= position) {
  }
}

__device__ __forceinline__ void put(const PortChannel& channel, uint64_t to, uint64_t from, uint64_t bytes) {
  request(channel, DATA, to, from, bytes);
}

__device__ __forceinline__ void put_with_signal(const PortChannel& channel, uint64_t to, uint64_t from, uint64_t bytes) {
  request(channel, DATA | SIGNAL, to, from, bytes);
}

__device__ __forceinline__ void put_with_signal_and_flush(const PortChannel& channel, uint64_t to, uint64_t from,
                                                          uint64_t bytes) {
  wait_flushed(channel, request(channel, DATA | SIGNAL | FLUSH, to, from, bytes));
}

__device__ __forceinline__ void signal(const PortChannel& channel) { request(channel, SIGNAL, 0, 0, 0); }

__device__ __forceinline__ void flush(const PortChannel& channel) {
  wait_flushed(channel, request(channel, FLUSH, 0, 0, 0));
}
