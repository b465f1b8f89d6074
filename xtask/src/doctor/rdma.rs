//! RDMA: the verbs library, adapters, their ports and addresses, and what building with them needs.

use super::table::Row;
use crate::{verbs_build, workspace};
use libloading::Library;
use std::fs;
use std::path::{Path, PathBuf};
use warpwire_build::{Silent, toolchain};

const ENABLES: &str = "channels between machines, through verbs";

/// Where the kernel describes its adapters.
const CLASS: &str = "/sys/class/infiniband";

/// An address that stands for an empty row of a port's table.
const EMPTY: &str = "0000:0000:0000:0000:0000:0000:0000:0000";

/// Every row.
pub fn rows() -> Vec<Row> {
    // SAFETY: loading libibverbs runs its initialisers, which expect nothing of the program that loads it.
    let library = match unsafe { Library::new("libibverbs.so.1") } {
        Ok(_) => Row::there("libibverbs", "libibverbs.so.1", ENABLES),
        Err(_) => Row::lacking(
            "libibverbs",
            "no libibverbs.so.1",
            ENABLES,
            "apt-get install libibverbs1 ibverbs-providers",
        ),
    };
    let mut rows = vec![library, building()];
    rows.extend(adapters(Path::new(CLASS)));
    rows
}

fn building() -> Row {
    const NAME: &str = "building with `ib`";
    let tools = toolchain::tools_folder(&workspace::root());
    match verbs_build::provide(&tools, false, &Silent) {
        Ok(_) => Row::there(NAME, "cmake, libclang, pkg-config, libibverbs's headers", ENABLES),
        Err(missing) => Row::lacking(NAME, "not all of it is here", ENABLES, format!("{missing:#}")),
    }
}

/// A row for each adapter, with its ports; or one that there is none.
fn adapters(class: &Path) -> Vec<Row> {
    let found: Vec<Row> = items(class)
        .iter()
        .map(|adapter| {
            let ports: Vec<String> =
                items(&adapter.join("ports")).iter().map(|port| describe(port)).collect();
            Row::there(name(adapter), ports.join("; "), ENABLES)
        })
        .collect();
    if !found.is_empty() {
        return found;
    }
    vec![Row::lacking(
        "adapter",
        format!("none in {CLASS}"),
        ENABLES,
        "an adapter; or rdma link add rxe0 type rxe netdev eth0 (as root, a kernel with rdma_rxe)",
    )]
}

/// `port 1: ACTIVE, Ethernet, 2.5 Gb/sec, GID 1 RoCE v2 …`.
fn describe(port: &Path) -> String {
    let text = |name: &str| line(&port.join(name)).unwrap_or_else(|| format!("{name} unknown"));
    // The kernel writes `4: ACTIVE`.
    let state = text("state").split_once(": ").map_or_else(|| text("state"), |(_, state)| state.to_owned());
    let rate = text("rate");
    let rate = rate.split_once(" (").map_or(rate.as_str(), |(rate, _)| rate);
    let mut words = vec![format!("port {}: {state}", name(port)), text("link_layer"), rate.to_owned()];
    for gid in items(&port.join("gids")) {
        let Some(address) = line(&gid).filter(|address| address != EMPTY) else { continue };
        let index = name(&gid);
        let kind =
            line(&port.join("gid_attrs/types").join(&index)).unwrap_or_else(|| "of unknown kind".into());
        words.push(format!("GID {index} {kind} {address}"));
    }
    words.join(", ")
}

fn line(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What lies in a folder: numbers by their size, names in their order.
fn items(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .map(|items| items.flatten().map(|item| item.path()).collect())
        .unwrap_or_default();
    found.sort_by_key(|path| (name(path).parse::<u32>().unwrap_or(u32::MAX), name(path)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adapters_are_listed_with_their_ports_and_addresses() {
        let class = std::env::temp_dir().join(format!("warpwire-doctor-{}", std::process::id()));
        let port = class.join("rxe0/ports/1");
        for folder in ["gids", "gid_attrs/types"] {
            fs::create_dir_all(port.join(folder)).unwrap();
        }
        for (name, text) in [
            ("state", "4: ACTIVE\n"),
            ("rate", "2.5 Gb/sec (1X SDR)\n"),
            ("link_layer", "Ethernet\n"),
            ("gids/0", "fe80:0000:0000:0000:5054:00ff:fe09:0001\n"),
            ("gids/1", "0000:0000:0000:0000:0000:ffff:0a09:0001\n"),
            ("gids/10", EMPTY),
            ("gid_attrs/types/1", "RoCE v2\n"),
        ] {
            fs::write(port.join(name), text).unwrap();
        }
        let expected = "port 1: ACTIVE, Ethernet, 2.5 Gb/sec, GID 0 of unknown kind \
                        fe80:0000:0000:0000:5054:00ff:fe09:0001, GID 1 RoCE v2 \
                        0000:0000:0000:0000:0000:ffff:0a09:0001";
        assert_eq!(adapters(&class), [Row::there("rxe0", expected, ENABLES)]);
        fs::remove_dir_all(&class).unwrap();
        assert!(!adapters(&class)[0].is_there());
    }
}
