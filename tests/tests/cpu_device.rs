//! Every check on the CPU device.

use std::sync::{Mutex, PoisonError};

use warpwire::device::{Device, DeviceSelector};

/// One check at a time: some measure time, and some take all that the device holds.
static TURN: Mutex<()> = Mutex::new(());

macro_rules! tests {
    ($($module:ident::$check:ident;)*) => {$(
        #[test]
        fn $check() {
            let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
            let device = Device::open(DeviceSelector::Cpu).expect("the CPU device is always there");
            warpwire_tests::checks::$module::$check(&device);
        }
    )*};
}

warpwire_tests::for_each_check!(tests);
