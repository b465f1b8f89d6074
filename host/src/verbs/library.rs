//! libibverbs, found at run time, so that a program with the feature `ib` starts on a machine that has none.
//!
//! The types and the inline functions come from the crate `ibverbs`. What posts and polls goes through the table of functions
//! that an open adapter carries; the functions below are for setting up and taking down.

use std::ffi::{c_char, c_int, c_uint};
use std::fmt;
use std::sync::OnceLock;

use ibverbs_sys as ffi;
use libloading::Library;

use crate::env;
use crate::error::{Error, Result, VerbsError};

/// The library's names, in the order tried: containers often have the first alone.
const NAMES: [&str; 2] = ["libibverbs.so.1", "libibverbs.so"];

macro_rules! functions {
    ($($function:ident = $symbol:literal($($arg:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions.
        pub(super) struct Verbs {
            $(pub(super) $function: unsafe extern "C" fn($($arg),*) $(-> $result)?,)*
            /// Keeps the pointers above valid.
            _library: Library,
        }

        impl Verbs {
            fn bind(name: &str, library: Library) -> Result<Self, Fault> {
                $(
                    // SAFETY: the type is the function's in libibverbs's `verbs.h`, and the pointer is kept no longer
                    // than the library.
                    let $function = match unsafe { library.get($symbol.as_bytes()) } {
                        Ok(function) => *function,
                        Err(_) => return Err(Fault::Symbol { library: name.to_owned(), symbol: $symbol }),
                    };
                )*
                Ok(Self { $($function,)* _library: library })
            }
        }
    };
}

functions! {
    get_device_list = "ibv_get_device_list"(*mut c_int) -> *mut *mut ffi::ibv_device;
    free_device_list = "ibv_free_device_list"(*mut *mut ffi::ibv_device);
    get_device_name = "ibv_get_device_name"(*mut ffi::ibv_device) -> *const c_char;
    open_device = "ibv_open_device"(*mut ffi::ibv_device) -> *mut ffi::ibv_context;
    close_device = "ibv_close_device"(*mut ffi::ibv_context) -> c_int;
    query_device = "ibv_query_device"(*mut ffi::ibv_context, *mut ffi::ibv_device_attr) -> c_int;
    query_port = "ibv_query_port"(*mut ffi::ibv_context, u8, *mut ffi::ibv_port_attr) -> c_int;
    query_gid = "_ibv_query_gid_ex"(*mut ffi::ibv_context, u32, u32, *mut ffi::ibv_gid_entry, u32, usize) -> c_int;
    alloc_pd = "ibv_alloc_pd"(*mut ffi::ibv_context) -> *mut ffi::ibv_pd;
    dealloc_pd = "ibv_dealloc_pd"(*mut ffi::ibv_pd) -> c_int;
    reg_mr = "ibv_reg_mr"(*mut ffi::ibv_pd, *mut std::ffi::c_void, usize, c_int) -> *mut ffi::ibv_mr;
    reg_dmabuf_mr = "ibv_reg_dmabuf_mr"(*mut ffi::ibv_pd, u64, usize, u64, c_int, c_int) -> *mut ffi::ibv_mr;
    dereg_mr = "ibv_dereg_mr"(*mut ffi::ibv_mr) -> c_int;
    create_comp_channel = "ibv_create_comp_channel"(*mut ffi::ibv_context) -> *mut ffi::ibv_comp_channel;
    destroy_comp_channel = "ibv_destroy_comp_channel"(*mut ffi::ibv_comp_channel) -> c_int;
    create_cq = "ibv_create_cq"(*mut ffi::ibv_context, c_int, *mut std::ffi::c_void, *mut ffi::ibv_comp_channel, c_int) -> *mut ffi::ibv_cq;
    destroy_cq = "ibv_destroy_cq"(*mut ffi::ibv_cq) -> c_int;
    get_cq_event = "ibv_get_cq_event"(*mut ffi::ibv_comp_channel, *mut *mut ffi::ibv_cq, *mut *mut std::ffi::c_void) -> c_int;
    ack_cq_events = "ibv_ack_cq_events"(*mut ffi::ibv_cq, c_uint);
    get_async_event = "ibv_get_async_event"(*mut ffi::ibv_context, *mut ffi::ibv_async_event) -> c_int;
    ack_async_event = "ibv_ack_async_event"(*mut ffi::ibv_async_event);
    event_type_str = "ibv_event_type_str"(ffi::ibv_event_type) -> *const c_char;
    create_qp = "ibv_create_qp"(*mut ffi::ibv_pd, *mut ffi::ibv_qp_init_attr) -> *mut ffi::ibv_qp;
    modify_qp = "ibv_modify_qp"(*mut ffi::ibv_qp, *mut ffi::ibv_qp_attr, c_int) -> c_int;
    destroy_qp = "ibv_destroy_qp"(*mut ffi::ibv_qp) -> c_int;
    wc_status_str = "ibv_wc_status_str"(ffi::ibv_wc_status::Type) -> *const c_char;
}

impl fmt::Debug for Verbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verbs")
    }
}

/// Why there is none.
#[derive(Clone, Debug)]
enum Fault {
    Load(Vec<(String, String)>),
    Symbol { library: String, symbol: &'static str },
}

impl From<&Fault> for VerbsError {
    fn from(fault: &Fault) -> Self {
        match fault.clone() {
            Fault::Load(tried) => Self::NoLibrary { tried },
            Fault::Symbol { library, symbol } => Self::NoSymbol { library, symbol },
        }
    }
}

impl Verbs {
    /// The library, loaded when it is first asked for and never unloaded: providers keep threads and destructors in it.
    /// Where `WARPWIRE_IBV_SO` names one, that one and no other.
    pub(super) fn load() -> Result<&'static Self> {
        static LOADED: OnceLock<Result<Verbs, Fault>> = OnceLock::new();
        let named = env::verbs_library()?;
        let loaded = LOADED.get_or_init(|| match &named {
            Some(name) => Self::first_of(&[name]),
            None => Self::first_of(&NAMES),
        });
        loaded.as_ref().map_err(|fault| Error::Verbs(fault.into()))
    }

    fn first_of(names: &[&str]) -> Result<Self, Fault> {
        let mut tried = Vec::new();
        for name in names {
            // SAFETY: loading libibverbs runs its initialisers, which ask nothing of the program.
            match unsafe { Library::new(name) } {
                Ok(library) => return Self::bind(name, library),
                Err(error) => tried.push(((*name).to_owned(), error.to_string())),
            }
        }
        Err(Fault::Load(tried))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_named_and_no_other_is_taken() {
        let fault = Verbs::first_of(&["/nowhere/libibverbs.so.9"]).unwrap_err();
        let error = VerbsError::from(&fault);
        assert!(matches!(&error, VerbsError::NoLibrary { tried } if tried.len() == 1), "{error}");
        assert!(error.to_string().contains("/nowhere/libibverbs.so.9"), "{error}");
    }

    #[test]
    fn another_library_is_found_out() {
        let fault = Verbs::first_of(&["libc.so.6"]).unwrap_err();
        let error = VerbsError::from(&fault).to_string();
        assert!(error.contains("libc.so.6 has no function ibv_"), "{error}");
    }
}
