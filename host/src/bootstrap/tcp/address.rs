//! Where rank 0 is, as people write it.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};
use std::str::FromStr;
use std::sync::mpsc;
use std::thread;

use crate::env::Family;
use crate::error::{BootstrapError, Error, Result};
use crate::net::Deadline;
use crate::net::interface::{Interface, InterfaceRule, choose, family_name, is_of, scope_of};

/// Where rank 0 listens: `ip:port`, `name:port` or `[ipv6]:port`, each of them also after `interface:`, which names the
/// interface that every rank uses on its own host. A link-local address has its interface in it: `[fe80::1%eth0]:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootAddress {
    interface: Option<String>,
    host: Host,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    V4(Ipv4Addr),
    V6(Ipv6Addr, Option<String>),
    Name(String),
}

impl FromStr for RootAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse(text.trim())
            .map_err(|reason| BootstrapError::InvalidAddress { text: text.to_owned(), reason }.into())
    }
}

fn parse(text: &str) -> Result<RootAddress, String> {
    let (rest, port) = text.rsplit_once(':').ok_or("there is no port in it")?;
    if rest.contains('[') != rest.contains(']') || port.contains(']') {
        return Err("there is no port behind the IPv6 address, or a bracket is missing".to_owned());
    }
    let port = match port.parse::<u16>() {
        Ok(0) | Err(_) => return Err(format!("its port is {port:?}, not a number from 1 to 65535")),
        Ok(port) => port,
    };
    let (interface, host) = if let Some(inner) = rest.strip_suffix(']') {
        let (before, inside) = inner.split_once('[').ok_or("a bracket is missing")?;
        let interface = match before {
            "" => None,
            _ => Some(before.strip_suffix(':').ok_or("something stands before the bracket")?),
        };
        (interface, parse_v6(inside)?)
    } else {
        let (interface, host) = match rest.split_once(':') {
            None => (None, rest),
            Some((_, host)) if host.contains(':') => {
                return Err("an IPv6 address belongs in brackets".to_owned());
            }
            Some((interface, host)) => (Some(interface), host),
        };
        (interface, parse_name(host)?)
    };
    if let Some(name) = interface
        && (name.is_empty() || name.contains([':', '[', ']', '/', ',']) || name.contains(char::is_whitespace))
    {
        return Err(format!("{name:?} names no interface"));
    }
    Ok(RootAddress { interface: interface.map(str::to_owned), host, port })
}

fn parse_v6(inside: &str) -> Result<Host, String> {
    let (ip, scope) = match inside.split_once('%') {
        None => (inside, None),
        Some((_, "")) => return Err("the scope behind % is missing".to_owned()),
        Some((ip, scope)) => (ip, Some(scope.to_owned())),
    };
    let ip = ip.parse().map_err(|_| format!("{ip:?} is no IPv6 address"))?;
    Ok(Host::V6(ip, scope))
}

fn parse_name(host: &str) -> Result<Host, String> {
    if let Ok(ip) = host.parse() {
        return Ok(Host::V4(ip));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if host.is_empty() || !host.chars().all(allowed) {
        return Err(format!("{host:?} is neither an IPv4 address nor a name"));
    }
    // What consists of numbers is a mistyped address, never a name.
    if host.split('.').all(|label| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err(format!("{host:?} is no IPv4 address"));
    }
    Ok(Host::Name(host.to_owned()))
}

impl fmt::Display for RootAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(interface) = &self.interface {
            write!(f, "{interface}:")?;
        }
        match &self.host {
            Host::V4(ip) => write!(f, "{ip}")?,
            Host::V6(ip, None) => write!(f, "[{ip}]")?,
            Host::V6(ip, Some(scope)) => write!(f, "[{ip}%{scope}]")?,
            Host::Name(name) => write!(f, "{name}")?,
        }
        write!(f, ":{}", self.port)
    }
}

impl RootAddress {
    /// The interface that every rank is to use, where the address names one.
    pub(super) fn rule(&self) -> Option<InterfaceRule> {
        self.interface.as_deref().map(InterfaceRule::only)
    }

    /// Where rank 0 listens. A name may stand for an address that only its own host knows, as many a hosts file has it, so
    /// for a name that is every address.
    pub(super) fn to_listen(&self, present: &[Interface], family: Option<Family>) -> Result<SocketAddr> {
        let address = match (&self.host, self.rule()) {
            (Host::Name(_), Some(rule)) => choose(present, Some(&rule), family, None)?.address(self.port),
            (Host::Name(_), None) => {
                // One socket for both families, unless only one is asked for or the host has no IPv6.
                let has_v6 = present.iter().any(|interface| interface.ip.is_ipv6());
                match family {
                    Some(Family::V4) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, self.port)),
                    None if !has_v6 => SocketAddr::from((Ipv4Addr::UNSPECIFIED, self.port)),
                    _ => SocketAddr::from((Ipv6Addr::UNSPECIFIED, self.port)),
                }
            }
            _ => self.literal(present)?,
        };
        if let Some(rule) = self.rule() {
            choose(present, Some(&rule), None, None)?;
        }
        self.checked(family, vec![address]).map(|_| address)
    }

    /// Where the others may reach rank 0: at least one address.
    pub(super) fn to_reach(
        &self,
        present: &[Interface],
        family: Option<Family>,
        deadline: Deadline,
    ) -> Result<Vec<SocketAddr>> {
        if let Some(rule) = self.rule() {
            choose(present, Some(&rule), None, None)?;
        }
        let addresses = match &self.host {
            Host::Name(name) => {
                look_up(name, self.port, deadline).map_err(|reason| self.unresolvable(family, reason))?
            }
            _ => vec![self.literal(present)?],
        };
        self.checked(family, addresses)
    }

    fn literal(&self, present: &[Interface]) -> Result<SocketAddr> {
        let (ip, scope) = match &self.host {
            Host::V4(ip) => return Ok(SocketAddr::new((*ip).into(), self.port)),
            Host::V6(ip, scope) => (*ip, scope.as_deref().or(self.interface.as_deref())),
            Host::Name(_) => (Ipv6Addr::UNSPECIFIED, None),
        };
        let scope = match scope {
            Some(scope) if ip.is_unicast_link_local() => scope_of(present, scope)?,
            _ => 0,
        };
        Ok(SocketAddrV6::new(ip, self.port, 0, scope).into())
    }

    fn checked(&self, family: Option<Family>, mut addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>> {
        addresses.retain(|address| is_of(family, address));
        if addresses.is_empty() {
            return Err(self.unresolvable(family, "it has none of that family".to_owned()));
        }
        Ok(addresses)
    }

    fn unresolvable(&self, family: Option<Family>, reason: String) -> Error {
        let host = match &self.host {
            Host::V4(ip) => ip.to_string(),
            Host::V6(ip, _) => ip.to_string(),
            Host::Name(name) => name.clone(),
        };
        BootstrapError::Unresolvable { host, family: family_name(family), reason }.into()
    }
}

