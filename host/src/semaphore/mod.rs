//! Semaphores, and the memory behind them.
//!
//! [`SemaphoreSide`] has the words of one side. [`Semaphore`] is one rank's end of a semaphore with another rank, in
//! whatever process that is: [`Communicator::build_semaphore`](crate::communicator::Communicator::build_semaphore) makes
//! both. [`HostSemaphore`] is signalled by the host of its own process.
//!
//! Layers: `side`, `host` < `lending` < `end`.

mod end;
mod host;
mod lending;
mod side;

pub use end::Semaphore;
pub use host::HostSemaphore;
pub(crate) use lending::Lending;
pub use side::SemaphoreSide;
