//! Lines from a pipe or a socket, as far as they have come.

use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};

/// A longer line is cut into pieces of this length: a program that prints no end of line cannot fill the memory.
const LONGEST: usize = 1 << 20;
/// Bytes read at a time.
const CHUNK: usize = 16 << 10;

/// The reading end of a pipe or a socket, which never blocks.
#[derive(Debug)]
pub struct Lines<S> {
    /// Until it has ended.
    source: Option<S>,
    /// What has come of the next line.
    partial: Vec<u8>,
}

impl<S: Read + AsFd> Lines<S> {
    /// Of `source`, whose reads do not block from here on.
    pub fn new(source: S) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&source, true)?;
        Ok(Self { source: Some(source), partial: Vec::new() })
    }

    /// What can be waited for, unless it has ended.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.source.as_ref().map(AsFd::as_fd)
    }

    /// The source itself, unless it has ended.
    pub fn source(&mut self) -> Option<&mut S> {
        self.source.as_mut()
    }

    /// Hands over every line that is there, and returns. At the end of the source also what stands behind the last end of
    /// line.
    pub fn read(&mut self, mut take: impl FnMut(String)) -> io::Result<()> {
        let mut chunk = [0; CHUNK];
        while let Some(source) = &mut self.source {
            match source.read(&mut chunk) {
                Ok(0) => self.source = None,
                Ok(length) => self.split(&chunk[..length], &mut take),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A process that died with unread messages for it.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => self.source = None,
                Err(error) => return Err(error),
            }
        }
        if !self.partial.is_empty() {
            take(text(&std::mem::take(&mut self.partial)));
        }
        Ok(())
    }

    fn split(&mut self, bytes: &[u8], take: &mut impl FnMut(String)) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.partial.len() >= LONGEST {
                take(text(&std::mem::take(&mut self.partial)));
            }
        }
    }
}

/// A line without its end; what is no UTF-8 is shown as such.
fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim_end_matches(['\n', '\r']).to_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(lines: &mut Lines<io::PipeReader>) -> Vec<String> {
        let mut seen = Vec::new();
        lines.read(|line| seen.push(line)).unwrap();
        seen
    }

    #[test]
    fn lines_come_whole_and_the_last_one_without_its_end() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut lines = Lines::new(reader).unwrap();
        assert!(read(&mut lines).is_empty() && lines.descriptor().is_some());
        writer.write_all(b"one\r\n\ntw").unwrap();
        assert_eq!(read(&mut lines), ["one", ""]);
        writer.write_all(b"o\nthree").unwrap();
        assert_eq!(read(&mut lines), ["two"]);
        drop(writer);
        assert_eq!(read(&mut lines), ["three"]);
        assert!(read(&mut lines).is_empty() && lines.descriptor().is_none());
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut lines = Lines::new(reader).unwrap();
        let mut seen = Vec::new();
        for _ in 0..LONGEST / 4096 + 1 {
            writer.write_all(&[b'x'; 4096]).unwrap();
            seen.extend(read(&mut lines));
        }
        assert_eq!(seen.len(), 1);
        assert!(seen[0].len() >= LONGEST);
    }
}
