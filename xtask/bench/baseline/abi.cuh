// The argument blocks of warpwire's kernels, as C++ sees them: the baseline's kernels take the same ones, so a benchmark
// launches either with one set of arguments. The layouts are those of device/src/abi and device/kernels.
#pragma once
#include <cstddef>
#include <cstdint>

struct Policy {
  uint64_t board;
  uint64_t timeout_ns;
  uint32_t rank;
  uint32_t reserved;
};

struct Inbound {
  uint64_t* token;
  uint64_t* expected;
  uint32_t peer;
  uint32_t channel;
};

struct Semaphore {
  Inbound inbound;
  uint64_t* outbound;
};

struct MemoryChannel {
  Semaphore semaphore;
  uint8_t* remote;
  uint8_t* local;
  uint8_t* packets;
};

struct Fifo {
  ulonglong2* slots;
  uint64_t* head;
  uint64_t* tail;
  uint64_t* tail_cache;
  uint64_t capacity;
  uint32_t rank;
  uint32_t id;
};

struct PortChannel {
  Fifo fifo;
  Inbound inbound;
  uint64_t* flushed;
  uint32_t port;
  uint32_t reserved;
  uint32_t destination;
  uint32_t source;
};

struct SemaphorePingPongArgs {
  Semaphore ends[2];
  Policy policy;
  uint32_t first_end;
  uint32_t rounds;
  uint32_t relaxed;
  uint32_t reserved;
};
static_assert(sizeof(SemaphorePingPongArgs) == 104);

struct PacketPingPongArgs {
  uint8_t* slots[2];
  uint64_t* received[2];
  Policy policy;
  uint32_t first_end;
  uint32_t rounds;
  uint32_t flag;
  uint32_t reserved;
};
static_assert(sizeof(PacketPingPongArgs) == 72);

struct PutPingPongArgs {
  MemoryChannel ends[2];
  Policy policy;
  uint64_t bytes;
  uint32_t* wrong;
  uint32_t first_end;
  uint32_t rounds;
};
static_assert(sizeof(PutPingPongArgs) == 160);

struct BarrierRoundsArgs {
  uint32_t* word;
  Policy policy;
  uint32_t* progress;
  uint32_t* late;
  uint32_t rounds;
  uint32_t reserved;
};
static_assert(sizeof(BarrierRoundsArgs) == 56);

struct TransferArgs {
  MemoryChannel channel;
  Policy policy;
  uint64_t remote_offset;
  uint64_t local_offset;
  uint64_t bytes;
  uint32_t signal_or_flag;
  uint32_t reserved;
};
static_assert(sizeof(TransferArgs) == 112);

struct FifoPushArgs {
  Fifo fifo;
  Policy policy;
  uint32_t count;
  uint32_t sync;
};
static_assert(sizeof(FifoPushArgs) == 80);

// As in the Rust enum of this name.
enum class PortCall : uint32_t {
  Put = 1,
  PutWithSignal = 2,
  Flush = 4,
  Signal = 8,
  PutWithSignalAndFlush = 16,
  Wait = 32,
};

struct PortRequestsArgs {
  PortChannel channel;
  Policy policy;
  uint64_t destination_offset;
  uint64_t source_offset;
  uint64_t bytes;
  uint32_t count;
  PortCall call;
};
static_assert(sizeof(PortRequestsArgs) == 152);

struct PortPingPongArgs {
  PortChannel channel;
  Policy policy;
  uint8_t* outbox;
  uint8_t* inbox;
  uint64_t inbox_offset;
  uint32_t* wrong;
  uint64_t bytes;
  uint32_t end;
  uint32_t rounds;
  uint32_t flush;
  uint32_t reserved;
};
static_assert(sizeof(PortPingPongArgs) == 176);

constexpr uint32_t MAX_RANKS = 72;
constexpr uint32_t MAX_BLOCKS = 64;

struct AllPairArgs {
  uint4* scratch[MAX_RANKS];
  Policy policy;
  float* input;
  float* output;
  uint64_t count;
  uint2* rounds;
  uint32_t slots;
  uint32_t ranks;
};
static_assert(sizeof(AllPairArgs) == 8 * MAX_RANKS + 64);
