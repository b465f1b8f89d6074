//! Wire forms: pinned bytes, and whatever else may come.

use proptest::prelude::*;

use crate::device::HandleKinds;
use crate::env::HostId;
use crate::error::{Error, ErrorKind, MemoryError};
use crate::memory::SharedHandle;
use crate::memory::handle::{Offer, Origin, Part, Ticket};
use crate::memory::wire::{self, Form};

fn part() -> Part {
    let ticket = Ticket { service: [0x11; 16], export: 300, token: [0x22; 32] };
    Part {
        origin: Origin {
            host: HostId::named("node0"),
            process: [0x33; 16],
            ticket,
            offers: vec![Offer::PosixFd],
        },
        allocation_bytes: 4096,
        offset: 256,
        bytes: 8,
    }
}

#[test]
fn a_handle_has_its_bytes() {
    let bytes = SharedHandle::new(part()).to_bytes().unwrap();
    let mut expected = b"WWMH\x02\x00\x01\x00\x69\x00\x00\x00".to_vec();
    let mut body = HostId::named("node0").as_bytes().to_vec();
    body.extend([0x33; 16]);
    body.extend([0x11; 16]);
    body.extend([0xAC, 0x02]); // 300, seven bits a byte
    body.extend([0x22; 32]);
    body.extend([0x01, 0x01]); // one offer, of number 1
    body.extend([0x80, 0x20, 0x80, 0x02, 0x08]); // 4096, 256, 8
    let mut checked = expected.clone();
    checked.extend(&body);
    expected.extend(crc32fast::hash(&checked).to_le_bytes());
    expected.extend(body);
    assert_eq!(bytes, expected);
    assert_eq!(expected.len(), 16 + 0x69);
}

#[test]
fn offers_are_numbered() {
    let bytes: [u8; 64] = std::array::from_fn(|i| i as u8);
    for (offer, number) in [(Offer::Fabric(bytes.into()), 0), (Offer::CudaIpc(bytes.into()), 2)] {
        let mut with = part();
        with.origin.offers = vec![offer];
        let message = SharedHandle::new(with.clone()).to_bytes().unwrap();
        let at = message.windows(64).position(|window| window == bytes).unwrap();
        assert_eq!(message[at - 1], number);
        assert_eq!(SharedHandle::from_bytes(&message).unwrap(), SharedHandle::new(with));
    }
}

fn error_of(bytes: &[u8]) -> MemoryError {
    match SharedHandle::from_bytes(bytes).unwrap_err() {
        Error::Memory(error) => error,
        error => panic!("{error}"),
    }
}

#[test]
fn another_version_and_another_form_are_told_apart() {
    let good = SharedHandle::new(part()).to_bytes().unwrap();
    let mut other = good.clone();
    other[4] = 9;
    assert!(matches!(error_of(&other), MemoryError::HandleVersion { found: 9, known: wire::VERSION }));
    let multicast = wire::seal(Form::Multicast, &part()).unwrap();
    let error = error_of(&multicast).to_string();
    assert!(error.contains("another kind of message"), "{error}");
    let error = error_of(b"").to_string();
    assert!(error.contains("0 bytes") && error.contains("too few"), "{error}");
}

#[test]
fn what_cannot_be_is_no_handle() {
    let mut bad: Vec<(Part, &str)> = Vec::new();
    let mut with = |change: &dyn Fn(&mut Part), reason| {
        let mut part = part();
        change(&mut part);
        bad.push((part, reason));
    };
    with(&|part| part.bytes = 0, "length");
    with(&|part| part.bytes = u64::MAX, "length");
    with(&|part| part.offset = 4089, "past the end");
    with(&|part| part.offset = u64::MAX, "past the end");
    with(&|part| part.origin.offers = vec![Offer::PosixFd, Offer::PosixFd], "order");
    with(&|part| part.origin.offers = vec![Offer::PosixFd, Offer::Fabric([0; 64].into())], "order");
    for (part, reason) in bad {
        let message = wire::seal(Form::Memory, &part).unwrap();
        let error = error_of(&message).to_string();
        assert!(error.contains(reason), "{error}");
    }
}

proptest! {
    #[test]
    fn handles_read_back(
        name in "[!-~]{1,64}",
        process: [u8; 16],
        service: [u8; 16],
        export: u64,
        token: [u8; 32],
        opaque in proptest::collection::vec(any::<u8>(), 64),
        chosen in 0usize..8,
        (allocation_bytes, offset, bytes) in (1u64..1 << 62).prop_flat_map(|allocation| {
            (Just(allocation), 0..allocation).prop_flat_map(|(allocation, offset)| {
                (Just(allocation), Just(offset), 1..=allocation - offset)
            })
        }),
    ) {
        let opaque: [u8; 64] = opaque.try_into().unwrap();
        let all = [Offer::Fabric(opaque.into()), Offer::PosixFd, Offer::CudaIpc(opaque.into())];
        let offers: Vec<_> = all.into_iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1).map(|(_, o)| o).collect();
        let kinds: HandleKinds = offers.iter().map(|offer| HandleKinds::from(offer.kind())).collect();
        let ticket = Ticket { service, export, token };
        let handle = SharedHandle::new(Part { origin: Origin { host: HostId::named(&name), process, ticket, offers }, allocation_bytes, offset, bytes });
        let read = SharedHandle::from_bytes(&handle.to_bytes().unwrap()).unwrap();
        prop_assert_eq!(read.kinds(), kinds);
        prop_assert_eq!(read.bytes(), bytes);
        prop_assert_eq!(read, handle);
    }

    #[test]
    fn a_damaged_handle_is_an_error(at in 0usize..121, bit in 0u32..8) {
        let mut message = SharedHandle::new(part()).to_bytes().unwrap();
        prop_assert_eq!(message.len(), 121);
        message[at] ^= 1 << bit;
        prop_assert!(SharedHandle::from_bytes(&message).is_err());
    }

    #[test]
    fn a_handle_cut_short_or_joined_with_others_is_an_error(cut in 0usize..121, more in proptest::collection::vec(any::<u8>(), 1..50)) {
        let message = SharedHandle::new(part()).to_bytes().unwrap();
        prop_assert_eq!(SharedHandle::from_bytes(&message[..cut]).unwrap_err().kind(), ErrorKind::InvalidArgument);
        prop_assert!(SharedHandle::from_bytes(&[message, more].concat()).is_err());
    }

    #[test]
    fn any_bytes_are_a_value_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = SharedHandle::from_bytes(&bytes);
    }

    /// Bodies with the right header: what a fuzzer without the checksum's key would never reach.
    #[test]
    fn any_body_is_a_value_or_an_error(body in proptest::collection::vec(any::<u8>(), 0..300), keep in 0usize..105) {
        let good = SharedHandle::new(part()).to_bytes().unwrap();
        let body: Vec<u8> = good[16..16 + keep].iter().copied().chain(body).collect();
        let mut message = good[..8].to_vec();
        message.extend((body.len() as u32).to_le_bytes());
        let mut checked = message.clone();
        checked.extend(&body);
        message.extend(crc32fast::hash(&checked).to_le_bytes());
        message.extend(body);
        if let Ok(handle) = SharedHandle::from_bytes(&message) {
            prop_assert!(handle.part().check().is_ok());
        }
    }
}
