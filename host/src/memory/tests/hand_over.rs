//! Hand-overs by and to those who do not play along.

use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::geteuid;

use super::mock::Record;
use crate::device::HandleKinds;
use crate::error::{Error, ErrorKind, MemoryError};
use crate::memory::claim::Claim;
use crate::memory::handle::Ticket;
use crate::memory::message::{Operation, REPLY_BYTES, Request, Status};
use crate::memory::service::Service;
use crate::memory::{HandleChoice, Shareable, identity, socket};

const LONG: Duration = Duration::from_secs(20);

fn export() -> (Shareable, Ticket) {
    let record = Record::new(HandleKinds::POSIX_FD, HandleKinds::all());
    let buffer = record.device().allocate_shareable::<u8>(1).unwrap();
    let shareable = Shareable::of(&buffer, HandleChoice::Auto).unwrap();
    let ticket = shareable.handle().part().origin.ticket;
    (shareable, ticket)
}

/// Waits until a connection is ready, then takes it.
fn accept(listener: &OwnedFd) -> OwnedFd {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < LONG, "nobody connects");
        poll(&mut [PollFd::new(listener, PollFlags::IN)], None).unwrap();
        if let Some(connection) = socket::accept(listener.as_fd()).unwrap() {
            return connection;
        }
    }
}

/// What a service says to `message`.
fn answer(service: &[u8; 16], message: &[u8]) -> Option<Status> {
    let connection = socket::dial(service, LONG).unwrap();
    // The service may have closed already.
    let _ = socket::send(connection.as_fd(), message, None);
    let received = socket::receive::<REPLY_BYTES>(connection.as_fd()).ok()?;
    assert!(received.descriptor.is_none(), "a descriptor for nothing");
    Status::unpack(received.message())
}

#[test]
fn without_the_token_there_is_nothing() {
    let (_shareable, ticket) = export();
    assert!(Claim::new(ticket).unwrap().descriptor().is_ok());
    let good = Request { operation: Operation::Descriptor, export: ticket.export, token: ticket.token };
    for bit in [0, 100, 255] {
        let mut token = ticket.token;
        token[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(answer(&ticket.service, &Request { token, ..good }.pack()), Some(Status::WrongToken));
        let error = Claim::new(Ticket { token, ..ticket }).unwrap_err();
        assert!(matches!(error, Error::Memory(MemoryError::HandOverRefused { .. })), "{error}");
        assert_eq!(error.kind(), ErrorKind::Refused);
    }
    let gone = Request { export: u64::MAX, ..good };
    assert_eq!(answer(&ticket.service, &gone.pack()), Some(Status::NoExport));
    // Requests cut short, too long, and none at all.
    assert_eq!(answer(&ticket.service, &good.pack()[..47]), Some(Status::NoRequest));
    assert_eq!(answer(&ticket.service, &[0xFF; 4000]), Some(Status::NoRequest));
    assert_eq!(answer(&ticket.service, b"GET / HTTP/1.1"), Some(Status::NoRequest));
    // The service still serves.
    assert!(Claim::new(ticket).unwrap().descriptor().is_ok());
}

#[test]
fn another_user_is_refused_before_a_word() {
    let (_shareable, ticket) = export();
    // To this service, every process of this user's is another user's.
    let service = Service::start(geteuid().as_raw() ^ 1).unwrap();
    for _ in 0..1000 {
        let error = Claim::new(Ticket { service: service.name(), ..ticket }).unwrap_err();
        assert!(matches!(error, Error::Memory(MemoryError::HandOverRefused { .. })), "{error}");
        assert!(error.to_string().contains("another user"), "{error}");
    }
}

#[test]
fn services_of_one_process_id_have_different_names() {
    let (_shareable, ticket) = export();
    let user = geteuid().as_raw();
    let services = [Service::start(user).unwrap(), Service::start(user).unwrap()];
    for service in &services {
        let ticket = Ticket { service: service.name(), ..ticket };
        assert!(Claim::new(ticket).unwrap().descriptor().is_ok());
    }
    let names = services.each_ref().map(Service::name);
    assert_ne!(names[0], names[1]);
    drop(services);
    for service in names {
        let error = Claim::new(Ticket { service, ..ticket }).unwrap_err();
        assert!(matches!(error, Error::Memory(MemoryError::ExporterGone { .. })), "{error}");
    }
}

#[test]
fn an_exporter_that_dies_during_the_hand_over_is_an_error() {
    let ticket = Ticket { service: identity::random().unwrap(), export: 0, token: [0; 32] };
    let listener = socket::serve(&ticket.service).unwrap();
    let deaths = thread::spawn(move || {
        // Before the request is read, after it, and with half an answer.
        drop(accept(&listener));
        let connection = accept(&listener);
        poll(&mut [PollFd::new(&connection, PollFlags::IN)], None).unwrap();
        let _ = socket::receive::<64>(connection.as_fd()).unwrap();
        drop(connection);
        let connection = accept(&listener);
        socket::send(connection.as_fd(), b"WWRP", None).unwrap();
    });
    for _ in 0..2 {
        let error = Claim::new(ticket).unwrap_err();
        assert!(matches!(error, Error::Memory(MemoryError::ExporterGone { .. })), "{error}");
    }
    let error = Claim::new(ticket).unwrap_err();
    assert!(matches!(error, Error::Memory(MemoryError::HandOverRefused { .. })), "{error}");
    deaths.join().unwrap();
}

#[test]
fn an_exporter_that_stands_still_is_an_error_after_the_limit() {
    let ticket = Ticket { service: identity::random().unwrap(), export: 0, token: [0; 32] };
    let _listener = socket::serve(&ticket.service).unwrap();
    let error = Claim::within(ticket, Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, Error::Memory(MemoryError::HandOverTimeout { .. })), "{error}");
    assert_eq!(error.kind(), ErrorKind::Timeout);
}

#[test]
fn idle_connections_keep_nobody_waiting() {
    let (_shareable, ticket) = export();
    let idle: Vec<_> = (0..50).map(|_| socket::dial(&ticket.service, LONG).unwrap()).collect();
    assert!(Claim::new(ticket).unwrap().descriptor().is_ok());
    drop(idle);
}
