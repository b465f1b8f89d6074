//! What a port channel asks of the host's proxy, and how it is packed into triggers.
//!
//! A request whose offsets are below 4 GiB and whose length is below 2 GiB is one trigger:
//!
//! ```text
//! word 0    31..0  source offset         62..32  bytes
//! word 1    31..0  destination offset    40..32  source    49..41  destination    59..50  port    62..60  kind
//! ```
//!
//! Any other takes two, one behind the other: first the same layout with the kind 0 and what the fields lack (the offsets' upper
//! 32 bits, the length without its lower 31), then the trigger itself with the lower parts. Two neighbouring positions are
//! taken by one addition, so no other producer's trigger comes between them.

use bitflags::bitflags;

use super::Trigger;

/// Memories that one proxy can know.
pub const MAX_MEMORIES: u32 = 1 << MEMORY_BITS;
/// Port channels' ports that one proxy can have.
pub const MAX_PORTS: u32 = 1 << PORT_BITS;

const OFFSET_BITS: u32 = 32;
const BYTES_BITS: u32 = 31;
const MEMORY_BITS: u32 = 9;
const PORT_BITS: u32 = 10;

const SOURCE: u32 = OFFSET_BITS;
const DESTINATION: u32 = SOURCE + MEMORY_BITS;
const PORT: u32 = DESTINATION + MEMORY_BITS;
const KIND: u32 = PORT + PORT_BITS;

/// The longest length that a request can name: more than any address space holds, so that whoever asks for more is refused
/// by the host rather than cut short.
const LONGEST: u64 = (1 << (BYTES_BITS + BYTES_BITS)) - 1;

macro_rules! id {
    ($(#[$meta:meta])* $Id:ident below $MAX:ident) => {
        $(#[$meta])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $Id(u32);

        impl $Id {
            #[doc = concat!("The id with this number; `None` from [`", stringify!($MAX), "`] on.")]
            #[must_use]
            pub const fn new(number: u32) -> Option<Self> {
                if number < $MAX { Some(Self(number)) } else { None }
            }

            /// The number.
            #[inline(always)]
            #[must_use]
            pub const fn number(self) -> u32 {
                self.0
            }
        }
    };
}

id! {
    /// A memory's number in its proxy's table.
    MemoryId below MAX_MEMORIES
}

id! {
    /// A port's number in its proxy's table: a connection, and the semaphore at its other end. Several channels may go through
    /// one port.
    PortId below MAX_PORTS
}

bitflags! {
    /// What is asked for. Of several, in this order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct RequestKind: u32 {
        /// Move the bytes.
        const DATA = 1;
        /// Signal the peer's semaphore behind everything asked of the port before.
        const SIGNAL = 2;
        /// Say when everything asked of the port so far is complete.
        const FLUSH = 4;
    }
}

/// What a port channel asks of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What; never empty.
    pub kind: RequestKind,
    /// Of which port.
    pub port: PortId,
    /// Where the data go: a memory of the peer's.
    pub destination: MemoryId,
    /// In bytes from the memory's beginning.
    pub destination_offset: u64,
    /// Where the data come from: a memory of this rank's.
    pub source: MemoryId,
    /// In bytes from the memory's beginning.
    pub source_offset: u64,
    /// Bytes to move.
    pub bytes: u64,
}

impl Request {
    /// A request without data.
    #[inline(always)]
    #[must_use]
    pub const fn without_data(kind: RequestKind, port: PortId) -> Self {
        let (memory, offset) = (MemoryId(0), 0);
        Self {
            kind,
            port,
            destination: memory,
            destination_offset: offset,
            source: memory,
            source_offset: offset,
            bytes: 0,
        }
    }

    /// Whether it takes two triggers.
    #[inline(always)]
    #[must_use]
    pub const fn is_wide(&self) -> bool {
        (self.destination_offset | self.source_offset) >> OFFSET_BITS != 0 || self.bytes >> BYTES_BITS != 0
    }

    /// The trigger that goes ahead of a wide request's own: what its fields lack.
    #[inline(always)]
    #[must_use]
    pub const fn upper(&self) -> Trigger {
        let bytes = if self.bytes > LONGEST { LONGEST } else { self.bytes };
        let low = self.source_offset >> OFFSET_BITS | bytes >> BYTES_BITS << OFFSET_BITS;
        Trigger::new([low, self.destination_offset >> OFFSET_BITS | (self.port.0 as u64) << PORT])
    }

    /// The request's own trigger.
    #[inline(always)]
    #[must_use]
    pub const fn trigger(&self) -> Trigger {
        let offset = (1 << OFFSET_BITS) - 1;
        let bytes = if self.bytes > LONGEST { LONGEST } else { self.bytes };
        let ids = (self.source.0 as u64) << SOURCE
            | (self.destination.0 as u64) << DESTINATION
            | (self.port.0 as u64) << PORT;
        let low = self.source_offset & offset | (bytes & ((1 << BYTES_BITS) - 1)) << OFFSET_BITS;
        Trigger::new([low, self.destination_offset & offset | ids | (self.kind.bits() as u64) << KIND])
    }
}

/// Why triggers are no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The upper half of a wide request is followed by a trigger that does not go with it.
    Unpaired,
}

/// Puts requests together again, trigger by trigger.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestDecoder {
    upper: Option<[u64; 2]>,
}

