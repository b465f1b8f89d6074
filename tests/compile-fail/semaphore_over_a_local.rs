//! C16: a protocol's word is in global memory: neither a handle nor a word can be made of a local variable.

use warpwire_device::abi::OutboundHandle;
use warpwire_device::mem::Mapped;
use warpwire_device::semaphore::Outbound;

fn main() {
    let mut token = 0_u64;
    let _ = OutboundHandle { token: &mut token };
    // SAFETY: never run.
    let _ = unsafe { Mapped::<u64>::new(&raw mut token) };
    let _ = Outbound::over(&mut token);
}
