//! The runner's commands that start ranks as processes, on the CPU device.

mod demo;
mod endings;
mod runner;
