//! What a proxy's thread does before anything else, and in which order.

use super::affinity;
use crate::device::Device;
use crate::error::Result;

/// The steps, in the order of [`prepare_with`].
pub(super) trait Steps {
    /// Makes the device the thread's own.
    fn bind_device(&self) -> Result<()>;
    /// Moves the thread to the processors next to the device, where they are known.
    fn bind_processors(&self);
    /// Lets the thread make any call while a stream is captured.
    fn relax_capture(&self) -> Result<()>;
}

/// Sets the calling thread up for `device`.
pub(super) fn prepare(device: &Device) -> Result<()> {
    prepare_with(device)
}

fn prepare_with(steps: &impl Steps) -> Result<()> {
    // First of all: a CUDA call of a thread without a context makes one on GPU 0.
    steps.bind_device()?;
    steps.bind_processors();
    steps.relax_capture()
}

impl Steps for Device {
    fn bind_device(&self) -> Result<()> {
        self.driver().bind_thread()
    }

    fn bind_processors(&self) {
        if let Some(pci) = self.properties().pci {
            affinity::move_near(pci);
        }
    }

    fn relax_capture(&self) -> Result<()> {
        self.driver().relax_capture()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::device::DeviceSelector;
    use crate::error::Error;

    #[derive(Default)]
    struct Trace {
        steps: RefCell<Vec<&'static str>>,
        fails_at: &'static str,
    }

    impl Trace {
        fn step(&self, name: &'static str) -> Result<()> {
            self.steps.borrow_mut().push(name);
            if self.fails_at == name { Err(Error::CudaDisabled) } else { Ok(()) }
        }
    }

    impl Steps for Trace {
        fn bind_device(&self) -> Result<()> {
            self.step("device")
        }

        fn bind_processors(&self) {
            self.step("processors").unwrap();
        }

        fn relax_capture(&self) -> Result<()> {
            self.step("capture")
        }
    }

    #[test]
    fn the_device_comes_first() {
        let trace = Trace::default();
        prepare_with(&trace).unwrap();
        assert_eq!(*trace.steps.borrow(), ["device", "processors", "capture"]);
    }

    #[test]
    fn nothing_is_called_without_the_device() {
        let trace = Trace { fails_at: "device", ..Trace::default() };
        assert!(prepare_with(&trace).is_err());
        assert_eq!(*trace.steps.borrow(), ["device"]);
    }

    #[test]
    fn the_cpu_device_needs_nothing() {
        prepare(&Device::open(DeviceSelector::Cpu).unwrap()).unwrap();
    }
}
