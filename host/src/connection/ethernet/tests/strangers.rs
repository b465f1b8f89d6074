//! Whatever comes over the wire, nothing is written that is not registered, and no other connection notices.

use std::io::{Read, Write};

use super::super::frame::{self, Objection, Target};
use super::*;
use crate::net::frame::{HEADER_BYTES, Header, Kind, VERSION};

/// What the other end says, up to its end.
fn said(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset is an end too: what came before it has been read.
    _ = stream.read_to_end(&mut bytes);
    bytes
}

fn failed(connection: &Connection) -> String {
    eventually("it fails", || connection.mark().is_err());
    connection.mark().unwrap_err().to_string()
}

#[test]
fn what_may_not_be_is_refused_and_nothing_is_written() {
    let device = cpu();
    let [bystander, _other] = pair(&device);
    // Memory with a frontier on both sides.
    let buffer = device.allocate::<u8>(64).unwrap();
    let middle = buffer.part(16, 32).unwrap();
    let registered = own(&middle);
    let key = registered.region_key().unwrap();
    let gone = own(&middle).region_key().unwrap();
    let at = |offset| Target { slot: key.slot, generation: key.generation, offset };
    let write = |target, data: &[u8]| [&frame::write_head(target, data.len())[..], data].concat();
    let header = |kind, length| Header { version: VERSION, kind: Kind(kind), length }.pack().to_vec();
    let mut other_version = frame::bye().to_vec();
    other_version[4] = 9;
    let cases: Vec<(&str, Vec<u8>, Objection)> = vec![
        ("a slot that none has", write(Target { slot: u32::MAX, ..at(0) }, &[1]), Objection::NO_SUCH_MEMORY),
        (
            "a generation to come",
            write(Target { generation: key.generation + 1, ..at(0) }, &[1]),
            Objection::NO_SUCH_MEMORY,
        ),
        (
            "memory that has gone",
            write(Target { slot: gone.slot, generation: gone.generation, offset: 0 }, &[1]),
            Objection::NO_SUCH_MEMORY,
        ),
        ("a byte beyond", write(at(0), &[1; 33]), Objection::OUTSIDE),
        ("the byte behind", write(at(32), &[1]), Objection::OUTSIDE),
        ("an offset that wraps", write(at(u64::MAX), &[1; 2]), Objection::OUTSIDE),
        ("a word beyond", frame::update(at(25), 1).to_vec(), Objection::OUTSIDE),
        ("a word that is not aligned", frame::update(at(4), 1).to_vec(), Objection::MISALIGNED),
        ("an acknowledgement of nothing", frame::acknowledge(1).to_vec(), Objection::MALFORMED),
        ("no magic", b"GET / HTTP/1.1\r\n\r\n".to_vec(), Objection::MALFORMED),
        ("another version", other_version, Objection::MALFORMED),
        ("an unknown kind", header(999, 0), Objection::MALFORMED),
        ("a kind of the bootstrap's", header(16, 0), Objection::MALFORMED),
        ("a length that none has", header(48, u32::MAX), Objection::MALFORMED),
        ("a write of nothing", header(48, 16), Objection::MALFORMED),
    ];
    for (what, bytes, objection) in cases {
        let (connection, mut theirs) = played(&device, LONG);
        theirs.write_all(&bytes).unwrap();
        assert_eq!(said(&mut theirs), frame::object(objection), "{what}");
        let error = failed(&connection);
        assert!(error.starts_with("the Ethernet connection to rank 3 has failed: "), "{what}: {error}");
        assert_eq!(buffer.read().unwrap(), [0; 64], "{what}");
    }
    // The one beside them has seen nothing of it.
    let source = own(&device.allocate::<u8>(32).unwrap());
    bystander.write(&told(&device, &registered), 0, &source, 0, 32).unwrap();
    bystander.flush(LONG).unwrap();
}

#[test]
fn what_came_before_a_fault_is_placed_and_acknowledged() {
    let device = cpu();
    let buffer = device.allocate::<u8>(4).unwrap();
    let registered = own(&buffer);
    let key = registered.region_key().unwrap();
    let target = Target { slot: key.slot, generation: key.generation, offset: 1 };
    let (connection, mut theirs) = played(&device, LONG);
    let head = frame::write_head(target, 2);
    theirs.write_all(&[&head[..], &[5, 6], b"nonsense that is no frame"].concat()).unwrap();
    let expected = [&frame::acknowledge(1)[..], &frame::object(Objection::MALFORMED)].concat();
    assert_eq!(said(&mut theirs), expected);
    assert_eq!(buffer.read().unwrap(), [0, 5, 6, 0]);
    failed(&connection);
}

/// A peer that dies in the middle of a frame leaves none of it.
#[test]
fn half_a_frame_is_not_placed() {
    let device = cpu();
    let buffer = device.allocate::<u8>(100).unwrap();
    let registered = own(&buffer);
    let key = registered.region_key().unwrap();
    let target = Target { slot: key.slot, generation: key.generation, offset: 0 };
    let (connection, mut theirs) = played(&device, LONG);
    theirs.write_all(&frame::write_head(target, 100)).unwrap();
    theirs.write_all(&[9; 99]).unwrap();
    drop(theirs);
    let error = failed(&connection);
    assert!(error.contains("rank 3 has failed: its connection closed without a word"), "{error}");
    assert_eq!(buffer.read().unwrap(), [0; 100]);
}

#[test]
fn an_objection_is_told_with_its_words() {
    let device = cpu();
    for (objection, words) in [
        (Objection::NO_SUCH_MEMORY, "not registered any more"),
        (Objection(77), "reason 77, which this version does not know"),
    ] {
        let (connection, mut theirs) = played(&device, LONG);
        theirs.write_all(&frame::object(objection)).unwrap();
        let error = failed(&connection);
        assert!(
            error.contains("to rank 3 has failed: it gave the connection up") && error.contains(words),
            "{error}"
        );
    }
}

#[test]
fn frames_are_what_is_sent() {
    let device = cpu();
    let (connection, mut theirs) = played(&device, LONG);
    let from = device.allocate::<u8>(3).unwrap();
    from.write(&[1, 2, 3]).unwrap();
    let to = own(&device.allocate::<u64>(2).unwrap());
    let (key, there) = (to.region_key().unwrap(), told(&device, &to));
    connection.write(&there, 9, &own(&from), 1, 2).unwrap();
    connection.update(&there, 8, 0x0102_0304).unwrap();
    let at = |offset| Target { slot: key.slot, generation: key.generation, offset };
    let expected = [&frame::write_head(at(9), 2)[..], &[2, 3], &frame::update(at(8), 0x0102_0304)].concat();
    let mut came = vec![0; expected.len()];
    theirs.read_exact(&mut came).unwrap();
    assert_eq!(came, expected);
    connection.close();
    assert_eq!(said(&mut theirs), frame::bye());
    assert_eq!(HEADER_BYTES, frame::bye().len());
}
