// The instructions of gfx942 that the conversions are made of, one function each.
//
// Spelled as inline assembly, since the packed ones are what the compiler does not find by itself. Constants come in scalar
// registers: these encodings have no room for a literal.
//
// Source: "AMD Instinct MI300 Instruction Set Architecture", chapter 12.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

#define DEVICE __attribute__((device)) static inline __attribute__((always_inline))

// Two 16-bit lanes: the lesser of each, unsigned.
DEVICE u32 pk_min_u16(u32 a, u32 constant) {
    u32 result;
    asm("v_pk_min_u16 %0, %1, %2" : "=v"(result) : "v"(a), "s"(constant));
    return result;
}

// Two 16-bit lanes: the sums.
DEVICE u32 pk_add_u16(u32 a, u32 constant) {
    u32 result;
    asm("v_pk_add_u16 %0, %1, %2" : "=v"(result) : "v"(a), "s"(constant));
    return result;
}

// Two 16-bit lanes: the differences constant - a.
DEVICE u32 pk_sub_from_u16(u32 constant, u32 a) {
    u32 result;
    asm("v_pk_sub_u16 %0, %1, %2" : "=v"(result) : "s"(constant), "v"(a));
    return result;
}

// Two 16-bit lanes: the differences a - constant, 0 where they would be negative.
DEVICE u32 pk_sub_saturating_u16(u32 a, u32 constant) {
    u32 result;
    asm("v_pk_sub_u16 %0, %1, %2 clamp" : "=v"(result) : "v"(a), "s"(constant));
    return result;
}

// Two 16-bit lanes, each shifted right by its lane of `counts`, its sign coming in.
DEVICE u32 pk_ashr_i16(u32 counts, u32 a) {
    u32 result;
    asm("v_pk_ashrrev_i16 %0, %1, %2" : "=v"(result) : "s"(counts), "v"(a));
    return result;
}

// Four bytes chosen out of eight: byte i of `selector` says which one becomes byte i, 0 to 3 those of `low`, 4 to 7 those of
// `high`, 12 a zero.
DEVICE u32 perm(u32 high, u32 low, u32 selector) {
    u32 result;
    asm("v_perm_b32 %0, %1, %2, %3" : "=v"(result) : "v"(high), "v"(low), "s"(selector));
    return result;
}

// (a & b) | c.
DEVICE u32 and_or(u32 a, u32 b, u32 c) {
    u32 result;
    asm("v_and_or_b32 %0, %1, %2, %3" : "=v"(result) : "v"(a), "v"(b), "v"(c));
    return result;
}

// (a & mask) | c.
DEVICE u32 mask_or(u32 a, u32 mask, u32 c) {
    u32 result;
    asm("v_and_or_b32 %0, %1, %2, %3" : "=v"(result) : "v"(a), "s"(mask), "v"(c));
    return result;
}

// Where a bit of the mask is set, the constant's; elsewhere b's.
DEVICE u32 insert(u32 mask, u32 constant, u32 b) {
    u32 result;
    asm("v_bfi_b32 %0, %1, %2, %3" : "=v"(result) : "v"(mask), "s"(constant), "v"(b));
    return result;
}

// Where a bit of the constant mask is set, a's; elsewhere b's.
DEVICE u32 merge(u32 mask, u32 a, u32 b) {
    u32 result;
    asm("v_bfi_b32 %0, %1, %2, %3" : "=v"(result) : "s"(mask), "v"(a), "v"(b));
    return result;
}

// Twice a, plus the constant.
DEVICE u32 twice_plus(u32 a, u32 constant) {
    u32 result;
    asm("v_lshl_add_u32 %0, %1, 1, %2" : "=v"(result) : "v"(a), "s"(constant));
    return result;
}
