//! Where the ranks of a job meet.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Socket, Type};
use warpwire::abi::Rank;
use warpwire::bootstrap::{RootAddress, variables};

use super::error::LaunchError;

/// A port of the loopback interface and a secret, of one job.
pub struct Meeting {
    root: RootAddress,
    secret: String,
    /// Bound, and not listened on: the system gives the port to nobody who asks for any, and rank 0, who asks for this one
    /// and lets its address be used again (SO_REUSEADDR, as this socket does), can listen on it.
    _port: Socket,
}

impl Meeting {
    /// A free port, and a secret that nobody can guess.
    pub fn new() -> Result<Self, LaunchError> {
        let (port, address) = reserve().map_err(|source| LaunchError::System {
            what: "no port for the ranks to meet at".to_owned(),
            source,
        })?;
        let root = address.to_string().parse().map_err(|error: warpwire::Error| LaunchError::System {
            what: format!("the ranks cannot meet at {address}"),
            source: io::Error::other(error),
        })?;
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).map_err(|error| LaunchError::System {
            what: "no random numbers for the job's secret".to_owned(),
            source: io::Error::other(error.to_string()),
        })?;
        let secret = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { root, secret, _port: port })
    }

    /// What rank `rank` of `ranks` has to be told.
    pub fn variables(&self, rank: usize, ranks: usize) -> [(&'static str, String); 4] {
        variables(Rank(rank as u32), ranks, &self.root, &self.secret)
    }
}

fn reserve() -> io::Result<(Socket, SocketAddr)> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    let address = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use warpwire::bootstrap::{Bootstrap, TcpBootstrap, TcpOptions};

    use super::*;

    #[test]
    fn the_port_is_kept_for_rank_0() {
        let meeting = Meeting::new().unwrap();
        let join = |rank| {
            let (root, secret) = (meeting.root.clone(), meeting.secret.clone());
            thread::spawn(move || {
                TcpBootstrap::meet(&root, Rank(rank), 2, Some(&secret), TcpOptions::from_env().unwrap())
                    .and_then(|group| group.barrier())
            })
        };
        let ranks = [join(0), join(1)];
        for rank in ranks {
            rank.join().unwrap().unwrap();
        }
        let port = meeting.root.to_string().rsplit_once(':').unwrap().1.parse::<u16>().unwrap();
        for _ in 0..200 {
            let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            assert_ne!(other.local_addr().unwrap().port(), port);
        }
    }

    #[test]
    fn jobs_have_ports_and_secrets_of_their_own() {
        let (a, b) = (Meeting::new().unwrap(), Meeting::new().unwrap());
        assert_ne!(a.root, b.root);
        assert_ne!(a.secret, b.secret);
        let names = a.variables(1, 4).map(|(name, _)| name);
        assert_eq!(names, ["WARPWIRE_RANK", "WARPWIRE_WORLD_SIZE", "WARPWIRE_ROOT", "WARPWIRE_SECRET"]);
    }
}
