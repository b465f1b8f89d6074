//! A GPU's primary context: what every other object of the device lives in.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::sync::Mutex;

use cust::sys::{
    CUcontext, CUdevice, CUdevice_attribute as Attribute, CUmodule, CUstreamCaptureMode as CaptureMode,
};

use super::failure::Failure;
use super::late::Late;
use super::ptx::CudaVersion;
use super::sys::{NOT_SUPPORTED, call};
use crate::device::{DeviceKind, DeviceUuid, PciAddress, Properties};
use crate::env;
use crate::error::{Error, Result};

/// How many hardware queues the driver spreads streams over where `CUDA_DEVICE_MAX_CONNECTIONS` is not set.
const DEFAULT_CONNECTIONS: u32 = 8;

/// One GPU with its primary context retained. Every object of the device holds it by an `Arc`, so it goes last.
#[derive(Debug)]
pub(super) struct Context {
    device: CUdevice,
    raw: CUcontext,
    properties: Properties,
    cuda: CudaVersion,
    shared_limit: u32,
    pools: bool,
    late: Late,
    /// Modules stay loaded until the context goes: a queued kernel or a recorded graph may still need their code, and
    /// unloading one waits for kernels that run. Programs embed their PTX, so their number is bounded.
    modules: Mutex<Vec<Module>>,
}

/// A module's handle.
#[derive(Debug)]
struct Module(CUmodule);

// SAFETY: a handle is the driver's and belongs to no thread; the driver locks what stands behind it.
unsafe impl Send for Module {}

// SAFETY: a context handle belongs to no thread: the driver API is thread-safe, and `enter` makes the context current on
// whichever thread calls. The other fields are `Send` and `Sync` themselves.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Starts the driver and retains the primary context of GPU `ordinal`.
    pub(super) fn open(ordinal: u32) -> Result<Self> {
        let late = Late::open().map_err(|error| Error::Unavailable {
            what: format!("the NVIDIA driver's library cannot be loaded ({error})"),
            hint: "install the NVIDIA driver, or choose the device \"cpu\"".to_owned(),
        })?;
        start()?;
        let device = find(ordinal)?;
        let mut version = 0;
        // SAFETY: `version` is a live place for the result.
        unsafe { call!(cuDriverGetVersion(&mut version)) }
            .map_err(|failure| failure.opening("ask for the driver's version"))?;
        let connections = env::cuda_connections()?.unwrap_or(DEFAULT_CONNECTIONS);
        let properties = properties(device, connections, &late)?;
        let shared_limit = properties.max_shared_bytes_per_block;
        let pools = attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0;

        let mut raw = std::ptr::null_mut();
        // SAFETY: `raw` is a live place for the result; `device` is one that the driver gave.
        unsafe { call!(cuDevicePrimaryCtxRetain(&mut raw, device)) }
            .map_err(|failure| failure.opening(&format!("open GPU {ordinal}")))?;
        let cuda = CudaVersion::from_driver(version);
        Ok(Self { device, raw, properties, cuda, shared_limit, pools, late, modules: Mutex::default() })
    }

    /// Makes the context current on the calling thread until the guard is dropped. A context that the program itself had
    /// made current comes back then.
    pub(super) fn enter(&self) -> Result<Current<'_>> {
        let make_current = |failure: Failure| failure.during("make the GPU's context current");
        let mut now = std::ptr::null_mut();
        // SAFETY: `now` is a live place for the result.
        unsafe { call!(cuCtxGetCurrent(&mut now)) }.map_err(make_current)?;
        let pushed = now != self.raw;
        if pushed {
            // SAFETY: the context is retained until `self` is dropped, and the guard borrows `self`.
            unsafe { call!(cuCtxPushCurrent_v2(self.raw)) }.map_err(make_current)?;
        }
        Ok(Current { pushed, context: PhantomData })
    }

    /// Makes the context current on the calling thread for good. Not pushed: whatever the thread calls later finds it.
    pub(super) fn bind_thread(&self) -> Result<()> {
        // SAFETY: the context is retained until `self` is dropped; the thread that is bound to a device keeps the device.
        unsafe { call!(cuCtxSetCurrent(self.raw)) }
            .map_err(|failure| failure.during("make the GPU the thread's own"))
    }

    /// Whether the context is current on the calling thread.
    pub(super) fn is_bound_to_thread(&self) -> Result<bool> {
        let mut now = std::ptr::null_mut();
        // SAFETY: `now` is a live place for the result.
        unsafe { call!(cuCtxGetCurrent(&mut now)) }
            .map_err(|failure| failure.during("ask for the thread's GPU"))?;
        Ok(now == self.raw)
    }

    /// The device's handle.
    pub(super) fn device(&self) -> CUdevice {
        self.device
    }

    /// The driver's handle of the context.
    pub(super) fn raw(&self) -> CUcontext {
        self.raw
    }

    /// An attribute of the device, by cuda.h's number for it, which may be newer than the bindings.
    pub(super) fn attribute(&self, number: c_int) -> Result<c_int, Failure> {
        let mut value = 0;
        // SAFETY: `value` is a live place for the result; the driver checks the number.
        unsafe { self.late.device_get_attribute(&mut value, number, self.device) }?;
        Ok(value)
    }

    /// Whether both are the same context of the driver.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.raw == other.raw
    }

    /// What the GPU is.
    pub(super) fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Its compute capability.
    pub(super) fn capability(&self) -> (u32, u32) {
        self.properties.compute_capability.unwrap_or_default()
    }

    /// The CUDA version of its driver.
    pub(super) fn cuda(&self) -> CudaVersion {
        self.cuda
    }

    /// The most shared memory of a block, static and dynamic together.
    pub(super) fn shared_limit(&self) -> u32 {
        self.shared_limit
    }

    /// Whether it has memory pools.
    pub(super) fn has_pools(&self) -> bool {
        self.pools
    }

    /// The late-bound functions.
    pub(super) fn late(&self) -> &Late {
        &self.late
    }

    /// Takes charge of a module: unloads it when the context goes.
    pub(super) fn keep_module(&self, module: CUmodule) {
        self.modules.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(Module(module));
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let modules = std::mem::take(self.modules.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()));
        if let Ok(current) = self.enter() {
            for Module(module) in modules {
                // SAFETY: every stream, graph and function holds the context, so nothing uses the module any more; it was
                // loaded in this context, which is current.
                let unloaded = unsafe { call!(cuModuleUnload(module)) };
                warn_on_failure("unload a module", unloaded);
            }
            drop(current);
        }
        // SAFETY: pairs with the retain in `open`; no guard can be alive, since each borrows `self`.
        let released = unsafe { call!(cuDevicePrimaryCtxRelease_v2(self.device)) };
        warn_on_failure("release the GPU's context", released);
    }
}

