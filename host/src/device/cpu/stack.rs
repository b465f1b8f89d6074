//! Stacks for coroutines, kept for the next block.

use corosensei::stack::DefaultStack;

use crate::error::{Error, Result};
use crate::monitor::Monitor;

/// Bytes of a coroutine's stack; a guard page lies below it. A kernel's own frames are small: what needs room is the
/// standard library's printing of a panic.
const STACK_BYTES: usize = 64 << 10;

/// The stacks that no coroutine uses now. As many exist as GPU threads ran at once at most, which `capacity` limits.
static FREE: Monitor<Vec<DefaultStack>> = Monitor::new(Vec::new());

/// `count` stacks.
pub(super) fn take(count: usize) -> Result<Vec<DefaultStack>> {
    let mut stacks = FREE.with(|free| free.split_off(free.len().saturating_sub(count)));
    while stacks.len() < count {
        match DefaultStack::new(STACK_BYTES) {
            Ok(stack) => stacks.push(stack),
            Err(source) => {
                give_back(stacks);
                let operation = format!("mapping the stacks of {count} GPU threads (see vm.max_map_count)");
                return Err(Error::System { operation, source });
            }
        }
    }
    Ok(stacks)
}

/// Keeps `stacks` for the next to ask.
pub(super) fn give_back(stacks: impl IntoIterator<Item = DefaultStack>) {
    FREE.with(|free| free.extend(stacks));
}
