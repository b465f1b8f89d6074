//! AMD GPUs of the architecture gfx942 (MI300): the fp8 conversions as a code object, through the HIP runtime.
//!
//! The runtime is looked for when [`Runtime::open`] is called; where there is none, the error says so. The code object is
//! what `cargo xtask build-hip` makes of `device/hip`. It has never run on the hardware: its conversion functions are
//! checked by executing their instructions, this module against a stand-in for the runtime.

mod sys;

use std::ffi::{CStr, c_void};
use std::fmt;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use warpwire_device::abi::{ElementType, Pod};

use crate::error::{DataTypeError, Error, Result};
use sys::{CopyKind, Functions};

/// The kernels for gfx942.
pub const GFX942: &[u8] = include_bytes!("../../ptx/gfx942/e4m3b15.co");

/// Threads of a block.
const THREADS: u32 = 256;
/// The most blocks: several for each of an MI300's 304 compute units.
const MAX_BLOCKS: u64 = 2432;
/// Elements that a thread converts at once.
const VECTOR: u64 = 4;

/// Arguments of the kernels, as `device/hip/e4m3b15.hip` has them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct ConvertArgs {
    from: u64,
    to: u64,
    count: u64,
    block_threads: u32,
    grid_threads: u32,
}
const _: () = assert!(size_of::<ConvertArgs>() == 32);

/// The HIP runtime, with one of its devices. A cheap clone.
#[derive(Clone)]
pub struct Runtime {
    functions: Arc<Functions>,
    device: i32,
}

impl Runtime {
    /// Opens the runtime, and takes its device `device`.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] where there is no runtime or no such device, [`Error::Driver`] where it does not start.
    pub fn open(device: u32) -> Result<Self> {
        Self::with(Functions::open(None)?, device)
    }

    /// As [`Runtime::open`], with the runtime at `path`, which has to be one.
    ///
    /// # Errors
    ///
    /// As [`Runtime::open`].
    pub fn open_at(path: &Path, device: u32) -> Result<Self> {
        Self::with(Functions::open(Some(path))?, device)
    }

    fn with(functions: Functions, device: u32) -> Result<Self> {
        // SAFETY: no argument but the flags, which have to be 0.
        let status = unsafe { (functions.init)(0) };
        let mut present = 0;
        if !sys::NO_DEVICE.contains(&status) {
            functions.check("starting the HIP runtime", status)?;
            // SAFETY: writes one number.
            functions.check("counting the GPUs", unsafe { (functions.device_count)(&raw mut present) })?;
        }
        let found = i32::try_from(device).ok().filter(|device| *device < present);
        let device = found.ok_or_else(|| Error::Unavailable {
            what: format!("there is no AMD GPU {device}: the HIP runtime sees {present}, numbered from 0"),
            hint: "see what rocminfo lists".to_owned(),
        })?;
        Ok(Self { functions: Arc::new(functions), device })
    }

    /// Makes the device the calling thread's.
    fn select(&self) -> Result<()> {
        // SAFETY: a device that the runtime has.
        self.functions.check("selecting the GPU", unsafe { (self.functions.set_device)(self.device) })
    }

    /// Loads the conversions.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`] where the GPU is no gfx942, among others.
    pub fn converter(&self) -> Result<Converter> {
        self.select()?;
        let mut module = ptr::null_mut();
        // SAFETY: a code object, which carries its own length; the runtime copies it.
        let status = unsafe { (self.functions.module_load_data)(&raw mut module, GFX942.as_ptr().cast()) };
        self.functions.check("loading the code object for gfx942", status)?;
        Ok(Converter { runtime: self.clone(), module })
    }

    /// Memory of the device with these elements in it.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyAllocation`] for none, [`Error::Driver`] where the device has no room.
    pub fn upload<T: Pod>(&self, elements: &[T]) -> Result<Buffer> {
        let buffer = self.allocate(size_of_val(elements))?;
        let (to, from) = (buffer.address, elements.as_ptr().cast());
        // SAFETY: both hold as many bytes; plain values.
        let status = unsafe { (self.functions.memcpy)(to, from, buffer.bytes, CopyKind::HostToDevice) };
        self.functions.check("copying to the GPU", status)?;
        Ok(buffer)
    }

    /// Memory of the device.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyAllocation`] for none, [`Error::Driver`] where the device has no room.
    pub fn allocate(&self, bytes: usize) -> Result<Buffer> {
        if bytes == 0 {
            return Err(Error::EmptyAllocation);
        }
        self.select()?;
        let mut address = ptr::null_mut();
        // SAFETY: writes one address.
        let status = unsafe { (self.functions.malloc)(&raw mut address, bytes) };
        self.functions.check("allocating memory of the GPU", status)?;
        Ok(Buffer { runtime: self.clone(), address, bytes })
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("hip::Runtime").field("device", &self.device).finish_non_exhaustive()
    }
}

