//! The checks, one after the other on one GPU.

use std::sync::{Mutex, OnceLock, PoisonError};

use warpwire::ErrorKind;
use warpwire::device::{Device, DeviceSelector};
use warpwire_tests::skip;

/// One check at a time: their kernels wait for each other and would take each other's place on the GPU.
static TURN: Mutex<()> = Mutex::new(());

/// The GPU, if there is one. With `WARPWIRE_REQUIRE_GPU=1` its lack is a failure.
fn gpu(test: &str) -> Option<&'static Device> {
    static GPU: OnceLock<Result<Device, String>> = OnceLock::new();
    let gpu = GPU.get_or_init(|| {
        // SAFETY: within the first call of the first test, whose turn the others wait for: no other thread reads or writes
        // the environment. Ranks that share the GPU need as many queues.
        unsafe { std::env::set_var("CUDA_DEVICE_MAX_CONNECTIONS", "32") };
        match Device::open(DeviceSelector::Cuda(0)) {
            Ok(device) => Ok(device),
            Err(error)
                if error.kind() == ErrorKind::Unavailable && !skip::is_required("WARPWIRE_REQUIRE_GPU") =>
            {
                Err(error.to_string())
            }
            Err(error) => panic!("GPU 0 does not open: {error}"),
        }
    });
    gpu.as_ref().inspect_err(|why| skip::skipped(test, why)).ok()
}

macro_rules! tests {
    ($($module:ident::$check:ident;)*) => {$(
        #[test]
        fn $check() {
            let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(device) = gpu(stringify!($check)) {
                warpwire_tests::checks::$module::$check(device);
            }
        }
    )*};
}

warpwire_tests::for_each_check!(tests);
