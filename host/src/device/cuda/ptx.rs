//! Which of a module's PTX texts a GPU and its driver take, and what the text says of its entries. Nothing here calls the
//! driver.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use warpwire_build::ptx::{Entry, Header, Module, Target, Version};
use warpwire_device::abi::LaunchLimits;

use crate::error::{Error, ModuleError, Result};

/// A CUDA version, as the driver gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CudaVersion {
    /// 13 of 13.0.
    pub(super) major: u32,
    /// 0 of 13.0.
    pub(super) minor: u32,
}

/// The PTX version that each CUDA version brought, from the PTX manual's "Release Notes". An unlisted CUDA version takes
/// what the one before it takes.
const PTX_OF_CUDA: [((u32, u32), (u32, u32)); 19] = [
    ((11, 0), (7, 0)),
    ((11, 1), (7, 1)),
    ((11, 2), (7, 2)),
    ((11, 3), (7, 3)),
    ((11, 4), (7, 4)),
    ((11, 5), (7, 5)),
    ((11, 6), (7, 6)),
    ((11, 7), (7, 7)),
    ((11, 8), (7, 8)),
    ((12, 0), (8, 0)),
    ((12, 1), (8, 1)),
    ((12, 2), (8, 2)),
    ((12, 3), (8, 3)),
    ((12, 4), (8, 4)),
    ((12, 5), (8, 5)),
    ((12, 7), (8, 6)),
    ((12, 8), (8, 7)),
    ((12, 9), (8, 8)),
    ((13, 0), (9, 0)),
];

/// What CUDA 10.2 takes; an older driver takes less still.
const OLDEST: (u32, u32) = (6, 5);

impl CudaVersion {
    /// From the driver's number: 13000 is 13.0, 12080 is 12.8.
    pub(super) fn from_driver(number: i32) -> Self {
        let number = u32::try_from(number).unwrap_or(0);
        Self { major: number / 1000, minor: number % 1000 / 10 }
    }

    /// The newest PTX version that the driver takes; `None` where this table is older than the driver, which then decides
    /// for itself.
    pub(super) fn newest_ptx(self) -> Option<Version> {
        let this = (self.major, self.minor);
        let (last, _) = PTX_OF_CUDA[PTX_OF_CUDA.len() - 1];
        if this > last {
            return None;
        }
        let brought = PTX_OF_CUDA.iter().rev().find(|&&(cuda, _)| cuda <= this);
        let (major, minor) = brought.map_or(OLDEST, |&(_, ptx)| ptx);
        Some(Version { major, minor })
    }
}

/// What the choice depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gpu<'a> {
    /// The GPU's name, for errors.
    pub(super) name: &'a str,
    /// Its compute capability.
    pub(super) capability: (u32, u32),
    /// Its driver's CUDA version.
    pub(super) cuda: CudaVersion,
}

impl Gpu<'_> {
    /// Whether the GPU runs code of this target. What is for one architecture only (`sm_90a`) runs on none but that; what
    /// is for a family (`sm_100f`), on its later members too.
    fn runs(&self, target: &Target) -> bool {
        let (major, minor) = self.capability;
        let own = major * 10 + minor;
        match target.suffix.as_str() {
            "" => target.number <= own,
            "a" => target.number == own,
            "f" => target.number <= own && target.number / 10 == major,
            _ => false,
        }
    }
}

/// What was chosen of a module's texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Their architecture, 90 for `sm_90`.
    pub(super) architecture: u32,
    /// The PTX: the whole module, or its parts.
    pub(super) texts: Vec<&'static str>,
}

