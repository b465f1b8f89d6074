//! The runner's commands that start ranks as processes, on the CPU device.

mod bench;
mod demo;
mod endings;
mod launch;
mod runner;
