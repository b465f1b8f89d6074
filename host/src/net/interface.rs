//! This machine's network interfaces, and which of them to use.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::str::FromStr;

use crate::env::Family;
use crate::error::{BootstrapError, Error, Result};

/// An interface with one of its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    /// Its number on this host.
    pub(crate) index: u32,
    pub(crate) ip: IpAddr,
    /// How many of the address' leading bits name its network.
    pub(crate) prefix: u8,
}

impl Interface {
    /// Its address, to listen on.
    pub(crate) fn address(&self, port: u16) -> SocketAddr {
        match self.ip {
            IpAddr::V6(ip) if ip.is_unicast_link_local() => SocketAddrV6::new(ip, port, 0, self.index).into(),
            ip => SocketAddr::new(ip, port),
        }
    }

    fn holds(&self, near: IpAddr) -> bool {
        let same = |own: u128, other: u128, bits: u32| {
            let shift = bits.saturating_sub(u32::from(self.prefix));
            shift < bits && own >> shift == other >> shift
        };
        match (self.ip, near) {
            (IpAddr::V4(own), IpAddr::V4(near)) => same(own.to_bits().into(), near.to_bits().into(), 32),
            (IpAddr::V6(own), IpAddr::V6(near)) => same(own.to_bits(), near.to_bits(), 128),
            _ => false,
        }
    }

    fn is_link_local(&self) -> bool {
        matches!(self.ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
    }
}

/// The interfaces of this machine that have addresses, in the system's order.
pub(crate) fn interfaces() -> Result<Vec<Interface>> {
    let listed = if_addrs::get_if_addrs()
        .map_err(|source| Error::System { operation: "listing the network interfaces".to_owned(), source })?;
    let interface = |found: if_addrs::Interface| {
        let prefix = match &found.addr {
            if_addrs::IfAddr::V4(address) => address.prefixlen,
            if_addrs::IfAddr::V6(address) => address.prefixlen,
        };
        Interface { ip: found.ip(), index: found.index.unwrap_or(0), name: found.name, prefix }
    };
    Ok(listed.into_iter().map(interface).collect())
}

/// Which interfaces may be used: a list of names' beginnings with commas between them; after `=` of whole names; after `^`
/// of those not to be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InterfaceRule {
    leave_out: bool,
    whole: bool,
    names: Vec<String>,
}

impl InterfaceRule {
    /// The one interface of that name.
    pub(crate) fn only(name: &str) -> Self {
        Self { leave_out: false, whole: true, names: vec![name.to_owned()] }
    }

    /// The place in the list of the first entry that `name` fits.
    fn place(&self, name: &str) -> Option<usize> {
        let fits = |entry: &String| if self.whole { name == entry } else { name.starts_with(entry) };
        self.names.iter().position(fits)
    }
}

impl FromStr for InterfaceRule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = |reason: &str| {
            Error::from(BootstrapError::InvalidInterfaces {
                text: text.to_owned(),
                reason: reason.to_owned(),
            })
        };
        let rest = text.trim();
        let (leave_out, rest) = rest.strip_prefix('^').map_or((false, rest), |rest| (true, rest));
        let (whole, rest) = rest.strip_prefix('=').map_or((false, rest), |rest| (true, rest));
        let names: Vec<String> = rest.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            return Err(invalid("a name in it is empty"));
        }
        if names.iter().any(|name| name.contains(['^', '=', ':', '/']) || name.contains(char::is_whitespace))
        {
            return Err(invalid("a name in it has characters that no interface has"));
        }
        Ok(Self { leave_out, whole, names })
    }
}

impl fmt::Display for InterfaceRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match (self.leave_out, self.whole) {
            (true, _) => "other than ",
            (false, true) => "named ",
            (false, false) => "beginning with ",
        };
        write!(f, "{kind}{}", self.names.join(" or "))
    }
}

/// Interfaces of containers and virtual machines: ranks on other hosts do not reach them.
const VIRTUAL: [&str; 8] = ["docker", "veth", "virbr", "br-", "cni", "flannel", "podman", "lxc"];

/// The interface to use, of `present`.
///
/// The rule's order comes first. Then an interface in the network of `near`; then those of hardware before those of
/// containers and before the loopback; then addresses that need no scope, IPv4 where no family is asked for, and the
/// system's order.
pub(crate) fn choose<'a>(
    present: &'a [Interface],
    rule: Option<&InterfaceRule>,
    family: Option<Family>,
    near: Option<IpAddr>,
) -> Result<&'a Interface> {
    let of_family = |interface: &&Interface| match family {
        None => true,
        Some(Family::V4) => interface.ip.is_ipv4(),
        Some(Family::V6) => interface.ip.is_ipv6(),
    };
    let listed = |interface: &Interface| match rule {
        None => Some(0),
        Some(rule) if rule.leave_out => rule.place(&interface.name).is_none().then_some(0),
        Some(rule) => rule.place(&interface.name),
    };
    let rank = |interface: &&Interface| {
        let apart = near.is_none_or(|near| !interface.holds(near));
        let local = interface.is_link_local();
        Some((listed(interface)?, apart, class(interface), local, interface.ip.is_ipv6()))
    };
    let candidates = present.iter().filter(of_family).filter_map(|found| Some((rank(&found)?, found)));
    candidates
        .min_by_key(|(rank, _)| *rank)
        .map(|(_, found)| found)
        .ok_or_else(|| none(present, rule, family))
}