/// Memory of an AMD GPU, freed when it is dropped.
#[derive(Debug)]
pub struct Buffer {
    runtime: Runtime,
    address: *mut c_void,
    bytes: usize,
}

impl Buffer {
    /// The elements in it, as many as fit.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`].
    pub fn download<T: Pod + Default>(&self) -> Result<Vec<T>> {
        let mut elements = vec![T::default(); self.bytes / size_of::<T>()];
        let bytes = size_of_val(&elements[..]);
        let functions = &self.runtime.functions;
        self.runtime.select()?;
        // SAFETY: both hold as many bytes; every bit pattern is a `T`.
        let status = unsafe {
            (functions.memcpy)(elements.as_mut_ptr().cast(), self.address, bytes, CopyKind::DeviceToHost)
        };
        functions.check("copying from the GPU", status)?;
        Ok(elements)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated by this runtime, freed once. A failure here has nobody to go to.
        unsafe { (self.runtime.functions.free)(self.address) };
    }
}

/// The conversions, loaded.
#[derive(Debug)]
pub struct Converter {
    runtime: Runtime,
    module: *mut c_void,
}

impl Converter {
    /// Converts `count` elements, and waits until it is done.
    ///
    /// # Errors
    ///
    /// [`DataTypeError::NoConversion`] for a pair other than `f16` and e4m3b15, [`Error::OutOfRange`] where a buffer is too
    /// short, [`Error::Driver`].
    pub fn convert(
        &self,
        (from, source): (&Buffer, ElementType),
        (to, target): (&Buffer, ElementType),
        count: usize,
    ) -> Result<()> {
        use ElementType::{E4m3B15, E4m3B15Extended, F16};
        let kernel = match (source, target) {
            (F16, E4m3B15) => c"warpwire_f16_to_e4m3b15",
            (F16, E4m3B15Extended) => c"warpwire_f16_to_e4m3b15_extended",
            (E4m3B15, F16) => c"warpwire_e4m3b15_to_f16",
            (E4m3B15Extended, F16) => c"warpwire_e4m3b15_extended_to_f16",
            (from, to) => {
                let hint = "the kernels for gfx942 convert between f16 and e4m3b15";
                return Err(DataTypeError::NoConversion { from, to, hint }.into());
            }
        };
        for (operation, buffer, element) in [("read", from, source), ("write", to, target)] {
            let capacity = buffer.bytes / element.bytes();
            if count > capacity {
                return Err(Error::OutOfRange { operation, offset: 0, len: count, capacity });
            }
        }
        let blocks = (count as u64).div_ceil(VECTOR * u64::from(THREADS)).clamp(1, MAX_BLOCKS) as u32;
        let args = ConvertArgs {
            from: from.address as u64,
            to: to.address as u64,
            count: count as u64,
            block_threads: THREADS,
            grid_threads: blocks * THREADS,
        };
        // SAFETY: both buffers hold `count` elements, aligned as the runtime allocates, and live until the launch has ended;
        // they are two, so they do not overlap.
        unsafe { self.launch(kernel, blocks, args) }
    }

    /// # Safety
    ///
    /// The arguments are the kernel's, and what they point at is there until this returns.
    unsafe fn launch(&self, kernel: &CStr, blocks: u32, mut args: ConvertArgs) -> Result<()> {
        let functions = &self.runtime.functions;
        self.runtime.select()?;
        let mut function = ptr::null_mut();
        // SAFETY: the module is loaded; the name ends with a 0.
        let status =
            unsafe { (functions.module_get_function)(&raw mut function, self.module, kernel.as_ptr()) };
        functions.check("finding a kernel", status)?;
        let mut size = size_of::<ConvertArgs>();
        let mut extra = [
            sys::LAUNCH_PARAM_BUFFER_POINTER,
            (&raw mut args).cast(),
            sys::LAUNCH_PARAM_BUFFER_SIZE,
            (&raw mut size).cast(),
            sys::LAUNCH_PARAM_END,
        ];
        // SAFETY: a function of the loaded module; the argument block and its size live through the call, which copies them.
        let status = unsafe {
            (functions.module_launch_kernel)(
                function,
                blocks,
                1,
                1,
                THREADS,
                1,
                1,
                0,
                ptr::null_mut(),
                ptr::null_mut(),
                extra.as_mut_ptr(),
            )
        };
        functions.check("launching a kernel", status)?;
        // SAFETY: waits for the device.
        functions.check("waiting for the GPU", unsafe { (functions.synchronize)() })
    }
}

impl Drop for Converter {
    fn drop(&mut self) {
        // SAFETY: loaded by this runtime, unloaded once. A failure here has nobody to go to.
        unsafe { (self.runtime.functions.module_unload)(self.module) };
    }
}
