// fp8 e4m3b15 in CUDA C++, as one would write it by hand with the SIMD and byte-permute intrinsics: the same codes as
// device/src/fp8 says, in both ranges.
#pragma once
#include <cuda_fp16.h>

#include <cstdint>

struct ConvertArgs {
  const uint8_t* from;
  uint8_t* to;
  uint64_t count;
};

struct Standard {
  static constexpr bool has_nan = true;
  static constexpr uint32_t largest = 0x3BBF3BBF;  // the largest f16 that rounds to 0x77, twice
};
struct Extended {
  static constexpr bool has_nan = false;
  static constexpr uint32_t largest = 0x3FBF3FBF;  // to 0x7F
};

// Two f16 as codes in the upper bytes of their halves.
template <typename Range>
__device__ __forceinline__ uint32_t encode_halves(uint32_t halves) {
  const uint32_t magnitudes = halves & 0x7FFF7FFF;
  const uint32_t rounded = (__vminu2(magnitudes, Range::largest) + 0x00400040) << 1;
  if (!Range::has_nan) return rounded | (halves & 0x80008000);
  const uint32_t nonzero = rounded + 0x7F007F00;
  const uint32_t codes = rounded | (halves & nonzero & 0x80008000);
  const uint32_t nan = __vcmpgtu2(magnitudes, 0x7C007C00);
  return (codes & ~nan) | (0x80008000 & nan);
}

template <typename Range>
__device__ __forceinline__ uint32_t encode4(uint2 halves) {
  return __byte_perm(encode_halves<Range>(halves.x), encode_halves<Range>(halves.y), 0x7531);
}

template <typename Range>
__device__ __forceinline__ uint32_t decode_halves(uint32_t codes) {
  uint32_t halves = (codes & 0x80008000) | ((codes & 0x7F007F00) >> 1);
  if (!Range::has_nan) return halves;
  const uint32_t magnitudes = halves & 0x7FFF7FFF;
  const uint32_t nan = __vcmpgeu2(magnitudes, 0x3C003C00) | __vcmpeq2(halves, 0x80008000);
  return (halves & ~nan) | (0x7FFF7FFF & nan);
}

template <typename Range>
__device__ __forceinline__ uint2 decode4(uint32_t codes) {
  return {decode_halves<Range>(__byte_perm(codes, 0, 0x1404)), decode_halves<Range>(__byte_perm(codes, 0, 0x3424))};
}

__device__ __forceinline__ uint32_t as_bits(__half2 halves) { return *reinterpret_cast<uint32_t*>(&halves); }
__device__ __forceinline__ float2 as_floats(uint32_t halves) {
  return __half22float2(*reinterpret_cast<__half2*>(&halves));
}

// Four elements from one type to another.
template <typename Range>
struct HalfToCode {
  using From = uint2;
  using To = uint32_t;
  __device__ static To convert(From from) { return encode4<Range>(from); }
};
template <typename Range>
struct FloatToCode {
  using From = float4;
  using To = uint32_t;
  __device__ static To convert(From from) {
    return encode4<Range>({as_bits(__floats2half2_rn(from.x, from.y)), as_bits(__floats2half2_rn(from.z, from.w))});
  }
};
template <typename Range>
struct CodeToHalf {
  using From = uint32_t;
  using To = uint2;
  __device__ static To convert(From from) { return decode4<Range>(from); }
};
template <typename Range>
struct CodeToFloat {
  using From = uint32_t;
  using To = float4;
  __device__ static To convert(From from) {
    const uint2 halves = decode4<Range>(from);
    const float2 low = as_floats(halves.x), high = as_floats(halves.y);
    return {low.x, low.y, high.x, high.y};
  }
};

// Four elements of each buffer.
template <typename Conversion>
__device__ __forceinline__ void convert_at(const ConvertArgs& args, uint64_t i) {
  reinterpret_cast<typename Conversion::To*>(args.to)[i] =
      Conversion::convert(reinterpret_cast<const typename Conversion::From*>(args.from)[i]);
}

// Whole buffers, of a multiple of four elements, aligned.
template <typename Conversion>
__device__ __forceinline__ void convert(const ConvertArgs& args) {
  const uint64_t threads = uint64_t(gridDim.x) * blockDim.x;
  for (uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < args.count / 4; i += threads) {
    convert_at<Conversion>(args, i);
  }
}
