//! Coming together: the root gathers, the others check in.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use warpwire_device::abi::Rank;

use super::super::group::Group;
use super::super::topology::Place;
use super::super::transport::Transport;
use super::MAX_WORLD;
use super::address::RootAddress;
use super::commands::Command;
use super::message::{self, PAYLOAD_LIMIT};
use super::options::TcpOptions;
use super::payload::{Claim, Member, Purpose, Roster, SetupFailure};
use super::service::{Beginning, Gather, start};
use super::shared::{Job, Shared};
use super::transport::TcpTransport;
use super::unique_id::UniqueId;
use crate::env::Family;
use crate::error::{BootstrapError, Departure, Error, Result};
use crate::net::dial::{DialFault, Established, ReadFault, dial, next_frame};
use crate::net::frame::{Fault, check_version};
use crate::net::interface::{Interface, InterfaceRule, choose, interfaces, system};
use crate::net::payload::{encode, open_value};
use crate::net::secret::Secret;
use crate::net::{self, Deadline, Endpoint};

/// A rank waits this much longer for the root's word than the root waits for ranks: so that what ends its wait is the root,
/// which knows who is missing.
const WORD_OF_ROOT: Duration = Duration::from_secs(1);

/// Joins processes to a job.
///
/// By a [`UniqueId`]: rank 0 makes a [`TcpRoot`] and hands its id to the others, who [`connect`](Self::connect). By a
/// [`RootAddress`] that all know beforehand: everybody calls [`meet`](Self::meet).
#[derive(Debug)]
pub struct TcpBootstrap;

impl TcpBootstrap {
    /// Joins, as a rank other than 0, the job of that id. Returns once every rank is there.
    ///
    /// # Errors
    ///
    /// A size or rank that cannot be; [`BootstrapError`]: the root cannot be reached, turns this rank away, or says why the
    /// job cannot start.
    pub fn connect(id: &UniqueId, rank: Rank, size: usize, options: TcpOptions) -> Result<Group> {
        check(rank, size)?;
        let deadline = Deadline::after(options.timeout);
        let present = interfaces()?;
        let root = id.root();
        // The interface's number in the id is of the root's host; here the rule, if any, names the way.
        let scope = match (&options.interfaces, root.ip) {
            (Some(rule), IpAddr::V6(ip)) if ip.is_unicast_link_local() => {
                choose(&present, Some(rule), Some(Family::V6), None)?.index
            }
            _ => root.scope,
        };
        check_in(&[root.seen_from(scope)], id.secret(), rank, size, &options, &present, deadline)
    }

    /// Joins the job whose rank 0 is at `root`: as rank 0 listens there, as another goes there. Returns once every rank is
    /// there. `secret` is a text that only the job's ranks know; without one, whoever reaches the address can join.
    ///
    /// # Errors
    ///
    /// As for [`connect`](Self::connect); for rank 0 also that it cannot listen there.
    pub fn meet(
        root: &RootAddress,
        rank: Rank,
        size: usize,
        secret: Option<&str>,
        mut options: TcpOptions,
    ) -> Result<Group> {
        check(rank, size)?;
        let deadline = Deadline::after(options.timeout);
        let present = interfaces()?;
        if let Some(rule) = root.rule() {
            options.interfaces = Some(rule);
        }
        let secret = Secret::from_text(secret);
        if rank == Rank(0) {
            let address = root.to_listen(&present, options.family)?;
            return TcpRoot { listener: listen(address)?, secret, options }.gather(size, deadline);
        }
        let addresses = root.to_reach(&present, options.family, deadline)?;
        check_in(&addresses, secret, rank, size, &options, &present, deadline)
    }
}

/// Rank 0 before its job has started: it listens, and has the id that the others need.
#[derive(Debug)]
pub struct TcpRoot {
    listener: TcpListener,
    secret: Secret,
    options: TcpOptions,
}

impl TcpRoot {
    /// Listens at a free port of the interface that the options name, or else of one that other hosts reach, where there is
    /// one.
    ///
    /// # Errors
    ///
    /// No such interface; no port to listen on.
    pub fn bind(options: TcpOptions) -> Result<Self> {
        let present = interfaces()?;
        let chosen = choose(&present, options.interfaces.as_ref(), options.family, None)?;
        Ok(Self { listener: listen(chosen.address(0))?, secret: Secret::random()?, options })
    }

