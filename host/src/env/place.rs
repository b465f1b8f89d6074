//! Where a launcher says that this process stands in its job.

use std::env;

use super::known;
use super::value::{number, switch, text};
use crate::error::{BootstrapError, Result};

pub(super) const RANK: &str = "WARPWIRE_RANK";
pub(super) const WORLD_SIZE: &str = "WARPWIRE_WORLD_SIZE";
pub(super) const ROOT: &str = "WARPWIRE_ROOT";
pub(super) const SECRET: &str = "WARPWIRE_SECRET";

const MASTER_ADDR: &str = "MASTER_ADDR";
const MASTER_PORT: &str = "MASTER_PORT";
/// torchrun: whether it serves `MASTER_PORT` itself.
const AGENT_STORE: &str = "TORCHELASTIC_USE_AGENT_STORE";
/// torchrun: tells runs apart.
const RUN_ID: &str = "TORCHELASTIC_RUN_ID";

/// Rank and size, as each kind of launcher names them; the first of which one is set counts.
const LAUNCHERS: [[&str; 2]; 4] = [
    [RANK, WORLD_SIZE],
    ["RANK", "WORLD_SIZE"],
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
    ["PMI_RANK", "PMI_SIZE"],
];

/// What a launcher says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// This process's rank.
    pub(crate) rank: u32,
    /// How many there are.
    pub(crate) size: u32,
    /// Where rank 0 is, as text.
    pub(crate) root: String,
    /// What only this job's ranks know, as far as the launcher gave anything.
    pub(crate) secret: Option<String>,
}

/// This process's place.
///
/// # Errors
///
/// A variable that is missing or cannot be.
pub(crate) fn place() -> Result<Place> {
    known::warn_once();
    place_in(&|name| env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
}

/// The variables that say a place, as [`place`] reads them first.
pub(crate) fn place_variables(
    rank: u32,
    size: usize,
    root: String,
    secret: String,
) -> [(&'static str, String); 4] {
    [(RANK, rank.to_string()), (WORLD_SIZE, size.to_string()), (ROOT, root), (SECRET, secret)]
}

fn place_in(lookup: &dyn Fn(&str) -> Option<String>) -> Result<Place> {
    let set = |names: &&[&'static str; 2]| names.iter().any(|name| lookup(name).is_some());
    let [rank_name, size_name] = LAUNCHERS.iter().find(set).unwrap_or(&LAUNCHERS[0]);
    let required =
        |missing, needed| lookup(missing).ok_or(BootstrapError::MissingVariable { missing, needed });
    let pair = "WARPWIRE_RANK and WARPWIRE_WORLD_SIZE (or RANK and WORLD_SIZE)";
    let size = number(size_name, &required(size_name, pair)?, &(1..=u32::MAX))?;
    let rank = number(rank_name, &required(rank_name, pair)?, &(0..=size - 1))?;

    let root = match lookup(ROOT) {
        Some(root) => text(ROOT, &root, super::LONGEST_NAME)?,
        None => {
            let place = "WARPWIRE_ROOT (or MASTER_ADDR and MASTER_PORT)";
            let address = text(MASTER_ADDR, &required(MASTER_ADDR, place)?, super::LONGEST_NAME)?;
            let port = number(MASTER_PORT, &required(MASTER_PORT, place)?, &(1..=u16::MAX - 1))?;
            // torchrun's agent then listens on the port itself, so that rank 0 cannot.
            let taken = lookup(AGENT_STORE).map(|value| switch(AGENT_STORE, &value)).transpose()?;
            let port = if taken.unwrap_or(false) { port + 1 } else { port };
            let bare_ipv6 = address.contains(':') && !address.starts_with('[');
            if bare_ipv6 { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
        }
    };
    let secret = lookup(SECRET).map(|value| text(SECRET, &value, super::LONGEST_NAME)).transpose()?;
    Ok(Place { rank, size, root, secret: secret.or_else(|| lookup(RUN_ID)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Place> {
        place_in(&|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    const TORCHRUN: [(&str, &str); 4] =
        [("RANK", "1"), ("WORLD_SIZE", "4"), ("MASTER_ADDR", "node0"), ("MASTER_PORT", "29500")];

    #[test]
    fn launchers_are_understood() {
        let place = of(&TORCHRUN).unwrap();
        assert_eq!(place, Place { rank: 1, size: 4, root: "node0:29500".to_owned(), secret: None });

        let own = [("WARPWIRE_RANK", " 2 "), ("WARPWIRE_WORLD_SIZE", "3"), ("WARPWIRE_ROOT", "lo:[::1]:5")];
        let place = of(&[&own[..], &TORCHRUN[..]].concat()).unwrap();
        assert_eq!((place.rank, place.size, place.root.as_str()), (2, 3, "lo:[::1]:5"));

        let mpi = [("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")];
        let place = of(&[&mpi[..], &[("MASTER_ADDR", "::1"), ("MASTER_PORT", "7")]].concat()).unwrap();
        assert_eq!((place.rank, place.size, place.root.as_str()), (0, 2, "[::1]:7"));
    }

    #[test]
    fn what_is_said_is_what_is_read() {
        let said = place_variables(2, 3, "127.0.0.1:29500".to_owned(), "of this job".to_owned());
        let said: Vec<(&str, &str)> = said.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let (root, secret) = ("127.0.0.1:29500".to_owned(), Some("of this job".to_owned()));
        assert_eq!(
            of(&[&said[..], &TORCHRUN[..]].concat()).unwrap(),
            Place { rank: 2, size: 3, root, secret }
        );
    }

    #[test]
    fn a_port_that_the_launcher_serves_is_passed_over() {
        let agent = [(AGENT_STORE, "True"), (RUN_ID, "job-7")];
        let place = of(&[&agent[..], &TORCHRUN[..]].concat()).unwrap();
        assert_eq!((place.root.as_str(), place.secret.as_deref()), ("node0:29501", Some("job-7")));
        assert!(of(&[&[(AGENT_STORE, "2x")], &TORCHRUN[..]].concat()).is_err());
    }

    #[test]
    fn what_is_missing_or_cannot_be_is_named() {
        let cases: [(&[(&str, &str)], &str); 6] = [
            (&[], "WARPWIRE_WORLD_SIZE is not set"),
            (&[("RANK", "0")], "WORLD_SIZE is not set"),
            (&[("RANK", "0"), ("WORLD_SIZE", "0")], "variable WORLD_SIZE is \"0\""),
            (&[("RANK", "4"), ("WORLD_SIZE", "4")], "a number from 0 to 3"),
            (&[("RANK", "0"), ("WORLD_SIZE", "1")], "MASTER_ADDR is not set"),
            (
                &[("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "a"), ("MASTER_PORT", "70000")],
                "MASTER_PORT is \"70000\"",
            ),
        ];
        for (variables, part) in cases {
            let error = of(variables).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
