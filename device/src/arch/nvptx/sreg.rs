//! Special registers. All one-dimensional: this library's grids are.
//!
//! Source: "Special Registers", PTX ISA 8.7.

use core::arch::{asm, nvptx};

/// `%tid.x`: the thread's number in its block.
#[inline(always)]
pub fn thread_index() -> u32 {
    // SAFETY: reads a special register.
    unsafe { nvptx::_thread_idx_x() as u32 }
}

/// `%ntid.x`: threads of the block.
#[inline(always)]
pub fn block_size() -> u32 {
    // SAFETY: reads a special register.
    unsafe { nvptx::_block_dim_x() as u32 }
}

/// `%ctaid.x`: the block's number in its grid.
#[inline(always)]
pub fn block_index() -> u32 {
    // SAFETY: reads a special register.
    unsafe { nvptx::_block_idx_x() as u32 }
}

/// `%nctaid.x`: blocks of the grid.
#[inline(always)]
pub fn grid_size() -> u32 {
    // SAFETY: reads a special register.
    unsafe { nvptx::_grid_dim_x() as u32 }
}

/// `%globaltimer`: nanoseconds, of a resolution that the hardware chooses (32 ns to 1 us on the data-centre parts).
#[inline(always)]
pub fn timer_ns() -> u64 {
    let now: u64;
    // SAFETY: reads a special register. Not `pure`: two reads differ.
    unsafe { asm!("mov.u64 {}, %globaltimer;", out(reg64) now, options(nomem, nostack)) };
    now
}

/// Bytes of dynamic shared memory that the launch asked for.
#[inline(always)]
pub fn dynamic_shared_bytes() -> u32 {
    let bytes: u32;
    // SAFETY: reads a special register that does not change while the kernel runs.
    unsafe { asm!("mov.u32 {}, %dynamic_smem_size;", out(reg32) bytes, options(pure, nomem, nostack)) };
    bytes
}

/// `value + step`, which the compiler takes for a number of its own. In an unrolled loop it keeps the chain of sums: two
/// registers, where `value + k * step` for each `k` would be computed before the loop and hold two each. As a loop's counter it
/// keeps the loop from being unrolled.
#[inline(always)]
pub fn advance(value: u64, step: u64) -> u64 {
    let sum: u64;
    // SAFETY: adds registers. Not `pure`: so it is not hoisted.
    unsafe {
        asm!("add.u64 {}, {}, {};", out(reg64) sum, in(reg64) value, in(reg64) step,
             options(nomem, nostack, preserves_flags))
    };
    sum
}

/// `count - 1`, likewise.
#[inline(always)]
pub fn count_down(count: u32) -> u32 {
    let left: u32;
    // SAFETY: subtracts registers. Not `pure`, as in `advance`.
    unsafe {
        asm!("sub.u32 {}, {}, 1;", out(reg32) left, in(reg32) count, options(nomem, nostack, preserves_flags))
    };
    left
}

/// The upper 32 bits. The compiler does not see what is done with them: of a comparison of signs it would make one of 64 bits, which
/// is two instructions.
#[inline(always)]
pub fn high_half(value: u64) -> u32 {
    let high: u32;
    // SAFETY: moves registers.
    unsafe {
        asm!("{{ .reg .b32 low; mov.b64 {{low, {}}}, {}; }}", out(reg32) high, in(reg64) value,
             options(pure, nomem, nostack, preserves_flags))
    };
    high
}

/// At the head of a loop's body: tells the assembler to leave the loop as it is.
#[inline(always)]
pub fn keep_loop() {
    // SAFETY: no instruction.
    unsafe { asm!(".pragma \"nounroll\";", options(nomem, nostack, preserves_flags)) };
}
