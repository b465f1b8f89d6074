//! The environment: its variables, all read here, and the machine's identity.

mod known;
mod machine;
#[cfg(feature = "ib")]
pub(crate) mod numa;
mod place;
mod value;

use std::env;
use std::time::Duration;

use crate::error::{Error, HandleKind, Result};

pub use machine::HostId;
pub(crate) use place::{Place, place, place_variables};
#[cfg(feature = "ib")]
use value::switch;
use value::{number, text};

/// How many GPU threads the CPU devices of this process hold at once, all together.
const CPU_THREADS: &str = "WARPWIRE_CPU_THREADS";
/// Seconds that a step of the bootstrap may take.
const BOOTSTRAP_TIMEOUT: &str = "WARPWIRE_BOOTSTRAP_TIMEOUT";
/// The network interfaces that ranks listen on.
pub(crate) const SOCKET_IFNAME: &str = "WARPWIRE_SOCKET_IFNAME";
/// IPv4 or IPv6.
const SOCKET_FAMILY: &str = "WARPWIRE_SOCKET_FAMILY";
/// A name for this host: ranks with one name count as on one host, whatever machines they run on.
const HOST_ID: &str = "WARPWIRE_HOST_ID";
/// The kind of handle that memory is shared by.
const HANDLE_TYPE: &str = "WARPWIRE_HANDLE_TYPE";
/// Which library libibverbs is.
#[cfg(feature = "ib")]
const IBV_SO: &str = "WARPWIRE_IBV_SO";
/// The RDMA adapters, by GPU.
#[cfg(feature = "ib")]
const HCA_DEVICES: &str = "WARPWIRE_HCA_DEVICES";
/// The row of a port's table of GIDs.
#[cfg(feature = "ib")]
const IB_GID_INDEX: &str = "WARPWIRE_IB_GID_INDEX";
/// How InfiniBand connections signal.
#[cfg(feature = "ib")]
const IBV_MODE: &str = "WARPWIRE_IBV_MODE";
/// Whether GPU memory is never mapped for the host.
#[cfg(feature = "ib")]
const FORCE_DISABLE_GDR: &str = "WARPWIRE_FORCE_DISABLE_GDR";
/// CUDA's own: how many hardware queues its streams are spread over.
#[cfg(feature = "cuda")]
const CUDA_CONNECTIONS: &str = "CUDA_DEVICE_MAX_CONNECTIONS";

/// The longest that a name may be.
const LONGEST_NAME: usize = 256;
/// The longest that a path, or a list of names, may be.
#[cfg(feature = "ib")]
const LONGEST_PATH: usize = 4096;
const DAY_SECONDS: u32 = 86_400;

/// `WARPWIRE_CPU_THREADS`, where it is set: 1,024 to `most`.
pub(crate) fn cpu_threads(most: u32) -> Result<Option<u32>> {
    read(CPU_THREADS, |name, value| number(name, value, &(1024..=most)))
}

/// `WARPWIRE_BOOTSTRAP_TIMEOUT`, where it is set: a second to a day.
pub(crate) fn bootstrap_timeout() -> Result<Option<Duration>> {
    let seconds = read(BOOTSTRAP_TIMEOUT, |name, value| number(name, value, &(1..=DAY_SECONDS)))?;
    Ok(seconds.map(|seconds| Duration::from_secs(seconds.into())))
}

/// `WARPWIRE_SOCKET_IFNAME`, where it is set.
pub(crate) fn socket_interfaces() -> Result<Option<String>> {
    read(SOCKET_IFNAME, |name, value| text(name, value, LONGEST_NAME))
}

/// A family of network addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// `WARPWIRE_SOCKET_FAMILY`, where it is set.
pub(crate) fn socket_family() -> Result<Option<Family>> {
    read(SOCKET_FAMILY, family)
}

fn family(name: &'static str, value: &str) -> Result<Family> {
    match value.trim().to_ascii_lowercase().as_str() {
        "4" | "ipv4" | "af_inet" => Ok(Family::V4),
        "6" | "ipv6" | "af_inet6" => Ok(Family::V6),
        _ => Err(Error::InvalidVariable {
            name,
            value: value.to_owned(),
            expected: "\"IPv4\" or \"IPv6\"".to_owned(),
        }),
    }
}

