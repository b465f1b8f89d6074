//! The protocols under a model checker: every interleaving and every value that a C11 memory could give.
//!
//! The semaphore, the FIFO and the barrier are generic over [`Word`]; here the words are loom's. Preemptions are bounded to 3 for
//! each execution, which loom's authors found to be where almost all faults show; within that the search is complete. Loom
//! checks orders, not scopes: passing here is necessary for a GPU, not sufficient (the golden tests look at the scopes).
//!
//! Where several threads spin at once, an unfair schedule lets them take turns for ever; there each wait gives up after a
//! few looks and ends its thread's part, and the model counts how often all parts came to their end.
//!
//! Some models are wrong on purpose and have to fail: they show that the others could.

mod models {
    mod barrier;
    mod fifo;
    mod memory;
    mod semaphore;
}
