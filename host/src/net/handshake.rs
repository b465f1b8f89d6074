//! How two ends find out that they are of one job, before anything else is said: both prove that they know its secret,
//! neither sends it.
//!
//! ```text
//! guest  HELLO      nonce                                   host
//!        CHALLENGE                                  nonce
//!        PROOF      HMAC(secret, guest, all so far + claim), claim
//!        WELCOME    HMAC(secret, host, all so far)          or REFUSAL
//! ```
//!
//! The version counts only once the guest has proved itself: one with another version then is a rank of this job, built
//! wrong, and the whole job is told; before, it is a stranger. Neither side here reads or writes: frames go in and come out.

use super::frame::{Frame, Kind, VERSION, pack};
use super::payload::{open_value, pack_value};
use super::secret::{MAC_BYTES, Role, Secret, random_bytes};
use crate::error::{Refusal, Result};

const NONCE_BYTES: usize = 32;

/// The end that connected.
#[derive(Debug)]
pub(crate) struct Guest {
    secret: Secret,
    /// Everything that both ends have said.
    said: Vec<u8>,
}

/// How a handshake ended at the guest, where no connection came of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// The host said no.
    Refused(Refusal),
    /// The other end is no host of this job.
    Stranger(String),
}

impl Guest {
    /// A guest, and the frame that it begins with.
    pub(crate) fn new(secret: Secret) -> Result<(Self, Vec<u8>)> {
        let hello = pack(Kind::HELLO, &random_bytes::<NONCE_BYTES>()?);
        Ok((Self { secret, said: hello.clone() }, hello))
    }

    /// The answer to the host's first frame. The claim says who the guest is and what it wants.
    pub(crate) fn answer(&mut self, frame: &Frame, claim: &[u8]) -> Result<Vec<u8>, Rejection> {
        Self::expect(frame, Kind::CHALLENGE, NONCE_BYTES)?;
        record(&mut self.said, frame);
        self.said.extend_from_slice(claim);
        let proof = self.secret.prove(Role::Guest, &[&self.said]);
        Ok(pack(Kind::PROOF, &[&proof[..], claim].concat()))
    }

    /// Takes the host's last frame.
    pub(crate) fn conclude(self, frame: &Frame) -> Result<(), Rejection> {
        Self::expect(frame, Kind::WELCOME, MAC_BYTES)?;
        let proof = frame.payload.first_chunk().copied().unwrap_or_default();
        if self.secret.holds(Role::Host, &[&self.said], &proof) {
            Ok(())
        } else {
            Err(Rejection::Stranger("it could not prove that it knows the job's secret".to_owned()))
        }
    }

    fn expect(frame: &Frame, kind: Kind, bytes: usize) -> Result<(), Rejection> {
        if frame.kind == Kind::REFUSAL {
            return Err(match open_value(frame) {
                Ok(refusal) => Rejection::Refused(refusal),
                Err(_) => {
                    let theirs = frame.version;
                    let text =
                        format!("it turned this rank away in words of its version {theirs} (here {VERSION})");
                    Rejection::Stranger(text)
                }
            });
        }
        if frame.kind != kind || frame.payload.len() != bytes {
            return Err(Rejection::Stranger(format!("it answered out of turn, with {:?}", frame.kind)));
        }
        Ok(())
    }
}

/// The end that listens.
#[derive(Debug)]
pub(crate) struct Host {
    secret: Secret,
    said: Vec<u8>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Hello,
    Proof { version: u16 },
    Over,
}

/// What a host does with a frame.
#[derive(Debug)]
pub(crate) enum Step {
    /// Send this, and wait for more.
    Say(Vec<u8>),
    /// The guest knows the secret and speaks this version: grant its claim with the frame, or refuse it.
    Proven { claim: Vec<u8>, welcome: Vec<u8> },
    /// Turn the guest away.
    Refuse { refusal: Refusal, proven: bool },
}

impl Host {
    pub(crate) fn new(secret: Secret) -> Self {
        Self { secret, said: Vec::new(), stage: Stage::Hello }
    }

    /// Takes the guest's next frame.
    pub(crate) fn receive(&mut self, frame: &Frame) -> Result<Step> {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Hello if frame.kind == Kind::HELLO && frame.payload.len() == NONCE_BYTES => {
                record(&mut self.said, frame);
                let challenge = pack(Kind::CHALLENGE, &random_bytes::<NONCE_BYTES>()?);
                self.said.extend_from_slice(&challenge);
                self.stage = Stage::Proof { version: frame.version };
                Ok(Step::Say(challenge))
            }
            Stage::Proof { version } if frame.kind == Kind::PROOF => Ok(self.judge(version, &frame.payload)),
            _ => Ok(refuse(format!("it spoke out of turn, with {:?}", frame.kind))),
        }
    }

    fn judge(&mut self, version: u16, payload: &[u8]) -> Step {
        let Some((proof, claim)) = payload.split_first_chunk::<MAC_BYTES>() else {
            return refuse("its proof is too short".to_owned());
        };
        self.said.extend_from_slice(claim);
        if !self.secret.holds(Role::Guest, &[&self.said], proof) {
            return Step::Refuse { refusal: Refusal::Secret, proven: false };
        }
        if version != VERSION {
            return Step::Refuse {
                refusal: Refusal::Version { joiner: version, root: VERSION },
                proven: true,
            };
        }
        let welcome = pack(Kind::WELCOME, &self.secret.prove(Role::Host, &[&self.said]));
        Step::Proven { claim: claim.to_vec(), welcome }
    }
}

/// The frame that tells a guest of a refusal.
pub(crate) fn refusal_frame(refusal: &Refusal) -> Vec<u8> {
    pack_value(Kind::REFUSAL, refusal)
}