/// Which host this is: `WARPWIRE_HOST_ID` where it is set, else what the machine says of itself.
pub(crate) fn host_id() -> Result<HostId> {
    match read(HOST_ID, |name, value| text(name, value, LONGEST_NAME))? {
        Some(name) => Ok(HostId::named(&name)),
        None => HostId::of_this_machine(),
    }
}

/// `WARPWIRE_HANDLE_TYPE`, where it names a kind; `auto` is as if it were not set.
pub(crate) fn handle_type() -> Result<Option<HandleKind>> {
    read(HANDLE_TYPE, kind_of_handle).map(Option::flatten)
}

fn kind_of_handle(name: &'static str, value: &str) -> Result<Option<HandleKind>> {
    let text = value.trim();
    match HandleKind::from_name(text) {
        None if text != "auto" => Err(Error::InvalidVariable {
            name,
            value: value.to_owned(),
            expected: "\"auto\", \"fabric\", \"fd\" or \"ipc\"".to_owned(),
        }),
        kind => Ok(kind),
    }
}

/// `WARPWIRE_IBV_SO`, where it is set: a name or a path for the loader.
#[cfg(feature = "ib")]
pub(crate) fn verbs_library() -> Result<Option<String>> {
    read(IBV_SO, |name, value| text(name, value, LONGEST_PATH))
}

/// `WARPWIRE_HCA_DEVICES`, where it is set: names separated by commas.
#[cfg(feature = "ib")]
pub(crate) fn hca_devices() -> Result<Option<String>> {
    read(HCA_DEVICES, |name, value| text(name, value, LONGEST_PATH))
}

/// `WARPWIRE_IB_GID_INDEX`, where it is set: a table has at most 256 rows.
#[cfg(feature = "ib")]
pub(crate) fn gid_index() -> Result<Option<u32>> {
    read(IB_GID_INDEX, |name, value| number(name, value, &(0..=255)))
}

/// `WARPWIRE_IBV_MODE`, where it is set: whether signals are atomics.
#[cfg(feature = "ib")]
pub(crate) fn verbs_atomics() -> Result<Option<bool>> {
    read(IBV_MODE, |name, value| match value.trim() {
        "host" => Ok(true),
        "host-no-atomic" => Ok(false),
        _ => Err(Error::InvalidVariable {
            name,
            value: value.to_owned(),
            expected: "\"host\" or \"host-no-atomic\"".to_owned(),
        }),
    })
}

/// `WARPWIRE_FORCE_DISABLE_GDR`: whether GPU memory is never mapped for the host.
#[cfg(feature = "ib")]
pub(crate) fn gdr_is_disabled() -> Result<bool> {
    Ok(read(FORCE_DISABLE_GDR, switch)?.unwrap_or(false))
}

/// `CUDA_DEVICE_MAX_CONNECTIONS`, where it is set: 1 to 32. A program that puts more than 7 ranks on one GPU sets it to 32
/// before its first CUDA call.
#[cfg(feature = "cuda")]
pub(crate) fn cuda_connections() -> Result<Option<u32>> {
    read(CUDA_CONNECTIONS, |name, value| number(name, value, &(1..=32)))
}

/// A variable's value, where it is set, as `parse` understands it.
fn read<T>(name: &'static str, parse: impl FnOnce(&'static str, &str) -> Result<T>) -> Result<Option<T>> {
    known::warn_once();
    let Some(value) = env::var_os(name) else { return Ok(None) };
    parse(name, &value.to_string_lossy()).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_several_names() {
        for (value, expected) in [("IPv4", Family::V4), (" 6 ", Family::V6), ("AF_INET6", Family::V6)] {
            assert_eq!(family("F", value).unwrap(), expected);
        }
        for bad in ["", "5", "ipv5"] {
            let error = family("F", bad).unwrap_err().to_string();
            assert!(error.contains("IPv4"), "{error}");
        }
    }
    #[test]
    fn kinds_of_handle_have_names() {
        assert_eq!(kind_of_handle("H", " auto ").unwrap(), None);
        for kind in HandleKind::ALL {
            assert_eq!(kind_of_handle("H", kind.name()).unwrap(), Some(kind));
        }
        let error = kind_of_handle("H", "socket").unwrap_err().to_string();
        assert!(error.contains("H is \"socket\"") && error.contains("\"fd\""), "{error}");
    }
}
