// The same kernels over MSCCL++'s public device headers, from a checkout that the user points to: thin entries that take
// warpwire's arguments, as the baseline's do. What its headers have no primitive for (bulk copies, whole collectives) is
// left out.
#include <mscclpp/concurrency_device.hpp>
#include <mscclpp/memory_channel_device.hpp>

#include "abi.cuh"
#include "message.cuh"

using Channel = mscclpp::MemoryChannelDeviceHandle;

__device__ __forceinline__ mscclpp::MemoryDevice2DeviceSemaphoreDeviceHandle semaphore_of(const Semaphore& semaphore) {
  mscclpp::MemoryDevice2DeviceSemaphoreDeviceHandle handle;
  handle.inboundToken = semaphore.inbound.token;
  handle.remoteInboundToken = semaphore.outbound;
  handle.expectedInboundToken = semaphore.inbound.expected;
  return handle;
}

__device__ __forceinline__ Channel channel_of(const MemoryChannel& channel) {
  return Channel(semaphore_of(channel.semaphore), channel.remote, channel.local, channel.packets);
}

__device__ __forceinline__ uint32_t grid_thread() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ uint32_t grid_threads() { return gridDim.x * blockDim.x; }

extern "C" __global__ void __launch_bounds__(32) peer_semaphore_ping_pong(SemaphorePingPongArgs args) {
  const uint32_t end = args.first_end + blockIdx.x;
  auto semaphore = semaphore_of(end == 0 ? args.ends[0] : args.ends[1]);
  auto bounce = [&](auto signal, auto wait) {
    for (uint32_t i = 0; i < args.rounds; ++i) {
      if (end == 0) {
        signal();
        wait();
      } else {
        wait();
        signal();
      }
    }
  };
  if (args.relaxed) {
    bounce([&] { semaphore.relaxedSignal(); }, [&] { semaphore.relaxedWait(-1); });
  } else {
    bounce([&] { semaphore.signal(); }, [&] { semaphore.wait(-1); });
  }
}

template <typename Packet>
__device__ __forceinline__ void packet_ping_pong(const PacketPingPongArgs& args) {
  const uint32_t end = args.first_end + blockIdx.x;
  auto own = reinterpret_cast<Packet*>(end == 0 ? args.slots[0] : args.slots[1]) + threadIdx.x;
  auto peer = reinterpret_cast<Packet*>(end == 0 ? args.slots[1] : args.slots[0]) + threadIdx.x;
  auto write = [&](uint64_t value, uint32_t flag) {
    if constexpr (sizeof(Packet) == 16) {
      peer->write(value, flag);
    } else {
      peer->write(uint32_t(value), flag);
    }
  };
  uint64_t value = first_payload(threadIdx.x);
  uint32_t flag = args.flag;
  for (uint32_t i = 0; i < args.rounds; ++i) {
    if (end == 0) write(value, flag);
    value = from_payload(own->read(flag, -1));
    if (end == 1) write(++value, flag);
    if (++flag == 0) flag = 1;
  }
  (end == 0 ? args.received[0] : args.received[1])[threadIdx.x] = value;
}

extern "C" __global__ void __launch_bounds__(1024) peer_ll8_ping_pong(PacketPingPongArgs args) {
  packet_ping_pong<mscclpp::LL8Packet>(args);
}
extern "C" __global__ void __launch_bounds__(1024) peer_ll16_ping_pong(PacketPingPongArgs args) {
  packet_ping_pong<mscclpp::LL16Packet>(args);
}

extern "C" __global__ void __launch_bounds__(1024) peer_put_ping_pong(PutPingPongArgs args) {
  const uint32_t end = args.first_end + blockIdx.x;
  const MemoryChannel own = end == 0 ? args.ends[0] : args.ends[1];
  Channel channel = channel_of(own);
  const uint64_t words = args.wrong ? args.bytes / 4 : 0;
  uint32_t wrong = 0;
  auto send = [&](uint32_t round) {
    if (words) {
      fill(own.local, words, round);
      __syncthreads();
    }
    channel.put<16>(0, args.bytes, threadIdx.x, blockDim.x);
    __syncthreads();
    if (threadIdx.x == 0) channel.signal();
  };
  for (uint32_t round = 1; round <= args.rounds; ++round) {
    if (end == 0) send(round);
    if (threadIdx.x == 0) channel.wait(-1);
    __syncthreads();
    wrong += count_wrong(own.packets, words, round);
    if (end == 1) send(round);
  }
  if (wrong) atomicAdd(args.wrong + end, wrong);
}

// Its barrier takes four words, zeroed at first, where ours takes one.
extern "C" __global__ void __launch_bounds__(1024) peer_barrier_rounds(BarrierRoundsArgs args) {
  auto syncer = reinterpret_cast<mscclpp::DeviceSyncer*>(args.word);
  auto barrier = [&] { syncer->sync(gridDim.x, -1); };
  if (args.late) {
    check_barrier(args.progress, args.late, args.rounds, barrier);
  } else {
    for (uint32_t i = 0; i < args.rounds; ++i) barrier();
  }
}

extern "C" __global__ void __launch_bounds__(1024) peer_put(TransferArgs args) {
  channel_of(args.channel).put<16>(args.remote_offset, args.local_offset, args.bytes, grid_thread(), grid_threads());
}

extern "C" __global__ void __launch_bounds__(1024) peer_get(TransferArgs args) {
  channel_of(args.channel).get<16>(args.local_offset, args.remote_offset, args.bytes, grid_thread(), grid_threads());
}

template <typename Packet>
__device__ __forceinline__ void put_packets(const TransferArgs& args) {
  channel_of(args.channel)
      .putPackets<Packet>(args.remote_offset, args.local_offset, args.bytes, grid_thread(), grid_threads(),
                          args.signal_or_flag);
}

template <typename Packet>
__device__ __forceinline__ void unpack_packets(const TransferArgs& args) {
  channel_of(args.channel)
      .unpackPackets<Packet>(args.remote_offset, args.local_offset, args.bytes, grid_thread(), grid_threads(),
                             args.signal_or_flag);
}

extern "C" __global__ void __launch_bounds__(1024) peer_put_packets_ll8(TransferArgs args) {
  put_packets<mscclpp::LL8Packet>(args);
}
extern "C" __global__ void __launch_bounds__(1024) peer_put_packets_ll16(TransferArgs args) {
  put_packets<mscclpp::LL16Packet>(args);
}
extern "C" __global__ void __launch_bounds__(1024) peer_unpack_packets_ll8(TransferArgs args) {
  unpack_packets<mscclpp::LL8Packet>(args);
}
extern "C" __global__ void __launch_bounds__(1024) peer_unpack_packets_ll16(TransferArgs args) {
  unpack_packets<mscclpp::LL16Packet>(args);
}
