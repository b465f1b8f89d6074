//! What the two ends of a connection say to each other.

use super::*;
use crate::bootstrap::HostId;
use crate::device::DeviceKind;
use crate::device::DeviceUuid;

fn site() -> Site {
    let host = HostId::named("a");
    Site {
        host,
        domain: host.into(),
        process: [1; 16],
        kind: DeviceKind::Cpu,
        device: DeviceUuid::new([2; 16]),
        pci: None,
        name: "CPU device 0".to_owned(),
    }
}

fn offer(transport: Transport, terms: &[(&str, &str)]) -> Offer {
    let terms = terms.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Offer { transport, terms, site: site(), description: vec![] }
}

fn mismatch(ours: &Offer, theirs: &Offer) -> String {
    let error = compare(Rank(5), ours, theirs).unwrap_err();
    assert!(matches!(error, Error::Connection(ConnectionError::Mismatch { .. })), "{error}");
    error.to_string()
}

#[test]
fn a_difference_is_named_with_both_values_from_either_end() {
    let terms = [("the mode", "host"), ("the port", "1")];
    let ours = offer(Transport::InfiniBand, &terms);
    assert!(compare(Rank(5), &ours, &offer(Transport::InfiniBand, &terms)).is_ok());

    let theirs = offer(Transport::Ethernet, &terms);
    assert!(
        mismatch(&ours, &theirs)
            .contains("rank 5 was asked for with the transport InfiniBand here and Ethernet")
    );
    assert!(mismatch(&theirs, &ours).contains("the transport Ethernet here and InfiniBand there"));

    let theirs = offer(Transport::InfiniBand, &[("the mode", "host-no-atomic"), ("the port", "1")]);
    assert!(mismatch(&ours, &theirs).contains("the mode host here and host-no-atomic there"));
    assert!(mismatch(&theirs, &ours).contains("the mode host-no-atomic here and host there"));

    // A term that one end does not have.
    let theirs = offer(Transport::InfiniBand, &terms[..1]);
    assert!(mismatch(&ours, &theirs).contains("the port 1 here and none there"));
    assert!(mismatch(&theirs, &ours).contains("the port none here and 1 there"));
}

/// C53: process A sees two GPUs and takes the second, B sees that one alone: in both it is one device, whatever its number.
#[test]
fn a_device_is_told_by_its_uuid_and_host() {
    let (a, mut b) = (site(), site());
    (b.process, b.name) = ([9; 16], "GPU 0".to_owned());
    assert!(a.shares_device(&b));
    // Equal UUIDs on two hosts are two devices: virtual machines may be copied.
    b.host = HostId::named("b");
    assert!(!a.shares_device(&b));
    let mut c = site();
    c.device = DeviceUuid::new([3; 16]);
    assert!(!a.shares_device(&c));
}