/// Chooses from a module's texts: of those that the GPU runs and the driver's compiler takes, all for the newest
/// architecture.
pub(super) fn choose(module: &str, texts: &[(u32, &'static str)], gpu: Gpu<'_>) -> Result<Choice> {
    let mut candidates = Vec::new();
    for &(architecture, text) in texts {
        let header = Header::parse(text).map_err(|error| broken(module, architecture, error))?;
        if header.target.number != architecture {
            return Err(broken(module, architecture, format!("its text is for {}", header.target)));
        }
        if gpu.runs(&header.target) {
            candidates.push((header, text));
        }
    }
    candidates.sort_by_key(|(header, _)| Reverse((header.target.number, header.target.suffix.len())));

    let accepted = gpu.cuda.newest_ptx();
    // One part that the driver does not take, and the module is not whole.
    let mut by_target = candidates.chunk_by(|(a, _), (b, _)| a.target == b.target);
    let is_taken = |(header, _): &(Header, _)| accepted.is_none_or(|newest| header.version <= newest);
    if let Some(taken) = by_target.find(|parts| parts.iter().all(is_taken)) {
        let architecture = taken.iter().map(|(header, _)| header.target.number).max().unwrap_or_default();
        return Ok(Choice { architecture, texts: taken.iter().map(|&(_, text)| text).collect() });
    }
    let oldest = candidates.iter().map(|(header, _)| header.version).min();
    Err(match oldest.zip(accepted) {
        Some((ptx, newest)) => Error::Module(ModuleError::PtxTooNew {
            module: module.to_owned(),
            ptx: (ptx.major, ptx.minor),
            accepted: (newest.major, newest.minor),
            driver: (gpu.cuda.major, gpu.cuda.minor),
        }),
        None => {
            let mut present: Vec<u32> = texts.iter().map(|&(architecture, _)| architecture).collect();
            present.dedup();
            let (module, device) = (module.to_owned(), gpu.name.to_owned());
            Error::Module(ModuleError::NoCode { module, device, capability: gpu.capability, present })
        }
    })
}

fn broken(module: &str, architecture: u32, reason: impl ToString) -> Error {
    Error::Module(ModuleError::InvalidPtx {
        module: module.to_owned(),
        architecture,
        reason: reason.to_string(),
    })
}

/// What the host has to know of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntryShape {
    /// Its name.
    pub(super) name: String,
    /// Bytes of its parameters.
    pub(super) args_size: usize,
    /// Its bounds; an entry without them takes what the GPU allows.
    pub(super) limits: LaunchLimits,
}

/// The entries of each chosen text, in their order. `max_threads` is the GPU's own limit.
pub(super) fn entries(module: &str, choice: &Choice, max_threads: u32) -> Result<Vec<Vec<EntryShape>>> {
    let mut seen = BTreeSet::new();
    let mut parts = Vec::new();
    for text in &choice.texts {
        let parsed = Module::parse(text).map_err(|error| broken(module, choice.architecture, error))?;
        if let Some(twice) = parsed.entries.iter().find(|entry| !seen.insert(entry.name)) {
            return Err(broken(module, choice.architecture, format!("it has {} twice", twice.name)));
        }
        let shape = |entry: &Entry<'_>| EntryShape {
            name: entry.name.to_owned(),
            args_size: entry.param_size() as usize,
            limits: LaunchLimits {
                max_threads: entry.max_threads().unwrap_or(max_threads).min(max_threads),
                min_blocks: entry.min_blocks.unwrap_or(1),
            },
        };
        parts.push(parsed.entries.iter().map(shape).collect());
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    const SM_80: &str = ".version 7.0\n.target sm_80\n.address_size 64\n";
    const SM_90: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";
    const SM_90A: &str = ".version 8.0\n.target sm_90a\n.address_size 64\n";
    const SM_100: &str = ".version 8.6\n.target sm_100\n.address_size 64\n";
    const SM_100F: &str = ".version 8.8\n.target sm_100f\n.address_size 64\n";
    const ALL: [(u32, &str); 3] = [(80, SM_80), (90, SM_90), (100, SM_100)];

    fn gpu(capability: (u32, u32), driver: i32) -> Gpu<'static> {
        Gpu { name: "a GPU", capability, cuda: CudaVersion::from_driver(driver) }
    }

    fn chosen(texts: &[(u32, &'static str)], capability: (u32, u32), driver: i32) -> u32 {
        choose("m", texts, gpu(capability, driver)).expect("a choice").architecture
    }

    #[test]
    fn driver_numbers_are_versions() {
        for (number, major, minor) in [(13000, 13, 0), (12080, 12, 8), (11020, 11, 2), (0, 0, 0), (-1, 0, 0)]
        {
            assert_eq!(CudaVersion::from_driver(number), CudaVersion { major, minor });
        }
    }

    #[test]
    fn each_driver_takes_its_ptx_version() {
        let newest = |number| {
            CudaVersion::from_driver(number).newest_ptx().map(|Version { major, minor }| (major, minor))
        };
        assert_eq!(newest(10020), Some((6, 5)));
        assert_eq!(newest(11000), Some((7, 0)));
        assert_eq!(newest(11080), Some((7, 8)));
        assert_eq!(newest(11090), Some((7, 8)));
        assert_eq!(newest(12050), Some((8, 5)));
        assert_eq!(newest(12060), Some((8, 5)));
        assert_eq!(newest(12070), Some((8, 6)));
        assert_eq!(newest(13000), Some((9, 0)));
        assert_eq!(newest(13010), None);
        assert_eq!(newest(14000), None);
    }

    #[test]
    fn the_table_is_in_order() {
        assert!(PTX_OF_CUDA.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
    }

    #[test]
    fn the_newest_architecture_not_above_the_gpu_is_chosen() {
        assert_eq!(chosen(&ALL, (8, 0), 13000), 80);
        assert_eq!(chosen(&ALL, (8, 9), 13000), 80);
        assert_eq!(chosen(&ALL, (9, 0), 13000), 90);
        assert_eq!(chosen(&ALL, (10, 0), 13000), 100);
        assert_eq!(chosen(&ALL, (12, 0), 13000), 100);
        let reversed: Vec<_> = ALL.into_iter().rev().collect();
        assert_eq!(chosen(&reversed, (9, 0), 13000), 90);
    }

    #[test]
    fn an_older_architecture_serves_a_driver_that_does_not_take_the_newer_ptx() {
        assert_eq!(chosen(&ALL, (9, 0), 11080), 80);
        assert_eq!(chosen(&ALL, (10, 0), 12040), 90);
    }

    #[test]
    fn code_of_one_architecture_or_family_stays_there() {
        let with_a = [(90, SM_90), (90, SM_90A)];
        assert_eq!(choose("m", &with_a, gpu((9, 0), 13000)).expect("a choice").texts, [SM_90A]);
        assert_eq!(choose("m", &with_a, gpu((10, 0), 13000)).expect("a choice").texts, [SM_90]);
        assert_eq!(chosen(&[(90, SM_90), (100, SM_100F)], (10, 3), 13000), 100);
        assert_eq!(chosen(&[(90, SM_90), (100, SM_100F)], (12, 0), 13000), 90);
    }

    #[test]
    fn a_gpu_older_than_every_text_is_told_what_there_is() {
        let error = choose("m", &ALL, gpu((7, 5), 13000)).expect_err("no text runs there");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let text = error.to_string();
        for part in ["a GPU", "7.5", "sm_80, sm_90, sm_100"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(matches!(
            choose("m", &[], gpu((9, 0), 13000)),
            Err(Error::Module(ModuleError::NoCode { .. }))
        ));
    }

    #[test]
    fn a_driver_older_than_every_text_is_told_both_versions() {
        let error = choose("m", &ALL[1..2], gpu((9, 0), 11080)).expect_err("the driver is too old");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let text = error.to_string();
        for part in ["PTX 8.0", "CUDA 11.8", "up to 7.8"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn text_that_is_not_what_it_is_said_to_be_is_refused() {
        for texts in [[(90, "no PTX")], [(90, "")], [(90, SM_80)], [(80, SM_90)]] {
            let error = choose("m", &texts, gpu((9, 0), 13000)).expect_err("a broken text");
            assert!(matches!(error, Error::Module(ModuleError::InvalidPtx { .. })), "{error}");
        }
    }

    #[test]
    fn entries_have_sizes_and_bounds() {
        let text = ".version 8.0\n.target sm_90\n.address_size 64\n\
            .visible .entry a(.param .align 8 .b8 a_param_0[24])\n.maxntid 64, 1, 1\n.minnctapersm 2\n{ ret; }\n\
            .visible .entry b(.param .u32 b_param_0, .param .u64 b_param_1)\n{ ret; }\n\
            .visible .entry c()\n.maxntid 2048, 1, 1\n{ ret; }\n";
        let found = entries("m", &Choice { architecture: 90, texts: vec![text] }, 1024).expect("entries");
        let shape = |name: &str, args_size, max_threads, min_blocks| EntryShape {
            name: name.to_owned(),
            args_size,
            limits: LaunchLimits { max_threads, min_blocks },
        };
        assert_eq!(found, [[shape("a", 24, 64, 2), shape("b", 16, 1024, 1), shape("c", 0, 1024, 1)]]);
    }

    /// A text for an architecture with one entry.
    fn part(header: &str, entry: &str) -> &'static str {
        format!("{header}.visible .entry {entry}()\n{{ ret; }}\n").leak()
    }

    #[test]
    fn all_parts_for_the_chosen_architecture_are_taken() {
        let [a, b] = [SM_90, SM_80].map(|header| ["put", "hop"].map(|entry| part(header, entry)));
        let texts = [(80, b[0]), (90, a[0]), (80, b[1]), (90, a[1])];
        let choice = choose("m", &texts, gpu((9, 0), 13000)).expect("a choice");
        assert_eq!((choice.architecture, &choice.texts[..]), (90, &a[..]));
        let parts = entries("m", &choice, 1024).expect("entries");
        let names = parts.iter().map(|part| part.iter().map(|shape| shape.name.as_str()).collect::<Vec<_>>());
        assert_eq!(names.collect::<Vec<_>>(), [["put"], ["hop"]]);
        assert_eq!(choose("m", &texts, gpu((8, 6), 13000)).expect("a choice").texts, b);
    }

    #[test]
    fn parts_that_the_driver_does_not_all_take_are_no_choice() {
        let newer = part(&SM_90.replace("8.0", "8.6"), "hop");
        let texts = [(80, SM_80), (90, part(SM_90, "put")), (90, newer)];
        assert_eq!(chosen(&texts, (9, 0), 12000), 80);
        assert_eq!(chosen(&texts, (9, 0), 13000), 90);
    }

    #[test]
    fn an_entry_in_two_parts_is_refused() {
        let choice = Choice { architecture: 90, texts: vec![part(SM_90, "put"); 2] };
        let error = entries("m", &choice, 1024).expect_err("the driver would take either");
        assert!(error.to_string().contains("has put twice"), "{error}");
    }
}
