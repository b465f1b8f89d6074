//! What one end tells the other.

use serde::{Deserialize, Serialize};

use crate::error::{Result, VerbsError};
use crate::verbs::Address;

/// Counts up with each change.
const VERSION: u16 = 1;

/// One end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Description {
    version: u16,
    /// Where its queue pair is.
    pub(super) address: Address,
    /// Its adapter, by which keys are found.
    pub(super) adapter: u64,
    /// Receives that it has posted.
    pub(super) receives: u32,
    /// The longest message that it takes.
    pub(super) max_message: u32,
    /// Its scratch page: see `scratch`.
    pub(super) scratch: (u64, u32),
}

impl Description {
    pub(super) fn new(
        address: Address,
        adapter: u64,
        receives: u32,
        max_message: u32,
        scratch: (u64, u32),
    ) -> Self {
        Self { version: VERSION, address, adapter, receives, max_message, scratch }
    }

    pub(super) fn seal(&self) -> Result<Vec<u8>> {
        let malformed = |error: postcard::Error| VerbsError::Endpoint { bytes: 0, reason: error.to_string() };
        Ok(postcard::to_stdvec(self).map_err(malformed)?)
    }

    /// A peer's. Bytes of the network's: every byte string is a value or an error.
    pub(super) fn open(bytes: &[u8]) -> Result<Self> {
        let malformed = |reason: String| VerbsError::Endpoint { bytes: bytes.len(), reason };
        // The version comes first: another one may mean something else by all that follows.
        match postcard::take_from_bytes::<u16>(bytes) {
            Ok((VERSION, _)) => {}
            Ok((other, _)) => {
                return Err(malformed(format!("it is of version {other}, and this rank of {VERSION}")).into());
            }
            Err(error) => return Err(malformed(error.to_string()).into()),
        }
        let (description, rest) =
            postcard::take_from_bytes::<Self>(bytes).map_err(|error| malformed(error.to_string()))?;
        let fault = if !rest.is_empty() {
            "there are more bytes than it needs"
        } else if description.address.number >> 24 != 0 || description.address.first_packet >> 24 != 0 {
            "a number has more than 24 bits"
        } else if !(1..=5).contains(&description.address.mtu) {
            "its packets have a size that there is not"
        } else if description.receives == 0 || description.max_message == 0 {
            "it takes nothing"
        } else {
            return Ok(description);
        };
        Err(malformed(fault.to_owned()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description() -> Description {
        let address =
            Address { number: 17, first_packet: 0xff_ffff, lid: 0, gid: [3; 16], mtu: 3, is_ethernet: true };
        Description::new(address, 0x5054_00ff_fe09_0001, 512, 1 << 23, (0x7000_0000_1000, 99))
    }

    #[test]
    fn it_reads_back() {
        let bytes = description().seal().unwrap();
        assert_eq!(Description::open(&bytes).unwrap(), description());
    }

    #[test]
    fn anything_else_is_an_error() {
        let bytes = description().seal().unwrap();
        for cut in 0..bytes.len() {
            Description::open(&bytes[..cut]).unwrap_err();
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(Description::open(&longer).unwrap_err().to_string().contains("more bytes"));
        let mut newer = bytes;
        newer[0] = 2;
        assert!(Description::open(&newer).unwrap_err().to_string().contains("version 2"));
        for (change, mark) in [
            (
                Box::new(|d: &mut Description| d.address.number = 1 << 24) as Box<dyn Fn(&mut Description)>,
                "24 bits",
            ),
            (Box::new(|d: &mut Description| d.address.mtu = 6), "size"),
            (Box::new(|d: &mut Description| d.receives = 0), "nothing"),
        ] {
            let mut wrong = description();
            change(&mut wrong);
            let error = Description::open(&wrong.seal().unwrap()).unwrap_err().to_string();
            assert!(error.contains(mark), "{error}");
        }
    }
}
