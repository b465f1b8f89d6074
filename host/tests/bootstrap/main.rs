//! The bootstrap: ranks as threads, in one process or over TCP, and ranks as processes.

mod calls;
mod endings;
mod jobs;
mod load;
mod processes;
mod setup;
mod strangers;
