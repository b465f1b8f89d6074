//! Sharing over a driver that counts, and hand-overs that go wrong.

mod hand_over;
mod lifetimes;
mod mock;
mod wire;