    /// What the others need to [`connect`](TcpBootstrap::connect).
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn id(&self) -> Result<UniqueId> {
        Ok(UniqueId::new(self.endpoint()?, &self.secret))
    }

    /// Becomes rank 0 of a job of `size` ranks. Returns once every rank is there.
    ///
    /// # Errors
    ///
    /// A size that cannot be; [`BootstrapError`]: some ranks did not come in time, or one came that cannot be of the job.
    /// The ranks that have come get the same error.
    pub fn join(self, size: usize) -> Result<Group> {
        check(Rank(0), size)?;
        let deadline = Deadline::after(self.options.timeout);
        self.gather(size, deadline)
    }

    fn endpoint(&self) -> Result<Endpoint> {
        self.listener.local_addr().map(Endpoint::from).map_err(system("asking where the root listens"))
    }

    fn gather(self, size: usize, deadline: Deadline) -> Result<Group> {
        let Place { host, domain } = self.options.place;
        let member = Member { host, domain, endpoint: self.endpoint()? };
        let shared = Shared::new(Rank(0), size, self.options.limits)?;
        let beginning = Beginning {
            listener: self.listener,
            secret: self.secret,
            session: Secret::random()?,
            gather: Some(Gather::new(size, member)),
            to_root: None,
        };
        let service = start(Arc::clone(&shared), beginning)?;
        let transport = TcpTransport::new(shared, self.options.timeout, service);
        let outcome = transport.shared().wait_for_setup(deadline).unwrap_or_else(|| {
            let waited = deadline.given();
            transport.shared().commands.push(Command::GiveUp { waited });
            // The service answers at once, and answers too where it has ended.
            let answer = transport.shared().wait_for_setup(Deadline::after(WORD_OF_ROOT));
            answer.unwrap_or_else(|| {
                Err(SetupFailure::Lost { rank: 0, detail: "its service thread does not answer".to_owned() })
            })
        });
        outcome.map_err(BootstrapError::from)?;
        Ok(group(transport))
    }
}

/// The group of a job that has started.
fn group(transport: TcpTransport) -> Group {
    let rank = transport.shared().rank;
    let members = transport.shared().job.get().map_or(&[][..], |job| &job.members);
    let places = members.iter().map(|member| Place { host: member.host, domain: member.domain }).collect();
    let transport: Arc<dyn Transport> = Arc::new(transport);
    Group::world(transport, rank, places)
}

fn check(rank: Rank, size: usize) -> Result<()> {
    if !(1..=MAX_WORLD).contains(&size) {
        return Err(Error::RankCount { ranks: size, least: 1, most: MAX_WORLD });
    }
    if rank.0 as usize >= size {
        return Err(Error::NoSuchRank { rank, ranks: size });
    }
    Ok(())
}

/// Goes to the root, waits until everybody is there, and starts.
fn check_in(
    root: &[SocketAddr],
    secret: Secret,
    rank: Rank,
    size: usize,
    options: &TcpOptions,
    present: &[Interface],
    deadline: Deadline,
) -> Result<Group> {
    let mut listener = None;
    let mut claim = |stream: &TcpStream| {
        let local = stream.local_addr().map_err(system("asking for this rank's own address"))?;
        let address = own_address(local, options.interfaces.as_ref(), present)?;
        let own = match listener.take() {
            // Of an attempt that came to nothing, on the same address.
            Some((at, own)) if at == address.ip() => own,
            _ => listen(address)?,
        };
        let endpoint = own.local_addr().map_err(system("asking where this rank listens"))?.into();
        listener = Some((address.ip(), own));
        let Place { host, domain } = options.place;
        let member = Member { host, domain, endpoint };
        Ok(encode(&Claim { rank: rank.0, size: size as u32, purpose: Purpose::CheckIn(member) }))
    };
    let dialled = dial(root, &secret, &mut claim, deadline, &|| false);
    let mut connection = dialled.map_err(|fault| unreached(fault, root, deadline))?;
    connection.reader.set_limit(PAYLOAD_LIMIT);
    let (connection, roster) = wait_for_roster(connection, size, deadline.extended(WORD_OF_ROOT))?;
    let (_, listener) = listener.ok_or_else(|| {
        let reason = "it let this rank in before it knew who it is".to_owned();
        Error::from(BootstrapError::Stranger { address: connection.address, reason })
    })?;
    let scope = match connection.stream.local_addr() {
        Ok(SocketAddr::V6(local)) => local.scope_id(),
        _ => 0,
    };
    let session = Secret::from_bytes(roster.session);
    let shared = Shared::new(rank, size, options.limits)?;
    // Set once, here alone.
    _ = shared.job.set(Job { session: session.clone(), members: roster.members, scope });
    shared.complete_setup();
    let beginning =
        Beginning { listener, secret: session.clone(), session, gather: None, to_root: Some(connection) };
    let service = start(Arc::clone(&shared), beginning)?;
    Ok(group(TcpTransport::new(shared, options.timeout, service)))
}