fn refuse(what: String) -> Step {
    Step::Refuse { refusal: Refusal::Protocol(what), proven: false }
}

fn record(said: &mut Vec<u8>, frame: &Frame) {
    said.extend_from_slice(&frame.header().pack());
    said.extend_from_slice(&frame.payload);
}

#[cfg(test)]
mod tests {
    use super::super::frame::{FrameReader, HANDSHAKE_LIMIT, Header};
    use super::*;
    use proptest::prelude::*;

    const CLAIM: &[u8] = b"rank 1 of 2";

    fn secret(text: &str) -> Secret {
        Secret::from_text(Some(text))
    }

    fn frame(bytes: &[u8]) -> Frame {
        let mut reader = FrameReader::new(HANDSHAKE_LIMIT);
        reader.feed(bytes);
        reader.next().unwrap().unwrap()
    }

    /// As a guest of another version would have sent it.
    fn of_version(version: u16, bytes: &[u8]) -> Vec<u8> {
        let sent = frame(bytes);
        let header = Header { version, ..sent.header() };
        [&header.pack()[..], &sent.payload].concat()
    }

    fn said(step: Step) -> Vec<u8> {
        match step {
            Step::Say(bytes) => bytes,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ends_that_know_the_secret_meet() {
        let (mut guest, hello) = Guest::new(secret("job")).unwrap();
        let mut host = Host::new(secret("job"));
        let challenge = said(host.receive(&frame(&hello)).unwrap());
        let proof = guest.answer(&frame(&challenge), CLAIM).unwrap();
        match host.receive(&frame(&proof)).unwrap() {
            Step::Proven { claim: proven, welcome } => {
                assert_eq!(proven, CLAIM);
                guest.conclude(&frame(&welcome)).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn another_secret_is_refused_by_either_end() {
        let (mut guest, hello) = Guest::new(secret("other")).unwrap();
        let mut host = Host::new(secret("job"));
        let challenge = said(host.receive(&frame(&hello)).unwrap());
        let proof = guest.answer(&frame(&challenge), CLAIM).unwrap();
        let step = host.receive(&frame(&proof)).unwrap();
        assert!(matches!(step, Step::Refuse { refusal: Refusal::Secret, proven: false }), "{step:?}");
        assert_eq!(
            guest.conclude(&frame(&refusal_frame(&Refusal::Secret))),
            Err(Rejection::Refused(Refusal::Secret))
        );

        let (mut guest, _) = Guest::new(secret("job")).unwrap();
        guest.answer(&frame(&challenge), CLAIM).unwrap();
        let forged = pack(Kind::WELCOME, &[0; MAC_BYTES]);
        assert!(matches!(guest.conclude(&frame(&forged)), Err(Rejection::Stranger(_))));
    }

    #[test]
    fn another_version_is_told_apart_from_a_stranger() {
        // The guest's own record has the version that it announces, as that of a later version would.
        let (guest, hello) = Guest::new(secret("job")).unwrap();
        let hello = of_version(2, &hello);
        let mut guest = Guest { said: hello.clone(), ..guest };
        let mut host = Host::new(secret("job"));
        let challenge = said(host.receive(&frame(&hello)).unwrap());
        let proof = guest.answer(&frame(&challenge), CLAIM).unwrap();
        let step = host.receive(&frame(&proof)).unwrap();
        let Step::Refuse { refusal, proven: true } = step else { panic!("{step:?}") };
        let text = refusal.to_string();
        assert!(text.contains("version 2") && text.contains("version 1"), "{text}");

        // Whoever only changes the version on the way is a stranger.
        let (mut guest, hello) = Guest::new(secret("job")).unwrap();
        let mut host = Host::new(secret("job"));
        let challenge = said(host.receive(&frame(&of_version(2, &hello))).unwrap());
        let proof = guest.answer(&frame(&challenge), CLAIM).unwrap();
        let step = host.receive(&frame(&proof)).unwrap();
        assert!(matches!(step, Step::Refuse { refusal: Refusal::Secret, .. }), "{step:?}");
    }

    #[test]
    fn frames_out_of_turn_are_refused() {
        let mut host = Host::new(secret("job"));
        let step = host.receive(&frame(&pack(Kind::PROOF, &[0; 40]))).unwrap();
        assert!(matches!(step, Step::Refuse { refusal: Refusal::Protocol(_), .. }), "{step:?}");
        let (mut guest, hello) = Guest::new(secret("job")).unwrap();
        // A socket connected to itself hears its own words.
        assert!(matches!(guest.answer(&frame(&hello), CLAIM), Err(Rejection::Stranger(_))));
    }

    #[test]
    fn a_recorded_handshake_cannot_be_played_again() {
        let (mut guest, hello) = Guest::new(secret("job")).unwrap();
        let mut host = Host::new(secret("job"));
        let challenge = said(host.receive(&frame(&hello)).unwrap());
        let proof = guest.answer(&frame(&challenge), CLAIM).unwrap();
        let mut later = Host::new(secret("job"));
        said(later.receive(&frame(&hello)).unwrap());
        let step = later.receive(&frame(&proof)).unwrap();
        assert!(matches!(step, Step::Refuse { refusal: Refusal::Secret, .. }), "{step:?}");
    }

    proptest! {
        #[test]
        fn any_frames_are_answered_or_refused(
            frames in proptest::collection::vec((0u16..8, proptest::collection::vec(any::<u8>(), 0..80)), 0..4),
        ) {
            let mut host = Host::new(secret("job"));
            for (kind, payload) in frames {
                let frame = Frame { version: 1, kind: Kind(kind), payload };
                let step = host.receive(&frame).unwrap();
                let let_in = matches!(step, Step::Proven { .. });
                prop_assert!(!let_in, "nobody is let in without the secret");
            }
        }
    }
}
