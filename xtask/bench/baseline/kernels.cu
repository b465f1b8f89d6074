// The baseline's kernels: each does what warpwire's kernel of the same name does, and takes the same arguments.
#include "bulk.cuh"
#include "fifo.cuh"
#include "fp8.cuh"
#include "message.cuh"
#include "primitives.cuh"
#include "transfer.cuh"

__device__ __forceinline__ uint64_t grid_thread() { return uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ __forceinline__ uint64_t grid_threads() { return uint64_t(gridDim.x) * blockDim.x; }

template <bool Ordered>
__device__ __forceinline__ void bounce(const Semaphore& end, uint32_t rounds, bool begins) {
  for (uint32_t i = 0; i < rounds; ++i) {
    if (begins) {
      signal<Ordered>(end.outbound);
      wait<Ordered>(end.inbound);
    } else {
      wait<Ordered>(end.inbound);
      signal<Ordered>(end.outbound);
    }
  }
}

extern "C" __global__ void __launch_bounds__(32) baseline_semaphore_ping_pong(SemaphorePingPongArgs args) {
  const uint32_t end = args.first_end + blockIdx.x;
  const Semaphore semaphore = end == 0 ? args.ends[0] : args.ends[1];
  if (args.relaxed) {
    bounce<false>(semaphore, args.rounds, end == 0);
  } else {
    bounce<true>(semaphore, args.rounds, end == 0);
  }
}

extern "C" __global__ void __launch_bounds__(1024) baseline_fifo_push(FifoPushArgs args) {
  for (uint32_t i = 0; i < args.count; ++i) {
    const uint64_t position = push(args.fifo, grid_thread(), i);
    if (args.sync) sync(args.fifo, position);
  }
}

extern "C" __global__ void __launch_bounds__(1024) baseline_port_requests(PortRequestsArgs args) {
  const uint64_t to = args.destination_offset, from = args.source_offset;
  for (uint32_t i = 0; i < args.count; ++i) {
    switch (args.call) {
      case PortCall::Put: put(args.channel, to, from, args.bytes); break;
      case PortCall::PutWithSignal: put_with_signal(args.channel, to, from, args.bytes); break;
      case PortCall::PutWithSignalAndFlush: put_with_signal_and_flush(args.channel, to, from, args.bytes); break;
      case PortCall::Signal: signal(args.channel); break;
      case PortCall::Flush: flush(args.channel); break;
      case PortCall::Wait: wait<true>(args.channel.inbound); break;
    }
  }
}

extern "C" __global__ void __launch_bounds__(1024) baseline_port_ping_pong(PortPingPongArgs args) {
  const uint64_t words = args.wrong ? args.bytes / 4 : 0;
  uint32_t wrong = 0;
  auto receive = [&](uint32_t round) {
    if (threadIdx.x == 0) wait<true>(args.channel.inbound);
    __syncthreads();
    wrong += count_wrong(args.inbox, words, round);
  };
  auto send = [&](uint32_t round) {
    fill(args.outbox, words, round);
    __syncthreads();
    if (threadIdx.x == 0) {
      if (args.flush) {
        put_with_signal_and_flush(args.channel, args.inbox_offset, 0, args.bytes);
      } else {
        put_with_signal(args.channel, args.inbox_offset, 0, args.bytes);
      }
    }
    __syncthreads();
  };
  for (uint32_t round = 1; round <= args.rounds; ++round) {
    if (args.end == 0) {
      send(round);
      receive(round);
    } else {
      receive(round);
      send(round);
    }
  }
  if (wrong) atomicAdd(args.wrong, wrong);
}

template <typename P, uint32_t Bytes>
__device__ __forceinline__ void packet_ping_pong(const PacketPingPongArgs& args) {
  const uint32_t end = args.first_end + blockIdx.x;
  uint8_t* own = (end == 0 ? args.slots[0] : args.slots[1]) + threadIdx.x * Bytes;
  uint8_t* peer = (end == 0 ? args.slots[1] : args.slots[0]) + threadIdx.x * Bytes;
  uint64_t value = first_payload(threadIdx.x);
  uint32_t flag = args.flag;
  typename P::Payload payload;
  for (uint32_t i = 0; i < args.rounds; ++i) {
    if (end == 0) {
      to_payload(value, payload);
      P::write(peer, payload, flag);
      value = from_payload(read<P>(own, flag));
    } else {
      value = from_payload(read<P>(own, flag)) + 1;
      to_payload(value, payload);
      P::write(peer, payload, flag);
    }
    if (++flag == 0) flag = 1;
  }
  (end == 0 ? args.received[0] : args.received[1])[threadIdx.x] = value;
}

extern "C" __global__ void __launch_bounds__(1024) baseline_ll8_ping_pong(PacketPingPongArgs args) {
  packet_ping_pong<Ll8, 8>(args);
}
extern "C" __global__ void __launch_bounds__(1024) baseline_ll16_ping_pong(PacketPingPongArgs args) {
  packet_ping_pong<Ll16, 16>(args);
}

extern "C" __global__ void __launch_bounds__(1024) baseline_put_ping_pong(PutPingPongArgs args) {
  const uint32_t end = args.first_end + blockIdx.x;
  const MemoryChannel channel = end == 0 ? args.ends[0] : args.ends[1];
  const uint64_t words = args.wrong ? args.bytes / 4 : 0;
  uint32_t wrong = 0;
  auto send = [&](uint32_t round) {
    if (words) {
      fill(channel.local, words, round);
      __syncthreads();
    }
    copy(channel.remote, channel.local, args.bytes, threadIdx.x, blockDim.x);
    __syncthreads();
    if (threadIdx.x == 0) signal<true>(channel.semaphore.outbound);
  };
  for (uint32_t round = 1; round <= args.rounds; ++round) {
    if (end == 0) send(round);
    if (threadIdx.x == 0) wait<true>(channel.semaphore.inbound);
    __syncthreads();
    wrong += count_wrong(channel.packets, words, round);
    if (end == 1) send(round);
  }
  if (wrong) atomicAdd(args.wrong + end, wrong);
}

extern "C" __global__ void __launch_bounds__(1024) baseline_barrier_rounds(BarrierRoundsArgs args) {
  if (args.late) {
    check_barrier(args.progress, args.late, args.rounds, [&] { grid_barrier(args.word); });
  } else {
    for (uint32_t i = 0; i < args.rounds; ++i) grid_barrier(args.word);
  }
}

extern "C" __global__ void __launch_bounds__(1024) baseline_put(TransferArgs args) {
  copy(args.channel.remote + args.remote_offset, args.channel.local + args.local_offset, args.bytes, grid_thread(),
       grid_threads());
  if (args.signal_or_flag) {
    __syncthreads();
    if (threadIdx.x == 0) signal<true>(args.channel.semaphore.outbound);
  }
}

extern "C" __global__ void __launch_bounds__(1024) baseline_get(TransferArgs args) {
  if (args.signal_or_flag) {
    if (threadIdx.x == 0) wait<true>(args.channel.semaphore.inbound);
    __syncthreads();
  }
  copy(args.channel.local + args.local_offset, args.channel.remote + args.remote_offset, args.bytes, grid_thread(),
       grid_threads());
}

// Bulk copies through a ring in shared memory: one thread a block drives the copy engine. Ranges are multiples of 16 bytes.
extern "C" __global__ void __launch_bounds__(32) baseline_put_bulk(TransferArgs args) {
  if (threadIdx.x != 0) return;
  bulk_copy(args.channel.remote + args.remote_offset, args.channel.local + args.local_offset, args.bytes);
  if (args.signal_or_flag) signal<true>(args.channel.semaphore.outbound);
}

template <typename P>
__device__ __forceinline__ void put_packets(const TransferArgs& args) {
  put_packets<P>(args.channel.remote + args.remote_offset, args.channel.local + args.local_offset, args.bytes,
                 args.signal_or_flag, grid_thread(), grid_threads());
}

template <typename P>
__device__ __forceinline__ void unpack_packets(const TransferArgs& args) {
  unpack_packets<P>(args.channel.local + args.local_offset, args.channel.packets + args.remote_offset, args.bytes,
                    args.signal_or_flag, grid_thread(), grid_threads());
}

extern "C" __global__ void __launch_bounds__(1024) baseline_put_packets_ll8(TransferArgs args) { put_packets<Ll8>(args); }
extern "C" __global__ void __launch_bounds__(1024) baseline_put_packets_ll16(TransferArgs args) {
  put_packets<Ll16>(args);
}
extern "C" __global__ void __launch_bounds__(1024) baseline_unpack_packets_ll8(TransferArgs args) {
  unpack_packets<Ll8>(args);
}
extern "C" __global__ void __launch_bounds__(1024) baseline_unpack_packets_ll16(TransferArgs args) {
  unpack_packets<Ll16>(args);
}

// All-reduce by all-pair packets, over up to 8 ranks; the rounds are counted as warpwire's kernel counts them.
extern "C" __global__ void __launch_bounds__(512) baseline_all_reduce_all_pair_f32_sum(AllPairArgs args) {
  const uint32_t rank = args.policy.rank, ranks = args.ranks;
  const uint2 last = args.rounds[blockIdx.x];
  const uint32_t flag = last.x + 1 == 0 ? 1 : last.x + 1, half = last.y ^ 1;
  const uint64_t packets = (args.count + 1) / 2, threads = grid_threads();
  const uint64_t rows = uint64_t(half * (ranks - 1)) * args.slots;
  auto load = [&](uint64_t i) {
    if (2 * i + 1 < args.count) return reinterpret_cast<const float2*>(args.input)[i];
    return make_float2(args.input[2 * i], 0.f);
  };

  for (uint64_t i = grid_thread(); i < packets; i += threads) {
    const float2 value = load(i);
    const uint2 payload = {__float_as_uint(value.x), __float_as_uint(value.y)};
    for (uint32_t k = 1; k < ranks; ++k) {
      const uint32_t peer = rank + k < ranks ? rank + k : rank + k - ranks;
      Ll16::write(args.scratch[peer] + rows + uint64_t(rank - (rank > peer)) * args.slots + i, payload, flag);
    }
  }
  const uint4* own = args.scratch[rank] + rows;
  for (uint64_t i = grid_thread(); i < packets; i += threads) {
    const float2 mine = load(i);
    uint2 terms[7];
    bool ready;
    do {
      ready = true;
#pragma unroll
      for (uint32_t k = 0; k < 7; ++k) {
        if (k < ranks - 1) ready &= Ll16::look(own + uint64_t(k) * args.slots + i, flag, terms[k]);
      }
    } while (!ready);
    float2 sum = {-0.f, -0.f};
#pragma unroll
    for (uint32_t k = 0; k < 8; ++k) {
      if (k == rank) sum.x += mine.x, sum.y += mine.y;
      if (k < 7 && k < ranks - 1) sum.x += __uint_as_float(terms[k].x), sum.y += __uint_as_float(terms[k].y);
    }
    if (2 * i + 1 < args.count) {
      reinterpret_cast<float2*>(args.output)[i] = sum;
    } else {
      args.output[2 * i] = sum.x;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) args.rounds[blockIdx.x] = {flag, half};
  if (blockIdx.x == 0) {
    for (uint32_t b = gridDim.x + threadIdx.x; b < MAX_BLOCKS; b += blockDim.x) args.rounds[b] = {flag, half};
  }
}

#define CONVERT(name, ...) \
  extern "C" __global__ void __launch_bounds__(512) baseline_##name(ConvertArgs args) { convert<__VA_ARGS__>(args); }

CONVERT(f32_to_e4m3b15, FloatToCode<Standard>)
CONVERT(e4m3b15_to_f32, CodeToFloat<Standard>)
CONVERT(f16_to_e4m3b15, HalfToCode<Standard>)
CONVERT(e4m3b15_to_f16, CodeToHalf<Standard>)
CONVERT(f32_to_e4m3b15_extended, FloatToCode<Extended>)
CONVERT(e4m3b15_extended_to_f32, CodeToFloat<Extended>)
CONVERT(f16_to_e4m3b15_extended, HalfToCode<Extended>)
CONVERT(e4m3b15_extended_to_f16, CodeToHalf<Extended>)