/// The address that a rank listens on: of the interface that the rule names, else the one by which it reached the root.
fn own_address(
    mut local: SocketAddr,
    rule: Option<&InterfaceRule>,
    present: &[Interface],
) -> Result<SocketAddr> {
    let Some(rule) = rule else {
        local.set_port(0);
        return Ok(local);
    };
    let family = if local.is_ipv4() { Family::V4 } else { Family::V6 };
    choose(present, Some(rule), Some(family), Some(local.ip())).map(|chosen| chosen.address(0))
}

/// Waits for the root to say that everybody is there, and where.
fn wait_for_roster(
    mut connection: Established,
    size: usize,
    deadline: Deadline,
) -> Result<(Established, Roster)> {
    const OPERATION: &str = "check-in";
    let (rank, world) = (Rank(0), Rank(0));
    let address = connection.address;
    let frame =
        next_frame(&connection.stream, &mut connection.reader, deadline).map_err(|fault| match fault {
            ReadFault::Frame(fault) => stranger(address, &fault),
            ReadFault::Late => {
                BootstrapError::Timeout { operation: OPERATION, rank, world, waited: deadline.given() }.into()
            }
            ReadFault::Io(error) => {
                let (departure, detail) = (Departure::Lost, error.to_string());
                Error::from(BootstrapError::PeerLost { operation: OPERATION, rank, world, departure, detail })
            }
        })?;
    check_version(frame.header()).map_err(|fault| stranger(address, &fault))?;
    match frame.kind {
        message::ROSTER => {
            let roster: Roster = open_value(&frame).map_err(|fault| stranger(address, &fault))?;
            if roster.members.len() != size {
                return Err(stranger(address, &Fault::Payload(message::ROSTER)));
            }
            Ok((connection, roster))
        }
        message::FAILED => {
            let failure: SetupFailure = open_value(&frame).map_err(|fault| stranger(address, &fault))?;
            Err(BootstrapError::from(failure).into())
        }
        other => Err(stranger(address, &Fault::Payload(other))),
    }
}

fn stranger(address: SocketAddr, fault: &Fault) -> Error {
    BootstrapError::Stranger { address, reason: fault.to_string() }.into()
}

fn unreached(fault: DialFault, root: &[SocketAddr], deadline: Deadline) -> Error {
    let error = match fault {
        DialFault::Refused { address, refusal } => BootstrapError::Refused { address, refusal },
        DialFault::Stranger { address, reason } => BootstrapError::Stranger { address, reason },
        DialFault::Other(error) => return error,
        DialFault::Late { attempts, last } => {
            let address = root.first().copied().unwrap_or_else(|| SocketAddr::from(([0; 4], 0)));
            BootstrapError::RootUnreachable { address, waited: deadline.given(), attempts, last }
        }
        DialFault::Stopped => BootstrapError::Aborted { operation: "check-in" },
    };
    error.into()
}

/// Listens at the address.
fn listen(address: SocketAddr) -> Result<TcpListener> {
    net::listen(address).map_err(|source| {
        let hint = match source.kind() {
            ErrorKind::AddrInUse => "another process has this port: choose another, or end that process",
            ErrorKind::AddrNotAvailable => {
                "no interface of this machine has this address: rank 0 has to run where its address is"
            }
            ErrorKind::PermissionDenied => "ports below 1024 are the system's: choose a higher one",
            _ => "check the address and the port",
        };
        BootstrapError::Listen { address, source, hint }.into()
    })
}
