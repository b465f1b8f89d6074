// The conversions as functions of their own, which the tests execute, and as kernels that convert buffers.

#include "e4m3b15.h"

// What is called alone is compiled alone: `used` keeps it though no kernel calls it.
#define FUNCTION extern "C" __attribute__((device, noinline, used))
#define KERNEL extern "C" __attribute__((global))

// Arguments of the kernels: as `warpwire::hip::ConvertArgs`.
struct ConvertArgs {
    // `count` elements of the one type, aligned to their size.
    const void *from;
    // Room for as many of the other, aligned to their size; does not overlap them.
    void *to;
    u64 count;
    // Threads of a block, and of the grid: with them here, no kernel needs the dispatch packet.
    u32 block_threads;
    u32 grid_threads;
};

// Elements of a vector.
static constexpr u64 N = 4;

// Converts the buffer in vectors, and one by one what is left behind the last whole one; all of it one by one where a buffer
// is not aligned to its vector.
template <typename From, typename To, typename FromVector, typename ToVector, typename Vectors, typename Pairs>
DEVICE void convert(const ConvertArgs &args, Vectors vectors, Pairs pairs) {
    const From *from = (const From *)args.from;
    To *to = (To *)args.to;
    const bool aligned = (u64)from % sizeof(FromVector) == 0 && (u64)to % sizeof(ToVector) == 0;
    const u64 whole = aligned ? args.count / N : 0;
    const u64 block = __builtin_amdgcn_workgroup_id_x();
    const u64 first = block * args.block_threads + __builtin_amdgcn_workitem_id_x();
    for (u64 i = first; i < whole; i += args.grid_threads) {
        ((ToVector *)to)[i] = vectors(((const FromVector *)from)[i]);
    }
    for (u64 i = whole * N + first; i < args.count; i += args.grid_threads) {
        to[i] = (To)pairs(from[i]);
    }
}

// The functions and the kernels of one range.
#define CONVERSIONS(Range, name)                                                                                            \
    FUNCTION u32 warpwire_f16x2_to_##name(u32 halves) { return encode2<Range>(halves); }                                    \
    FUNCTION u32 warpwire_f16x4_to_##name(u64 halves) { return encode4<Range>(halves); }                                    \
    FUNCTION u32 warpwire_##name##x2_to_f16(u32 codes) { return decode2<Range>(codes); }                                    \
    FUNCTION u64 warpwire_##name##x4_to_f16(u32 codes) { return decode4<Range>(codes); }                                    \
    KERNEL void warpwire_f16_to_##name(ConvertArgs args) {                                                                  \
        convert<unsigned short, unsigned char, u64, u32>(args, encode4<Range>, encode2<Range>);                             \
    }                                                                                                                       \
    KERNEL void warpwire_##name##_to_f16(ConvertArgs args) {                                                                \
        convert<unsigned char, unsigned short, u32, u64>(args, decode4<Range>, decode2<Range>);                             \
    }

CONVERSIONS(Standard, e4m3b15)
CONVERSIONS(Extended, e4m3b15_extended)
