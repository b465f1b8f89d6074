//! The module with the checks' own kernels, which is not part of the library.

use std::fs;

use warpwire::device::{Device, DeviceKind, Module, ModuleSource};

use crate::skip;

/// Where the module's PTX is, for a GPU: `cargo xtask build-ptx --manifest-path tests/kernels/Cargo.toml --arch sm_90 --out
/// target/check-ptx` writes `target/check-ptx/sm_90/warpwire_check_kernels.ptx`.
const PTX: &str = "WARPWIRE_CHECK_PTX";

/// The module, loaded; none, with the reason printed, where a GPU needs PTX and `WARPWIRE_CHECK_PTX` names none.
pub(super) fn check_module(device: &Device, check: &str) -> Option<Module> {
    let mut source =
        ModuleSource { name: "warpwire_check_kernels", kernels: warpwire_check_kernels::MODULE, ptx: &[] };
    if device.properties().kind == DeviceKind::Cuda {
        let Some(path) = std::env::var_os(PTX) else {
            skip::skipped(check, &format!("{PTX} names no PTX"));
            return None;
        };
        let text =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{PTX} is {}: {error}", path.display()));
        let target = text.lines().find_map(|line| line.trim().strip_prefix(".target sm_"));
        let digits = target.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
        let number = digits.and_then(|digits| digits.parse().ok());
        let number = number.unwrap_or_else(|| panic!("{}: no .target sm_NN", path.display()));
        // A module's text lives as long as the program: one a process.
        source.ptx = Vec::leak(vec![(number, &*String::leak(text))]);
    }
    Some(device.load(&source).expect("the device takes the module"))
}
