//! Variables with the project's prefix that nobody reads: a misspelt name would otherwise be passed over in silence.

use std::env;
use std::sync::Once;

const PREFIX: &str = "WARPWIRE_";

/// Every variable of the project, those of its build included.
const KNOWN: [&str; 24] = [
    super::CPU_THREADS,
    super::BOOTSTRAP_TIMEOUT,
    super::SOCKET_IFNAME,
    super::SOCKET_FAMILY,
    super::HOST_ID,
    super::place::RANK,
    super::place::WORLD_SIZE,
    super::place::ROOT,
    super::place::SECRET,
    "WARPWIRE_CHECK_PTX",
    "WARPWIRE_DISABLE_IB_TESTS",
    "WARPWIRE_FORCE_DISABLE_GDR",
    "WARPWIRE_HANDLE_TYPE",
    "WARPWIRE_HCA_DEVICES",
    "WARPWIRE_IBV_MODE",
    "WARPWIRE_IBV_SO",
    "WARPWIRE_IB_GID_INDEX",
    "WARPWIRE_PTXAS",
    "WARPWIRE_RDMA_TEST_HOST",
    "WARPWIRE_RDMA_TEST_LINK",
    "WARPWIRE_REQUIRE_GPU",
    "WARPWIRE_REQUIRE_PTX",
    "WARPWIRE_RUSTC",
    "WARPWIRE_TOOLS",
];

/// One warning for each unknown variable, the first time that any variable is read.
pub(super) fn warn_once() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for warning in warnings(env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned())) {
            tracing::warn!("{warning}");
        }
    });
}

fn warnings(names: impl Iterator<Item = String>) -> Vec<String> {
    names
        .filter(|name| name.starts_with(PREFIX) && !KNOWN.contains(&name.as_str()))
        .map(|name| {
            let nearest = KNOWN.iter().min_by_key(|known| strsim::damerau_levenshtein(known, &name));
            let nearest = nearest.map_or_else(String::new, |known| format!("; the nearest that is: {known}"));
            format!("the environment variable {name} is none that is read{nearest}")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_variable_gets_one_warning_with_the_nearest_name() {
        let names = ["PATH", "WARPWIRE_HOSTID", "WARPWIRE_HOST_ID", "WARPWIRE_SOCKET_IFNAMES"];
        let found = warnings(names.map(str::to_owned).into_iter());
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("WARPWIRE_HOSTID ") && found[0].ends_with("WARPWIRE_HOST_ID"), "{found:?}");
        assert!(found[1].ends_with("WARPWIRE_SOCKET_IFNAME"), "{found:?}");
    }
}
