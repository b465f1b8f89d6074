// fp8 e4m3b15 on gfx942: the conversions of device/src/fp8 (which has the format's rules, and its special values in a table),
// two and four elements at a time, without a branch.
#pragma once

#include "gfx942.h"

// The two readings of the format's codes.
struct Standard {
    static constexpr bool has_nan = true;
    // The largest f16 that rounds to the largest code, 0x77.
    static constexpr u32 largest = 0x3BBF3BBF;
};
struct Extended {
    static constexpr bool has_nan = false;
    // The same for 0x7F.
    static constexpr u32 largest = 0x3FBF3FBF;
};

// Bit 15 of each half.
static constexpr u32 SIGNS = 0x80008000;

// The code of each of two f16 in the upper byte of its half; what is below is of no account.
template <typename Range>
DEVICE u32 encode_halves(u32 halves) {
    u32 magnitudes = halves & ~SIGNS;
    // Half of the last place is added; then one place up, so that the code is a byte.
    u32 rounded = twice_plus(pk_min_u16(magnitudes, Range::largest), 0x00800080);
    if (!Range::has_nan) {
        return merge(SIGNS, halves, rounded);
    }
    // A sign only where the code is not 0: then it is at least 0x01, and adding 0x7F00 sets bit 15.
    u32 signed_codes = mask_or(halves & pk_add_u16(rounded, 0x7F007F00), SIGNS, rounded);
    // NaN lies beyond 0x7C00, by 1 to 0x3FF: as a mask of its half.
    u32 nan = pk_sub_from_u16(0, pk_min_u16(pk_sub_saturating_u16(magnitudes, 0x7C007C00), 0x00010001));
    return insert(nan, SIGNS, signed_codes);
}

// Two codes, each in the upper byte of its half over a zero, as f16.
template <typename Range>
DEVICE u32 decode_halves(u32 codes) {
    // The sign comes in twice; the copy in bit 14 goes.
    u32 halves = pk_ashr_i16(0x00010001, codes) & 0xBFFFBFFF;
    if (!Range::has_nan) {
        return halves;
    }
    u32 magnitudes = halves & ~SIGNS;
    // Bit 15: the magnitude is at least 0x3C00, or it is 0 and the sign is set.
    u32 beyond = pk_add_u16(magnitudes, 0x44004400);
    u32 zero = pk_sub_from_u16(SIGNS, magnitudes);
    u32 nan = pk_ashr_i16(0x000F000F, and_or(halves, zero, beyond));
    return insert(nan, 0x7FFF7FFF, halves);
}

// Two f16 to two codes, in the lower half.
template <typename Range>
DEVICE u32 encode2(u32 halves) {
    u32 codes = encode_halves<Range>(halves);
    return perm(codes, codes, 0x0C0C0301);
}

// Four f16 to four codes.
template <typename Range>
DEVICE u32 encode4(u64 halves) {
    return perm(encode_halves<Range>((u32)(halves >> 32)), encode_halves<Range>((u32)halves), 0x07050301);
}

// Two codes, in the lower half, to two f16.
template <typename Range>
DEVICE u32 decode2(u32 codes) {
    return decode_halves<Range>(perm(codes, codes, 0x010C000C));
}

// Four codes to four f16.
template <typename Range>
DEVICE u64 decode4(u32 codes) {
    u32 low = decode_halves<Range>(perm(codes, codes, 0x010C000C));
    u32 high = decode_halves<Range>(perm(codes, codes, 0x030C020C));
    return (u64)high << 32 | low;
}
