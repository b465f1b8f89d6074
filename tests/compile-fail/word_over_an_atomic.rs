//! C14: the language's atomics are no words of a protocol: on a GPU they lose their order and their scope.

use std::sync::atomic::AtomicU64;

use warpwire_device::semaphore::Outbound;

fn main() {
    let token = AtomicU64::new(0);
    let _ = Outbound::over(&token);
}
