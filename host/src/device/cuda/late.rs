//! The driver's functions that `cust`'s bindings lack, that older drivers lack, or that take numbers which the bindings'
//! enums do not have: looked up when a device is opened.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

use cust::sys::{CUdevice, CUfunction, CUgraph, CUgraphExec, CUstream};
use libloading::Library;

use super::failure::Failure;
use super::sys::NOT_SUPPORTED;

/// The driver's library by its names, in the order tried.
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// `CUmemAllocationProp` of cuda.h.
#[derive(Debug)]
#[repr(C)]
pub(super) struct AllocationProperties {
    /// 1: pinned, the one there is.
    pub(super) allocation_type: c_int,
    /// A set of kinds of handle.
    pub(super) handle_types: c_int,
    /// 1: a device.
    pub(super) location_type: c_int,
    /// Which.
    pub(super) device: CUdevice,
    pub(super) win32: *mut c_void,
    pub(super) compression: u8,
    pub(super) gpu_direct_rdma: u8,
    pub(super) usage: u16,
    pub(super) reserved: [u8; 4],
}
const _: () = assert!(size_of::<AllocationProperties>() == 32);

/// `CUmulticastObjectProp` of cuda.h.
#[derive(Debug)]
#[repr(C)]
pub(super) struct MulticastProperties {
    pub(super) devices: c_uint,
    pub(super) bytes: usize,
    pub(super) handle_types: c_ulonglong,
    pub(super) flags: c_ulonglong,
}
const _: () = assert!(size_of::<MulticastProperties>() == 32);

/// `CUstreamBatchMemOpParams` of cuda.h, as what sets a 64-bit word.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub(super) struct WordWrite {
    /// [`WRITE_VALUE_64`].
    operation: c_int,
    address: u64,
    value: u64,
    /// 0: with a barrier of system scope before it.
    flags: c_uint,
    /// The driver's own.
    alias: u64,
    reserved: u64,
}
const _: () = assert!(size_of::<WordWrite>() == 48);

/// `CU_STREAM_MEM_OP_WRITE_VALUE_64`.
const WRITE_VALUE_64: c_int = 5;

