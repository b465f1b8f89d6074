//! Conversions of buffers between element types, on a device.

use warpwire_device::abi::{ElementType, Global};
use warpwire_device::kernel::Kernel;
use warpwire_kernels::convert::{
    ConvertArgs, E4m3B15ExtendedToF16, E4m3B15ExtendedToF32, E4m3B15ToF16, E4m3B15ToF32, F16ToE4m3B15,
    F16ToE4m3B15Extended, F32ToE4m3B15, F32ToE4m3B15Extended, IN_FLIGHT,
};

use crate::device::{Device, LaunchConfig, Module, Stream};
use crate::error::{DataTypeError, Error, Result};

/// Threads of a block.
const THREADS: u32 = 256;
/// The most blocks: enough to fill any device, with several turns each for what is larger still.
const MAX_BLOCKS: u64 = 1 << 18;
/// Bytes of the wider side that a thread converts at once.
const VECTOR_BYTES: u64 = 16;

/// Elements of one type in a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elements {
    /// Where the first one lies: a multiple of the type's size. Of 16, it is fast.
    pub address: Global<u8>,
    /// Their type.
    pub element: ElementType,
}

/// The conversions that a device has: `f32` and `f16` to e4m3b15, in both ranges, and back.
#[derive(Clone, Debug)]
pub struct Converter {
    module: Module,
}

impl Converter {
    /// Loads the conversions on `device`.
    ///
    /// # Errors
    ///
    /// As [`Device::load`] and [`Module::function`].
    pub fn new(device: &Device) -> Result<Self> {
        let module = device.builtin()?;
        // The conversions are one part of the module, and any of them has it loaded: here, not beside kernels that run.
        module.function::<F32ToE4m3B15>()?;
        Ok(Self { module })
    }

    /// Queues the conversion of `count` elements.
    ///
    /// # Errors
    ///
    /// Before anything is queued: [`DataTypeError::NoConversion`] for a pair of types without a kernel,
    /// [`Error::Misaligned`] for an operand that is not aligned for its type, and as [`Stream::launch`].
    ///
    /// # Safety
    ///
    /// Until the conversion has ended: both operands are mapped to the stream's device and hold `count` elements, they do not
    /// overlap, nobody writes the source, and nobody else touches the destination.
    pub unsafe fn enqueue(&self, stream: &Stream, from: Elements, to: Elements, count: u64) -> Result<()> {
        use ElementType::{E4m3B15, E4m3B15Extended, F16, F32};
        for (what, operand) in [("source", from), ("destination", to)] {
            let (address, alignment) = (operand.address.address(), operand.element.bytes() as u64);
            if !address.is_multiple_of(alignment) {
                return Err(Error::Misaligned { what, address, alignment });
            }
        }
        let launch = match (from.element, to.element) {
            (F32, E4m3B15) => Self::launch::<F32ToE4m3B15>,
            (F32, E4m3B15Extended) => Self::launch::<F32ToE4m3B15Extended>,
            (F16, E4m3B15) => Self::launch::<F16ToE4m3B15>,
            (F16, E4m3B15Extended) => Self::launch::<F16ToE4m3B15Extended>,
            (E4m3B15, F32) => Self::launch::<E4m3B15ToF32>,
            (E4m3B15Extended, F32) => Self::launch::<E4m3B15ExtendedToF32>,
            (E4m3B15, F16) => Self::launch::<E4m3B15ToF16>,
            (E4m3B15Extended, F16) => Self::launch::<E4m3B15ExtendedToF16>,
            (from, to) => {
                let hint = if from.is_float() && to.is_float() {
                    "convert in a kernel of your own, by warpwire_device::types::Vector::convert"
                } else {
                    "integers do not convert"
                };
                return Err(DataTypeError::NoConversion { from, to, hint }.into());
            }
        };
        let args = ConvertArgs { from: from.address, to: to.address, count };
        let wider = from.element.bytes().max(to.element.bytes()) as u64;
        let turn = VECTOR_BYTES / wider * IN_FLIGHT as u64 * u64::from(THREADS);
        let blocks = count.div_ceil(turn).clamp(1, MAX_BLOCKS) as u32;
        // SAFETY: the caller's contract; the operands are aligned for their types.
        unsafe { launch(self, stream, LaunchConfig::new(blocks, THREADS), args) }
    }

    /// # Safety
    ///
    /// As for `K`'s launch.
    unsafe fn launch<K: Kernel<Args = ConvertArgs>>(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        args: ConvertArgs,
    ) -> Result<()> {
        // SAFETY: the caller's contract; the argument block has no padding.
        unsafe { stream.launch(&self.module.function::<K>()?, config, args) }
    }
}
