//! Every check on GPU 0, with `--features cuda`; left out, with the reason, where there is no driver or no GPU.

#[cfg(feature = "cuda")]
mod gpu {
    pub mod checks;
}

#[cfg(not(feature = "cuda"))]
#[test]
fn every_check_is_left_out() {
    warpwire_tests::skip::skipped(
        "the checks on a GPU",
        "this build has no CUDA devices; run with `--features cuda`",
    );
}