/// Proof that the context is current on this thread.
#[derive(Debug)]
pub(super) struct Current<'a> {
    pushed: bool,
    /// Borrows the context, and stays on its thread.
    context: PhantomData<(&'a Context, *const ())>,
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        if self.pushed {
            let mut popped = std::ptr::null_mut();
            // SAFETY: pairs with the push in `enter`, on the same thread, since the guard is not `Send`.
            let result = unsafe { call!(cuCtxPopCurrent_v2(&mut popped)) };
            warn_on_failure("leave the GPU's context", result);
        }
    }
}

/// Says what went wrong where no result can: in a destructor.
pub(super) fn warn_on_failure(operation: &str, result: std::result::Result<(), Failure>) {
    if let Err(failure) = result {
        tracing::warn!("{}", failure.during(operation));
    }
}

/// Lets the calling thread make calls that a capture elsewhere would forbid. The mode is the thread's own: no capture that
/// another thread has begun is changed by it.
pub(super) fn relax_capture() -> Result<()> {
    let mut mode = CaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: `mode` is a live place that holds the new mode and takes the old one, which is one of the `enum`'s: it has not
    // grown since CUDA 10.1.
    unsafe { call!(cuThreadExchangeStreamCaptureMode(&mut mode)) }
        .map_err(|failure| failure.during("relax the thread's stream-capture mode"))
}

/// Starts the driver.
pub(super) fn start() -> Result<()> {
    // SAFETY: cuInit may be called any number of times, from any thread; its flags have to be 0.
    unsafe { call!(cuInit(0)) }.map_err(|failure| failure.opening("start the CUDA driver"))
}

/// How many GPUs there are; at least one.
pub(super) fn present() -> Result<u32> {
    let mut present = 0;
    // SAFETY: `present` is a live place for the result.
    unsafe { call!(cuDeviceGetCount(&mut present)) }.map_err(|failure| failure.opening("count the GPUs"))?;
    match u32::try_from(present) {
        Ok(present) if present > 0 => Ok(present),
        _ => Err(Failure { function: "cuDeviceGetCount", code: 100 }.opening("find a GPU")),
    }
}

