//! The CUDA driver and its GPUs, asked through the driver's own interface, which is looked up at run time.

use super::table::Row;
use libloading::{Library, Symbol};
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::path::Path;
use warpwire_build::Manifest;

const LIBRARY: &str = "libcuda.so.1";
const ENABLES: &str = "the CUDA device: cargo xtask demo --device cuda";

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`.
const CAPABILITY: (c_int, c_int) = (75, 76);

/// What the driver says of one GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Gpu {
    name: String,
    capability: u32,
}

/// Every row of this section.
pub fn rows(root: &Path) -> Vec<Row> {
    let driver = match Driver::open() {
        Ok(driver) => driver,
        Err(found) => {
            return vec![Row::lacking(
                "driver",
                found,
                ENABLES,
                "install NVIDIA's driver; the CPU device needs none",
            )];
        }
    };
    let mut rows = vec![Row::there("driver", driver.describe(), ENABLES)];
    let gpus = driver.gpus();
    match gpus {
        Ok(gpus) if !gpus.is_empty() => {
            rows.extend(gpus.iter().enumerate().map(|(index, gpu)| gpu_row(index, gpu, root)));
        }
        Ok(_) => rows.push(Row::lacking(
            "GPU",
            "the driver knows none",
            ENABLES,
            "check nvidia-smi and CUDA_VISIBLE_DEVICES",
        )),
        Err(code) => rows.push(Row::lacking(
            "GPU",
            format!("the driver answers with error {code}"),
            ENABLES,
            "check nvidia-smi and /dev/nvidia*",
        )),
    }
    rows
}

fn gpu_row(index: usize, gpu: &Gpu, root: &Path) -> Row {
    let name = format!("GPU {index}");
    let found = format!("{}, sm_{}", gpu.name, gpu.capability);
    let built = Manifest::read(&root.join("ptx")).ok().flatten();
    let targets = built.iter().flat_map(|manifest| &manifest.architectures);
    let numbers = targets.filter_map(|built| built.target.parse::<warpwire_build::Arch>().ok());
    let best = numbers.map(|arch| arch.number()).filter(|number| *number <= gpu.capability).max();
    match best {
        Some(number) => Row::there(name, found, format!("{ENABLES} (with the PTX for sm_{number})")),
        None => Row::lacking(
            name,
            format!("{found}: the PTX in ptx/ is for newer GPUs"),
            ENABLES,
            "cargo xtask build-ptx --arch for this GPU, if it is sm_80 or newer",
        ),
    }
}

/// The driver's library with the functions that are used here.
struct Driver {
    library: Library,
}

type Init = unsafe extern "C" fn(c_uint) -> c_int;
type GetInt = unsafe extern "C" fn(*mut c_int) -> c_int;
type GetDevice = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
type GetName = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
type GetAttribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;

impl Driver {
    fn open() -> Result<Driver, String> {
        // SAFETY: loading NVIDIA's driver runs its initialisers, which expect nothing of the program that loads it.
        let library = unsafe { Library::new(LIBRARY) }.map_err(|_| format!("no {LIBRARY}"))?;
        Ok(Driver { library })
    }

    /// Looks a function up by its name in the driver API's manual.
    ///
    /// # Safety
    /// `F` must be that function's type.
    unsafe fn function<F>(&self, name: &str) -> Option<Symbol<'_, F>> {
        // SAFETY: the caller names the right type; the symbol borrows the library, so it cannot outlive it.
        unsafe { self.library.get(name.as_bytes()) }.ok()
    }

    fn describe(&self) -> String {
        let mut version: c_int = 0;
        // SAFETY: the manual's signature: CUresult cuDriverGetVersion(int *version). It needs no cuInit.
        let asked = unsafe { self.function::<GetInt>("cuDriverGetVersion") };
        // SAFETY: `version` lives across the call.
        match asked.map(|ask| unsafe { ask(&mut version) }) {
            Some(0) => format!("{LIBRARY}, for CUDA up to {}.{}", version / 1000, version % 1000 / 10),
            _ => format!("{LIBRARY}, of an unknown version"),
        }
    }

    /// The GPUs, or the driver's error code.
    fn gpus(&self) -> Result<Vec<Gpu>, c_int> {
        const NOT_FOUND: c_int = 500;
        // SAFETY: the signatures are the manual's; each output lives across its call and the name's length is passed.
        unsafe {
            let init = self.function::<Init>("cuInit").ok_or(NOT_FOUND)?;
            let count_of = self.function::<GetInt>("cuDeviceGetCount").ok_or(NOT_FOUND)?;
            let get = self.function::<GetDevice>("cuDeviceGet").ok_or(NOT_FOUND)?;
            let name_of = self.function::<GetName>("cuDeviceGetName").ok_or(NOT_FOUND)?;
            let attribute = self.function::<GetAttribute>("cuDeviceGetAttribute").ok_or(NOT_FOUND)?;
            check(init(0))?;
            let mut count = 0;
            check(count_of(&mut count))?;
            let mut gpus = Vec::new();
            for ordinal in 0..count {
                let (mut device, mut major, mut minor) = (0, 0, 0);
                let mut name: [c_char; 128] = [0; 128];
                check(get(&mut device, ordinal))?;
                check(name_of(name.as_mut_ptr(), name.len() as c_int - 1, device))?;
                check(attribute(&mut major, CAPABILITY.0, device))?;
                check(attribute(&mut minor, CAPABILITY.1, device))?;
                // The last byte stays zero, so the name ends within the array.
                let name = CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned();
                gpus.push(Gpu { name, capability: (major * 10 + minor).unsigned_abs() });
            }
            Ok(gpus)
        }
    }
}

fn check(code: c_int) -> Result<(), c_int> {
    if code == 0 { Ok(()) } else { Err(code) }
}