/// Asks the system's resolver. It has no deadline of its own, so it is asked in a thread that may be left behind.
fn look_up(name: &str, port: u16, deadline: Deadline) -> Result<Vec<SocketAddr>, String> {
    let (sender, answer) = mpsc::channel();
    let host = name.to_owned();
    let ask = move || {
        let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        // Nobody hears an answer that comes after the deadline.
        _ = sender.send(found.map_err(|error| error.to_string()));
    };
    let spawned = thread::Builder::new().name("warpwire-resolver".to_owned()).spawn(ask);
    spawned.map_err(|error| format!("no thread could be started: {error}"))?;
    let left = deadline.left().unwrap_or_default();
    let silent = |_| Err(format!("the resolver did not answer within {left:?}"));
    answer.recv_timeout(left).unwrap_or_else(silent)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use proptest::prelude::*;

    fn present() -> Vec<Interface> {
        let interface = |name: &str, index, ip: &str| Interface {
            name: name.to_owned(),
            index,
            ip: ip.parse().unwrap(),
            prefix: 64,
        };
        vec![interface("lo", 1, "127.0.0.1"), interface("eth0", 2, "fe80::2"), interface("lo", 1, "::1")]
    }

    fn reach(text: &str) -> Result<Vec<SocketAddr>> {
        text.parse::<RootAddress>()?.to_reach(&present(), None, Deadline::after(Duration::from_secs(30)))
    }

    #[test]
    fn forms_are_understood() {
        for (text, address) in [
            ("127.0.0.1:5000", "127.0.0.1:5000"),
            ("lo:127.0.0.1:5000", "127.0.0.1:5000"),
            ("[::1]:5000", "[::1]:5000"),
            ("lo:[::1]:5000", "[::1]:5000"),
            ("[fe80::1%lo]:5000", "[fe80::1%1]:5000"),
            ("[fe80::1%7]:5000", "[fe80::1%7]:5000"),
            ("eth0:[fe80::1]:5000", "[fe80::1%2]:5000"),
        ] {
            let parsed: RootAddress = text.parse().unwrap();
            assert_eq!(parsed.to_string(), text);
            assert_eq!(reach(text).unwrap(), [address.parse().unwrap()], "{text}");
        }
        assert!(reach("localhost:5000").unwrap().iter().all(|address| address.ip().is_loopback()));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let bad = [
            "",
            ":",
            "127.0.0.1",
            "127.0.0.1:99999",
            "127.0.0.1:-1",
            "127.0.0.1:0",
            "127.0.0.1:",
            "[zz]:1",
            "[::1]",
            "::1:5000",
            "[fe80::1%nosuch]:1",
            "nosuch:127.0.0.1:1",
            ":127.0.0.1:1",
            "x[::1]:1",
            "[::1%]:1",
            "[::1:1",
            "::1]:1",
            "256.1.1.1:1",
            "1.2.3:1",
            "a b:1",
            "lo:lo:127.0.0.1:1",
        ];
        for text in bad {
            let error = reach(text).unwrap_err();
            let typed = matches!(
                error,
                Error::Bootstrap(BootstrapError::InvalidAddress { .. } | BootstrapError::NoInterface { .. })
            );
            assert!(typed, "{text:?}: {error}");
        }
    }

    #[test]
    fn a_name_is_listened_for_on_every_address() {
        let listen = |text: &str, family| {
            text.parse::<RootAddress>().unwrap().to_listen(&present(), family).unwrap().to_string()
        };
        assert_eq!(listen("node0:7", None), "[::]:7");
        assert_eq!(listen("node0:7", Some(Family::V4)), "0.0.0.0:7");
        assert_eq!(listen("lo:node0:7", None), "127.0.0.1:7");
        assert_eq!(listen("127.0.0.1:7", None), "127.0.0.1:7");
        let wrong: RootAddress = "127.0.0.1:7".parse().unwrap();
        let error = wrong.to_listen(&present(), Some(Family::V6)).unwrap_err().to_string();
        assert!(error.contains("no IPv6 address") && error.contains("127.0.0.1"), "{error}");
    }

    #[test]
    fn a_name_without_an_address_is_an_error() {
        let error = reach("no-such-host.invalid:5000").unwrap_err();
        assert!(error.to_string().contains("no-such-host.invalid"), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z0-9:.%\\[\\]]{0,30}|.{0,40}") {
            if let Ok(address) = text.parse::<RootAddress>() {
                prop_assert_eq!(address.to_string().parse::<RootAddress>().unwrap(), address);
            }
        }
    }
}