/// The GPU with this number.
pub(super) fn find(ordinal: u32) -> Result<CUdevice> {
    let present = present()?;
    let missing = || Error::NoSuchDevice { asked: ordinal, present };
    let number = i32::try_from(ordinal).ok().filter(|_| ordinal < present).ok_or_else(missing)?;
    let mut device = 0;
    // SAFETY: `device` is a live place for the result.
    unsafe { call!(cuDeviceGet(&mut device, number)) }
        .map_err(|failure| failure.opening(&format!("find GPU {ordinal}")))?;
    Ok(device)
}

fn properties(device: CUdevice, connections: u32, late: &Late) -> Result<Properties> {
    let number = |which| attribute(device, which).map(|value| u32::try_from(value).unwrap_or(0));
    let capability = (
        number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    Ok(Properties {
        name: name(device)?,
        kind: DeviceKind::Cuda,
        ordinal: u32::try_from(device).unwrap_or(0),
        uuid: uuid(device, late)?,
        pci: pci(device)?,
        compute_capability: Some(capability),
        multiprocessors: number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        max_threads_per_block: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        max_shared_bytes_per_block: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        max_blocks: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
        max_concurrent_streams: Some(concurrent_streams(connections)),
    })
}

/// How many streams are sure to run beside each other. In a hardware queue an item waits for what other streams have put
/// before it; streams take the queues in turn, and one is the device's own stream for copies. Measured on an H200, driver
/// 580, with two launches on each stream: 7 streams of 8 queues and 31 of 32 run at once, with one more all of them, and the
/// copy, wait for ever.
fn concurrent_streams(connections: u32) -> u32 {
    connections.saturating_sub(1).max(1)
}

fn attribute(device: CUdevice, which: Attribute) -> Result<i32> {
    let mut value = 0;
    // SAFETY: `value` is a live place for the result; `device` is one that the driver gave.
    unsafe { call!(cuDeviceGetAttribute(&mut value, which, device)) }
        .map_err(|failure| failure.opening("ask for the GPU's properties"))?;
    Ok(value)
}

/// A GPU's name.
pub(super) fn name(device: CUdevice) -> Result<String> {
    let mut text = [0u8; 256];
    // SAFETY: `text` is that long, and the driver writes a string with its zero into it, cut to that length.
    unsafe { call!(cuDeviceGetName(text.as_mut_ptr().cast(), 256, device)) }
        .map_err(|failure| failure.opening("ask for the GPU's name"))?;
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    Ok(String::from_utf8_lossy(&text[..end]).into_owned())
}

/// A GPU's own name. The second form of the function has a MIG instance's own, the first that of the whole GPU.
fn uuid(device: CUdevice, late: &Late) -> Result<DeviceUuid> {
    let mut bytes = [0u8; 16];
    // SAFETY: `bytes` is as long as a `CUuuid`; `device` is one that the driver gave.
    let newer = unsafe { late.device_get_uuid(bytes.as_mut_ptr(), device) };
    let asked = newer.or_else(|failure| match failure.code {
        // SAFETY: as above.
        NOT_SUPPORTED => unsafe { call!(cuDeviceGetUuid(bytes.as_mut_ptr().cast(), device)) },
        _ => Err(failure),
    });
    asked.map_err(|failure| failure.opening("ask for the GPU's UUID"))?;
    Ok(DeviceUuid::new(bytes))
}

/// Where a GPU is plugged in; none where the driver's text is no address.
fn pci(device: CUdevice) -> Result<Option<PciAddress>> {
    let mut text = [0u8; 32];
    // SAFETY: `text` is that long, and the driver writes a string with its zero into it.
    unsafe { call!(cuDeviceGetPCIBusId(text.as_mut_ptr().cast(), 32, device)) }
        .map_err(|failure| failure.opening("ask where the GPU is plugged in"))?;
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    Ok(PciAddress::parse(&String::from_utf8_lossy(&text[..end])))
}

#[cfg(test)]
mod tests {
    use super::concurrent_streams;

    #[test]
    fn one_queue_is_left_for_copies() {
        assert_eq!(concurrent_streams(32), 31);
        assert_eq!(concurrent_streams(8), 7);
        assert_eq!(concurrent_streams(1), 1);
    }
}