impl RequestDecoder {
    /// Takes the next trigger; gives the request that it completes, if any.
    ///
    /// # Errors
    ///
    /// [`RequestError::Unpaired`]; the decoder is then as new.
    pub fn decode(&mut self, trigger: Trigger) -> Result<Option<Request>, RequestError> {
        let words = trigger.words();
        let field = |word: usize, from: u32, bits: u32| words[word] >> from & ((1 << bits) - 1);
        let id = |from, bits| field(1, from, bits) as u32;
        let (kind, port) = (RequestKind::from_bits_truncate(id(KIND, 3)), PortId(id(PORT, PORT_BITS)));
        let upper = self.upper.take();
        if kind.is_empty() {
            self.upper = Some(words);
            return if upper.is_none() { Ok(None) } else { Err(self.forget()) };
        }
        let [low, high] = upper.unwrap_or([0, u64::from(port.0) << PORT]);
        if high >> PORT != u64::from(port.0) || (upper.is_some() && !kind.contains(RequestKind::DATA)) {
            return Err(self.forget());
        }
        let offset =
            |upper: u64, word| (upper & u64::from(u32::MAX)) << OFFSET_BITS | field(word, 0, OFFSET_BITS);
        Ok(Some(Request {
            kind,
            port,
            destination: MemoryId(id(DESTINATION, MEMORY_BITS)),
            destination_offset: offset(high, 1),
            source: MemoryId(id(SOURCE, MEMORY_BITS)),
            source_offset: offset(low, 0),
            bytes: low >> OFFSET_BITS << BYTES_BITS | field(0, OFFSET_BITS, BYTES_BITS),
        }))
    }

    fn forget(&mut self) -> RequestError {
        self.upper = None;
        RequestError::Unpaired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [u64; 10] = [
        0,
        1,
        (1 << 31) - 1,
        1 << 31,
        (1 << 32) - 1,
        1 << 32,
        (1 << 32) + 16,
        (5 << 30) + 3,
        1 << 40,
        (1 << 57) - 1,
    ];

    fn request(destination_offset: u64, source_offset: u64, bytes: u64) -> Request {
        let id = |number| MemoryId::new(number).unwrap();
        let (kind, port) = (RequestKind::DATA | RequestKind::SIGNAL, PortId::new(MAX_PORTS - 1).unwrap());
        let (destination, source) = (id(MAX_MEMORIES - 1), id(MAX_MEMORIES - 2));
        Request { kind, port, destination, destination_offset, source, source_offset, bytes }
    }

    /// C09: no field of any size is cut.
    #[test]
    fn requests_come_back_whole() {
        for destination in SIZES {
            for source in SIZES {
                for bytes in SIZES {
                    let request = request(destination, source, bytes);
                    let mut decoder = RequestDecoder::default();
                    if request.is_wide() {
                        assert_eq!(decoder.decode(request.upper()), Ok(None));
                    }
                    assert_eq!(decoder.decode(request.trigger()), Ok(Some(request)));
                }
            }
        }
        assert!(!request((1 << 32) - 1, (1 << 32) - 1, (1 << 31) - 1).is_wide());
        for wide in [request(1 << 32, 0, 0), request(0, 1 << 32, 0), request(0, 0, 1 << 31)] {
            assert!(wide.is_wide());
        }
    }

    #[test]
    fn a_length_beyond_every_memory_stays_too_long() {
        for bytes in [1 << 62, u64::MAX] {
            let mut decoder = RequestDecoder::default();
            decoder.decode(request(0, 0, bytes).upper()).unwrap();
            let decoded = decoder.decode(request(0, 0, bytes).trigger()).unwrap().unwrap();
            assert_eq!(decoded.bytes, LONGEST);
        }
    }

    /// A field filled with ones, all others 0, decodes to just that.
    #[test]
    fn fields_do_not_overlap() {
        let nothing = Request::without_data(RequestKind::FLUSH, PortId(0));
        let all = |bits: u32| (1_u64 << bits) - 1;
        let each = [
            Request { port: PortId(MAX_PORTS - 1), ..nothing },
            Request { destination: MemoryId(MAX_MEMORIES - 1), ..nothing },
            Request { source: MemoryId(MAX_MEMORIES - 1), ..nothing },
            Request { destination_offset: all(OFFSET_BITS), ..nothing },
            Request { source_offset: all(OFFSET_BITS), ..nothing },
            Request { bytes: all(BYTES_BITS), ..nothing },
            Request { kind: RequestKind::all(), ..nothing },
        ];
        for request in each {
            assert_eq!(RequestDecoder::default().decode(request.trigger()), Ok(Some(request)));
        }
    }

    #[test]
    fn ids_beyond_their_field_are_refused() {
        assert_eq!(MemoryId::new(MAX_MEMORIES - 1).map(MemoryId::number), Some(511));
        assert_eq!(PortId::new(MAX_PORTS - 1).map(PortId::number), Some(1023));
        assert_eq!((MemoryId::new(MAX_MEMORIES), PortId::new(MAX_PORTS)), (None, None));
        assert_eq!((MemoryId::new(u32::MAX), PortId::new(u32::MAX)), (None, None));
    }

    #[test]
    fn halves_that_do_not_go_together_are_refused() {
        let wide = request(1 << 40, 0, 8);
        let signal = Request::without_data(RequestKind::SIGNAL, wide.port).trigger();
        let other = Request { port: PortId(3), ..wide }.trigger();
        for second in [wide.upper(), signal, other] {
            let mut decoder = RequestDecoder::default();
            assert_eq!(decoder.decode(wide.upper()), Ok(None));
            assert_eq!(decoder.decode(second), Err(RequestError::Unpaired));
            assert!(matches!(decoder.decode(signal), Ok(Some(_))), "the decoder begins anew");
        }
    }
}
