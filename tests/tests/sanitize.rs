//! What the sanitizers look at: the protocols between plain OS threads over the CPU's instructions.
//!
//! There are no coroutines here, whose stacks ThreadSanitizer does not follow. Under ThreadSanitizer a payload that its
//! protocol does not publish is a data race, and so is a copy that touches what lies beside its range; under
//! AddressSanitizer or valgrind an access behind a buffer's end is an error, since the buffers end where the heap's blocks
//! do. Without a sanitizer the same tests check the values.

mod sanitizers {
    mod copies;
    mod packets;
    mod protocols;
    mod threads;
}

use std::ffi::{CStr, c_char};

/// What ThreadSanitizer has to leave out: the test harness hands its results over through a channel of the standard library,
/// which is not instrumented, so it does not see their order. Called by its runtime when the program starts.
#[unsafe(no_mangle)]
extern "C" fn __tsan_default_suppressions() -> *const c_char {
    const SUPPRESSIONS: &CStr = c"race:CompletedTest\n";
    SUPPRESSIONS.as_ptr()
}