/// What nobody else reaches comes last.
fn class(interface: &Interface) -> u8 {
    match &interface.name {
        _ if interface.ip.is_loopback() => 3,
        name if VIRTUAL.iter().any(|virtual_name| name.starts_with(virtual_name)) => 2,
        _ if interface.is_link_local() => 1,
        _ => 0,
    }
}

fn none(present: &[Interface], rule: Option<&InterfaceRule>, family: Option<Family>) -> Error {
    let mut names: Vec<String> =
        present.iter().map(|interface| format!("{} ({})", interface.name, interface.ip)).collect();
    names.dedup();
    let asked = rule.map_or_else(|| "of any name".to_owned(), ToString::to_string);
    BootstrapError::NoInterface { asked, family: family_name(family), present: names }.into()
}

pub(crate) fn family_name(family: Option<Family>) -> &'static str {
    match family {
        None => "IP",
        Some(Family::V4) => "IPv4",
        Some(Family::V6) => "IPv6",
    }
}

/// Whether an address is of the family, where one is asked for.
pub(crate) fn is_of(family: Option<Family>, address: &SocketAddr) -> bool {
    family.is_none_or(|family| address.is_ipv4() == (family == Family::V4))
}

/// The number of the interface of that name or number.
pub(crate) fn scope_of(present: &[Interface], text: &str) -> Result<u32> {
    if let Ok(number) = text.parse::<u32>()
        && number > 0
    {
        return Ok(number);
    }
    let found = present.iter().find(|interface| interface.name == text);
    found
        .map(|interface| interface.index)
        .ok_or_else(|| none(present, Some(&InterfaceRule::only(text)), None))
}

/// Errors of sockets that say what was tried.
pub(crate) fn system(operation: &str) -> impl Fn(io::Error) -> Error + '_ {
    move |source| Error::System { operation: operation.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn present() -> Vec<Interface> {
        let interface = |name: &str, index, ip: &str, prefix| Interface {
            name: name.to_owned(),
            index,
            ip: ip.parse().unwrap(),
            prefix,
        };
        vec![
            interface("lo", 1, "127.0.0.1", 8),
            interface("docker0", 2, "172.17.0.1", 16),
            interface("veth1", 3, "fe80::1", 64),
            interface("eth0", 4, "10.0.0.5", 24),
            interface("ib0", 5, "10.1.0.5", 24),
            interface("lo", 1, "::1", 128),
            interface("ib0", 5, "fd00::5", 64),
        ]
    }

    fn chosen(rule: &str, family: Option<Family>, near: Option<&str>) -> Result<String> {
        let rule = (!rule.is_empty()).then(|| rule.parse().unwrap());
        let near = near.map(|near| near.parse().unwrap());
        choose(&present(), rule.as_ref(), family, near).map(|found| format!("{} {}", found.name, found.ip))
    }

    #[test]
    fn rules_choose() {
        let v6 = Some(Family::V6);
        let cases = [
            ("", None, None, "eth0 10.0.0.5"),
            ("^eth0", None, None, "ib0 10.1.0.5"),
            ("^=eth0,ib0", None, None, "docker0 172.17.0.1"),
            ("eth", None, None, "eth0 10.0.0.5"),
            ("=eth0", None, None, "eth0 10.0.0.5"),
            ("ib,eth", None, None, "ib0 10.1.0.5"),
            ("lo", None, None, "lo 127.0.0.1"),
            ("veth", None, None, "veth1 fe80::1"),
            ("", v6, None, "ib0 fd00::5"),
            ("lo", v6, None, "lo ::1"),
            ("", None, Some("10.0.0.9"), "eth0 10.0.0.5"),
            ("", None, Some("10.1.0.9"), "ib0 10.1.0.5"),
            ("", None, Some("192.168.0.1"), "eth0 10.0.0.5"),
            ("", None, Some("fd00::9"), "ib0 fd00::5"),
        ];
        for (rule, family, near, expected) in cases {
            assert_eq!(chosen(rule, family, near).unwrap(), expected, "{rule:?} {family:?} {near:?}");
        }
    }

    #[test]
    fn nothing_that_fits_is_an_error_with_what_there_is() {
        for (rule, family, parts) in [
            ("nosuch", None, ["nosuch", "eth0 (10.0.0.5)"]),
            ("=eth", None, ["named eth", "lo (127.0.0.1)"]),
            ("^lo,docker,veth,eth,ib", None, ["other than lo or docker", "IP address"]),
            ("eth0", Some(Family::V6), ["eth0", "an IPv6 address"]),
        ] {
            let error = chosen(rule, family, None).unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
        assert!(choose(&[], None, None, None).unwrap_err().to_string().contains("none that is up"));
    }

    #[test]
    fn rules_that_are_none_are_refused() {
        for bad in ["", "^", "=", "eth0,", ",", "eth0,^ib0", "eth 0", "eth0:1"] {
            let error = bad.parse::<InterfaceRule>().unwrap_err();
            assert!(matches!(error, Error::Bootstrap(BootstrapError::InvalidInterfaces { .. })), "{bad:?}");
        }
    }

    #[test]
    fn scopes_are_names_or_numbers() {
        assert_eq!(scope_of(&present(), "eth0").unwrap(), 4);
        assert_eq!(scope_of(&present(), "7").unwrap(), 7);
        assert!(scope_of(&present(), "nosuch").unwrap_err().to_string().contains("nosuch"));
        assert_eq!(present()[2].address(9).to_string(), "[fe80::1%3]:9");
    }
}
