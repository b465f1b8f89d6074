//! Unix sockets: abstract addresses, the peer's user, and descriptors.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect,
    listen, recvmsg, sendmsg, socket_with,
};

/// How many importers may wait to be accepted.
const BACKLOG: i32 = 128;

/// The abstract address of a service. It needs no folder that both ends share, leaves no file behind, and holds a random
/// number, so that processes with the same process id, in two containers, do not meet in one name.
fn address(service: &[u8; 16]) -> Result<SocketAddrUnix, Errno> {
    let name = service.iter().fold("warpwire-".to_owned(), |name, byte| name + &format!("{byte:02x}"));
    SocketAddrUnix::new_abstract_name(name.as_bytes())
}

/// A socket that importers connect to. It never blocks.
pub(super) fn serve(service: &[u8; 16]) -> Result<OwnedFd, Errno> {
    let socket = new(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    bind(&socket, &address(service)?)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// The next connection; `None` where nobody waits.
pub(super) fn accept(socket: BorrowedFd<'_>) -> Result<Option<OwnedFd>, Errno> {
    match accept_with(socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
        Ok(connection) => Ok(Some(connection)),
        // Nobody waits, or whoever did has given up.
        Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A connection to a service, on which nothing takes longer than `limit`.
pub(super) fn dial(service: &[u8; 16], limit: Duration) -> Result<OwnedFd, Errno> {
    let socket = new(SocketFlags::CLOEXEC)?;
    set_socket_timeout(&socket, Timeout::Send, Some(limit))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(limit))?;
    retry(|| connect(&socket, &address(service)?))?;
    Ok(socket)
}

fn new(flags: SocketFlags) -> Result<OwnedFd, Errno> {
    // Packets: a message comes whole or not at all, and a descriptor with its own.
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// The user that the other end runs as. Written by the kernel when the connection was made.
pub(super) fn peer_user(socket: BorrowedFd<'_>) -> Result<u32, Errno> {
    // Not through `rustix`, whose process id is never 0; a peer in another PID namespace has just that.
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and both pointers are to live values, the first of the length in the second.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &mut length,
        )
    };
    let whole = length as usize == size_of::<libc::ucred>();
    match result {
        0 if whole => Ok(credentials.uid),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}

/// Sends a message, with a descriptor or without.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    message: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<_> = descriptor.into_iter().collect();
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(Errno::NOBUFS);
    }
    // The other end may have gone: an error, not a signal.
    let sent = retry(|| sendmsg(socket, &[IoSlice::new(message)], &mut control, SendFlags::NOSIGNAL))?;
    if sent == message.len() { Ok(()) } else { Err(Errno::MSGSIZE) }
}

/// What came.
#[derive(Debug)]
pub(super) struct Received<const N: usize> {
    bytes: [u8; N],
    length: usize,
    pub(super) descriptor: Option<OwnedFd>,
    /// A descriptor was sent that this process has no room for.
    pub(super) no_room: bool,
}

impl<const N: usize> Received<N> {
    /// The message; empty where the other end has closed.
    pub(super) fn message(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Receives a message. One longer than `N` is cut to that, and so is none that is known.
pub(super) fn receive<const N: usize>(socket: BorrowedFd<'_>) -> Result<Received<N>, Errno> {
    let mut bytes = [0; N];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let result = retry(|| recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags))?;
    // Each descriptor that came is owned from here on; but for one they are closed.
    let mut descriptors = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten();
    let descriptor = descriptors.next();
    descriptors.for_each(drop);
    let no_room = result.flags.contains(ReturnFlags::CTRUNC) && descriptor.is_none();
    Ok(Received { bytes, length: result.bytes.min(N), descriptor, no_room })
}

/// Calls again where a signal interrupted.
fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}
