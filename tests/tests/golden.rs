//! What the primitives become as PTX.
//!
//! `tests/probes` has one kernel for each primitive. They are compiled here for every architecture that the project ships;
//! the checks read the flow of each entry (see [`warpwire_tests::ptx`]), and `tests/golden/*.ptx-lines` has, for each, the
//! instructions that touch memory or wait for others. `BLESS=1` writes those files anew.
//!
//! Where no compiler can write PTX, these tests say so and pass; with `WARPWIRE_REQUIRE_PTX=1` they fail.

mod golden {
    pub mod instructions;
    pub mod lines;
    pub mod order;
    pub mod probes;
    pub mod shipped;
}
