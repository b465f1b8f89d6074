//! An archive in cpio's "new ASCII" format: what the kernel unpacks into its first root file system.
//!
//! Source: the Linux kernel's `Documentation/driver-api/early-userspace/buffer-format.rst`.

use std::collections::BTreeSet;
use std::path::Path;

const MAGIC: &[u8] = b"070701";
const TRAILER: &str = "TRAILER!!!";
const FOLDER: u32 = 0o040_755;
const LINK: u32 = 0o120_777;
const PROGRAM: u32 = 0o100_755;

/// The archive, as it grows. Folders come by themselves, before what lies in them.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    /// Names that are in it: a second entry of one name would be a mistake.
    names: BTreeSet<String>,
    /// Entries so far, which are their inodes' numbers: equal ones would be one file.
    entries: u32,
}

impl Archive {
    /// A folder.
    pub fn folder(&mut self, path: &str) {
        self.entry(path, FOLDER, &[]);
    }

    /// A file that may be executed. The first of one path counts.
    pub fn file(&mut self, path: &str, content: &[u8]) {
        self.entry(path, PROGRAM, content);
    }

    /// A symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        self.entry(path, LINK, target.as_bytes());
    }

    /// The whole archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.record(TRAILER, 0, &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        let path = path.trim_matches('/');
        if path.is_empty() || !self.names.insert(path.to_owned()) {
            return;
        }
        if let Some(above) = Path::new(path).parent().and_then(Path::to_str) {
            self.entry(above, FOLDER, &[]);
        }
        self.record(path, mode, content);
    }

    /// A header of thirteen numbers in eight hexadecimal digits each, the name with its zero, the content; name and content
    /// are filled up to multiples of four.
    fn record(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let inode = self.entries;
        let (links, length, name_length) = (1, content.len() as u32, name.len() as u32 + 1);
        let numbers = [inode, mode, 0, 0, links, 0, length, 0, 0, 0, 0, name_length, 0];
        self.bytes.extend(MAGIC);
        for number in numbers {
            self.bytes.extend(format!("{number:08x}").into_bytes());
        }
        self.bytes.extend(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_laid_out_as_the_kernel_reads_it() {
        let mut archive = Archive::default();
        archive.file("/a/b", b"hello");
        archive.file("a/b", b"not again");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        // The folder, by itself: 110 bytes of header, the name and its zero, and no content.
        assert_eq!(&bytes[..14], b"07070100000001");
        assert_eq!(&bytes[14..22], b"000041ed");
        assert_eq!(&bytes[110..112], b"a\0");
        let file = &bytes[112..];
        assert_eq!(&file[..6], MAGIC);
        assert_eq!(&file[14..22], b"000081ed");
        assert_eq!(&file[54..62], b"00000005");
        assert_eq!(&file[94..102], b"00000004");
        assert_eq!(&file[110..114], b"a/b\0");
        assert_eq!(&file[116..124], b"hello\0\0\0");
        assert!(file[124..].starts_with(MAGIC));
        assert_eq!(&file[124 + 110..][..11], b"TRAILER!!!\0");
    }
}