macro_rules! late {
    ($($(#[$meta:meta])* $function:ident = $symbol:literal($($arg:ident: $t:ty),*);)*) => {
        /// The late-bound functions, and the library that holds them.
        #[derive(Debug)]
        pub(super) struct Late {
            $($function: Option<unsafe extern "C" fn($($t),*) -> c_int>,)*
            /// Keeps the pointers above valid.
            _library: Library,
        }

        impl Late {
            fn bind(library: Library) -> Self {
                // SAFETY: the types below are those of cuda.h; the pointers are kept no longer than the library.
                $(let $function = unsafe { library.get($symbol.as_bytes()) }.ok().map(|function| *function);)*
                Self { $($function,)* _library: library }
            }

            $(
                $(#[$meta])*
                ///
                /// A driver without it answers that it is not supported.
                ///
                /// # Safety
                ///
                /// As the driver's manual says of the function: pointers are live, handles too.
                pub(super) unsafe fn $function(&self, $($arg: $t),*) -> Result<(), Failure> {
                    let Some(function) = self.$function else {
                        return Err(Failure { function: $symbol, code: NOT_SUPPORTED });
                    };
                    // SAFETY: the caller's contract.
                    Failure::check($symbol, unsafe { function($($arg),*) })
                }
            )*
        }
    };
}

late! {
    /// Loads a function's code now instead of at its first launch. CUDA 12.4.
    func_load = "cuFuncLoad"(function: CUfunction);
    /// Makes a graph executable. `cuGraphInstantiate` has had three signatures; this one has had one. CUDA 11.4.
    graph_instantiate = "cuGraphInstantiateWithFlags"(executable: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong);
    /// A device's attribute, by cuda.h's number for it.
    device_get_attribute = "cuDeviceGetAttribute"(value: *mut c_int, attribute: c_int, device: CUdevice);
    /// A device's UUID, a MIG instance's own where it is one. CUDA 11.4.
    device_get_uuid = "cuDeviceGetUuid_v2"(uuid: *mut u8, device: CUdevice);
    /// Sets a 64-bit word from a stream. The form that needs no setting of the kernel module's. CUDA 11.7.
    stream_write_value = "cuStreamWriteValue64_v2"(stream: CUstream, address: u64, value: u64, flags: c_uint);
    /// Sets words from a stream, one after the other. CUDA 11.7.
    stream_write_values = "cuStreamBatchMemOp_v2"(
        stream: CUstream, count: c_uint, words: *mut WordWrite, flags: c_uint
    );
    /// Allocates physical memory.
    mem_create = "cuMemCreate"(handle: *mut u64, bytes: usize, properties: *const AllocationProperties, flags: c_ulonglong);
    /// What lengths of physical memory are multiples of. 0: at least, 1: best.
    mem_get_allocation_granularity = "cuMemGetAllocationGranularity"(
        granularity: *mut usize, properties: *const AllocationProperties, option: c_int
    );
    /// A DMA-BUF of device memory (kind 1). CUDA 11.7.
    mem_get_handle_for_address_range = "cuMemGetHandleForAddressRange"(
        handle: *mut c_void, address: u64, bytes: usize, kind: c_int, flags: c_ulonglong
    );
    /// Waits for the writes of third-party devices. CUDA 11.3.
    flush_gpu_direct_rdma_writes = "cuFlushGPUDirectRDMAWrites"(target: c_int, scope: c_int);
    /// Exports physical memory, or a multicast object.
    mem_export = "cuMemExportToShareableHandle"(shared: *mut c_void, handle: u64, kind: c_int, flags: c_ulonglong);
    /// Imports what was exported.
    mem_import = "cuMemImportFromShareableHandle"(handle: *mut u64, shared: *mut c_void, kind: c_int);
    /// Makes a multicast object. CUDA 12.1, like all of these.
    multicast_create = "cuMulticastCreate"(handle: *mut u64, properties: *const MulticastProperties);
    /// Adds a device to one.
    multicast_add_device = "cuMulticastAddDevice"(handle: u64, device: CUdevice);
    /// Binds physical memory to one.
    multicast_bind_mem = "cuMulticastBindMem"(
        object: u64, offset: usize, memory: u64, memory_offset: usize, bytes: usize, flags: c_ulonglong
    );
    /// Ends a binding.
    multicast_unbind = "cuMulticastUnbind"(object: u64, device: CUdevice, offset: usize, bytes: usize);
    /// What offsets and lengths in one are multiples of. 0: at least, 1: best.
    multicast_get_granularity = "cuMulticastGetGranularity"(
        granularity: *mut usize, properties: *const MulticastProperties, option: c_int
    );
}

impl Late {
    /// Opens the driver's library. The error is the loader's own text.
    pub(super) fn open() -> Result<Self, libloading::Error> {
        Self::library().map(Self::bind)
    }

    fn library() -> Result<Library, libloading::Error> {
        let mut first = None;
        for name in NAMES {
            // SAFETY: the driver's initialisers ask nothing of the program that loads it.
            match unsafe { Library::new(name) } {
                Ok(library) => return Ok(library),
                Err(error) => first = first.or(Some(error)),
            }
        }
        // `NAMES` is not empty, so there is a first error.
        Err(first.unwrap_or(libloading::Error::DlOpenUnknown))
    }

    /// Loads a function's code now instead of at its first launch, where the driver can; `Ok(false)` where it cannot.
    ///
    /// # Safety
    ///
    /// `function` is live and its context current.
    pub(super) unsafe fn load_function(&self, function: CUfunction) -> Result<bool, Failure> {
        // SAFETY: the caller's contract.
        match unsafe { self.func_load(function) } {
            Err(Failure { code: NOT_SUPPORTED, .. }) => Ok(false),
            result => result.map(|()| true),
        }
    }

    /// Sets two words from a stream, each an address and a value, the first before the second: in one call, or in two where the
    /// driver takes no batches.
    ///
    /// # Safety
    ///
    /// `stream` is live and its context current; the words are aligned, reached by the device, and live until the stream has
    /// passed this.
    pub(super) unsafe fn write_words(&self, stream: CUstream, words: [(u64, u64); 2]) -> Result<(), Failure> {
        // 0, the default: a barrier of system scope stands between what was queued before and each write.
        let flags = 0;
        let mut batch = words.map(|(address, value)| WordWrite {
            operation: WRITE_VALUE_64,
            address,
            value,
            flags,
            alias: 0,
            reserved: 0,
        });
        // SAFETY: the caller's contract; the driver reads the list, which is that long, before it returns.
        match unsafe { self.stream_write_values(stream, 2, batch.as_mut_ptr(), 0) } {
            Err(Failure { code: NOT_SUPPORTED, .. }) => words.into_iter().try_for_each(|(address, value)| {
                // SAFETY: the caller's contract.
                unsafe { self.stream_write_value(stream, address, value, flags) }
            }),
            queued => queued,
        }
    }

    /// Makes a graph executable.
    ///
    /// # Safety
    ///
    /// `graph` is live and its context current.
    pub(super) unsafe fn instantiate(&self, graph: CUgraph) -> Result<CUgraphExec, Failure> {
        let mut executable = std::ptr::null_mut();
        if self.graph_instantiate.is_some() {
            // SAFETY: `executable` is a live place for the result; the caller's contract.
            unsafe { self.graph_instantiate(&mut executable, graph, 0) }?;
        } else {
            let (node, log) = (std::ptr::null_mut(), std::ptr::null_mut());
            // SAFETY: as above; the error node and the log are optional.
            unsafe { super::sys::call!(cuGraphInstantiate_v2(&mut executable, graph, node, log, 0)) }?;
        }
        Ok(executable)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::{ptr, slice};

    use super::super::sys::INVALID_VALUE;
    use super::*;

    /// A call of the driver's.
    #[derive(Debug, PartialEq)]
    enum Called {
        Batch(Vec<WordWrite>, c_uint),
        Word(u64, u64, c_uint),
    }

    thread_local! {
        /// The calls so far, and what the next ones answer.
        static DRIVER: RefCell<(Vec<Called>, Vec<c_int>)> = const { RefCell::new((Vec::new(), Vec::new())) };
    }

    fn answer(call: Called) -> c_int {
        DRIVER.with_borrow_mut(|(calls, answers)| {
            calls.push(call);
            answers.remove(0)
        })
    }

    unsafe extern "C" fn batch(_: CUstream, count: c_uint, words: *mut WordWrite, flags: c_uint) -> c_int {
        // SAFETY: the driver's contract, which is what is tested: so many entries lie there.
        let words = unsafe { slice::from_raw_parts(words, count as usize) };
        answer(Called::Batch(words.to_vec(), flags))
    }

    unsafe extern "C" fn word(_: CUstream, address: u64, value: u64, flags: c_uint) -> c_int {
        answer(Called::Word(address, value, flags))
    }

    /// What a driver is asked for two words, and what comes of it, where it has these functions and gives these answers.
    fn asked(batches: bool, answers: &[c_int]) -> (Vec<Called>, Result<(), Failure>) {
        DRIVER.set((Vec::new(), answers.to_vec()));
        // This program has none of the functions, so that only the two are there.
        let mut late = Late::bind(libloading::os::unix::Library::this().into());
        late.stream_write_values = batches.then_some(batch);
        late.stream_write_value = Some(word);
        // SAFETY: the functions above touch neither the stream nor the words.
        let result = unsafe { late.write_words(ptr::null_mut(), [(8, 1), (16, 2)]) };
        let (calls, left) = DRIVER.take();
        assert!(left.is_empty(), "answers that nobody asked for: {left:?}");
        (calls, result)
    }

    /// The second word says that the first has been set: whoever sees it may look at the first.
    #[test]
    fn words_are_set_in_order_in_one_call() {
        let (calls, result) = asked(true, &[0]);
        assert_eq!(result, Ok(()));
        let set = |address, value| WordWrite {
            operation: WRITE_VALUE_64,
            address,
            value,
            flags: 0,
            alias: 0,
            reserved: 0,
        };
        assert_eq!(calls, [Called::Batch(vec![set(8, 1), set(16, 2)], 0)]);
    }

    #[test]
    fn where_there_are_no_batches_words_are_set_one_by_one() {
        let one_by_one = [Called::Word(8, 1, 0), Called::Word(16, 2, 0)];
        // A driver without the function, and one that has it and refuses.
        let (calls, result) = asked(false, &[0, 0]);
        assert_eq!((calls.as_slice(), result), (&one_by_one[..], Ok(())));
        let (calls, result) = asked(true, &[NOT_SUPPORTED, 0, 0]);
        assert_eq!((&calls[1..], result), (&one_by_one[..], Ok(())));
    }

    #[test]
    fn a_failure_is_told_and_nothing_is_set_behind_it() {
        let failure = |function, code| Err(Failure { function, code });
        let (calls, result) = asked(true, &[INVALID_VALUE]);
        assert_eq!((calls.len(), result), (1, failure("cuStreamBatchMemOp_v2", INVALID_VALUE)));
        // Where streams set no words at all, whoever asked has to know: a connection then copies them.
        for code in [INVALID_VALUE, NOT_SUPPORTED] {
            let (calls, result) = asked(false, &[code]);
            assert_eq!(calls, [Called::Word(8, 1, 0)]);
            assert_eq!(result, failure("cuStreamWriteValue64_v2", code));
        }
    }
}
