//! What must not compile, with what the compiler says to whoever tries: `compile-fail/*.rs` and the `.stderr` beside each.
//! `TRYBUILD=overwrite` writes the latter anew.

#[test]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("compile-fail/*.rs");
}
