// One kernel for each primitive of the baseline, and nothing else in it: the counterparts of tests/probes, whose SASS
// `cargo xtask sass` sets beside ours.
#include "bounded.cuh"
#include "fifo.cuh"
#include "fp8.cuh"
#include "primitives.cuh"
#include "transfer.cuh"

struct ProbeArgs {
  uint64_t* outbound;
  Inbound inbound;
  Policy policy;
  MemoryChannel channel;
  uint32_t* barrier;
  uint8_t* from;
  uint8_t* to;
  uint64_t bytes;
  uint32_t flag;
  uint32_t value;
  PortChannel port;
};
static_assert(sizeof(ProbeArgs) == 248);

#define PROBE(name) extern "C" __global__ void __launch_bounds__(1024) baseline_##name(ProbeArgs args)

// Signals and waits by the block's leader, as ours.
PROBE(signal) {
  if (threadIdx.x == 0) signal<true>(args.outbound);
}
PROBE(signal_relaxed) {
  if (threadIdx.x == 0) signal<false>(args.outbound);
}
PROBE(wait) {
  if (threadIdx.x == 0) wait<true>(args.inbound);
}
PROBE(wait_bounded) {
  if (threadIdx.x == 0) wait<true>(args.inbound, args.policy);
}
PROBE(wait_relaxed) {
  if (threadIdx.x == 0) wait<false>(args.inbound);
}
PROBE(wait_relaxed_bounded) {
  if (threadIdx.x == 0) wait<false>(args.inbound, args.policy);
}
PROBE(poll) { *reinterpret_cast<uint32_t*>(args.to) = poll(args.inbound); }
PROBE(ll8_write) { Ll8::write(args.to, args.value, args.flag); }
PROBE(ll16_write) { Ll16::write(args.to, {uint32_t(args.bytes), uint32_t(args.bytes >> 32)}, args.flag); }
PROBE(ll8_read) { *reinterpret_cast<uint32_t*>(args.to) = read<Ll8>(args.from, args.flag); }
PROBE(ll16_read) { *reinterpret_cast<uint2*>(args.to) = read<Ll16>(args.from, args.flag); }
PROBE(ll8_read_bounded) {
  uint32_t payload;
  if (!read<Ll8>(args.from, max(args.flag, 1), payload, args.policy, args.inbound)) *reinterpret_cast<uint32_t*>(args.to) = payload;
}
PROBE(ll16_read_bounded) {
  uint2 payload;
  if (!read<Ll16>(args.from, max(args.flag, 1), payload, args.policy, args.inbound)) *reinterpret_cast<uint2*>(args.to) = payload;
}
PROBE(copy) { copy(args.to, args.from, args.bytes, threadIdx.x, blockDim.x); }
PROBE(barrier) { grid_barrier(args.barrier); }
PROBE(barrier_bounded) { grid_barrier(args.barrier, args.policy); }
PROBE(put_packets) {
  put_packets<Ll16>(args.channel.remote, args.channel.local, args.bytes, args.flag, threadIdx.x, blockDim.x);
}
PROBE(unpack_packets) {
  unpack_packets<Ll16>(args.channel.local, args.channel.packets, args.bytes, args.flag, threadIdx.x, blockDim.x);
}
PROBE(store_signal) {
  *reinterpret_cast<uint32_t*>(args.to) = args.value;
  signal<true>(args.outbound);
}
PROBE(put_signal) {
  copy(args.channel.remote, args.channel.local, args.bytes, threadIdx.x, blockDim.x);
  __syncthreads();
  if (threadIdx.x == 0) signal<true>(args.channel.semaphore.outbound);
}
PROBE(wait_load) {
  wait<true>(args.inbound);
  if (threadIdx.x == 0) *reinterpret_cast<uint32_t*>(args.to) = *reinterpret_cast<const uint32_t*>(args.from);
}
PROBE(fifo_push) { push(args.port.fifo, args.bytes, args.value); }
PROBE(fifo_sync) { sync(args.port.fifo, args.bytes); }
PROBE(port_put) {
  *reinterpret_cast<uint32_t*>(args.to) = args.value;
  put_with_signal(args.port, args.bytes, args.bytes, args.bytes);
}
PROBE(port_flush) { flush(args.port); }

// One vector of four for each block of one thread.
#define CONVERT(name, ...)                                                                      \
  extern "C" __global__ void __launch_bounds__(1024) baseline_##name(ConvertArgs args) {        \
    convert_at<__VA_ARGS__>(args, blockIdx.x);                                                  \
  }

CONVERT(f32x4_to_e4m3b15x4, FloatToCode<Standard>)
CONVERT(e4m3b15x4_to_f32x4, CodeToFloat<Standard>)
CONVERT(f16x4_to_e4m3b15x4, HalfToCode<Standard>)
CONVERT(e4m3b15x4_to_f16x4, CodeToHalf<Standard>)
CONVERT(f32x4_to_e4m3b15_extendedx4, FloatToCode<Extended>)
CONVERT(e4m3b15_extendedx4_to_f32x4, CodeToFloat<Extended>)
CONVERT(f16x4_to_e4m3b15_extendedx4, HalfToCode<Extended>)
CONVERT(e4m3b15_extendedx4_to_f16x4, CodeToHalf<Extended>)
