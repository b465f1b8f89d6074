//! The GPU architectures that PTX is built for.

use std::fmt;
use std::str::FromStr;

/// An architecture that PTX can be built for: the oldest GPU that runs it.
///
/// PTX for `sm_90` also runs on newer GPUs, compiled by their driver; PTX for `sm_90a` runs on `sm_90` alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch(&'static Row);

/// What the builder knows of an architecture.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Row {
    number: u32,
    name: &'static str,
    /// The PTX version to ask the compiler for, where its own default is too old for what the device crate writes.
    ptx_feature: Option<&'static str>,
}

/// The PTX version decides which drivers can load a file, so each stays at the least that its instructions need.
///
/// - up to `sm_89`: the compiler's default, 7.0 for `sm_80` (driver 450 and later);
/// - `sm_90`: 8.0, for `cp.async.bulk` (driver 525 and later), where the default is 7.8;
/// - from `sm_100`: the default, which is the first version that knows the architecture.
const TABLE: &[Row] = &[
    Row { number: 80, name: "sm_80", ptx_feature: None },
    Row { number: 86, name: "sm_86", ptx_feature: None },
    Row { number: 89, name: "sm_89", ptx_feature: None },
    Row { number: 90, name: "sm_90", ptx_feature: Some("ptx80") },
    Row { number: 90, name: "sm_90a", ptx_feature: Some("ptx80") },
    Row { number: 100, name: "sm_100", ptx_feature: None },
    Row { number: 100, name: "sm_100a", ptx_feature: None },
    Row { number: 103, name: "sm_103", ptx_feature: None },
    Row { number: 120, name: "sm_120", ptx_feature: None },
];

impl Arch {
    /// Ampere: A100.
    pub const SM_80: Arch = Arch(&TABLE[0]);
    /// Hopper: H100, H200.
    pub const SM_90: Arch = Arch(&TABLE[3]);
    /// Blackwell: B100, B200.
    pub const SM_100: Arch = Arch(&TABLE[5]);

    /// What is built where nothing else is asked for: one file for each generation that the project supports.
    pub const DEFAULT: [Arch; 3] = [Arch::SM_80, Arch::SM_90, Arch::SM_100];

    /// Every architecture that the builder knows, oldest first.
    pub fn all() -> impl Iterator<Item = Arch> {
        TABLE.iter().map(Arch)
    }

    /// `sm_90`
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// 90 for `sm_90` and `sm_90a`.
    pub fn number(self) -> u32 {
        self.0.number
    }

    /// Flags for rustc that select this architecture, and `--cfg warpwire_sm90` from `sm_90` on.
    pub(crate) fn flags(self) -> Vec<String> {
        let mut flags = vec![format!("-Ctarget-cpu={}", self.0.name)];
        if let Some(feature) = self.0.ptx_feature {
            flags.push(format!("-Ctarget-feature=+{feature}"));
        }
        if self.0.number >= 90 {
            flags.push("--cfg=warpwire_sm90".into());
        }
        flags
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

/// A name that is none of [`Arch::all`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown architecture `{0}`; known are {known}", known = Arch::all().map(Arch::name).collect::<Vec<_>>().join(", "))]
pub struct UnknownArch(pub String);

impl FromStr for Arch {
    type Err = UnknownArch;

    fn from_str(name: &str) -> Result<Arch, UnknownArch> {
        Arch::all().find(|arch| arch.name() == name.trim()).ok_or_else(|| UnknownArch(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_the_rows_they_name() {
        assert_eq!(Arch::DEFAULT.map(Arch::name), ["sm_80", "sm_90", "sm_100"]);
        assert_eq!("sm_90a".parse::<Arch>().unwrap().number(), 90);
        assert!("sm_91".parse::<Arch>().unwrap_err().to_string().contains("sm_90a"));
    }

    #[test]
    fn hopper_code_is_only_compiled_from_hopper_on() {
        let has = |arch: Arch| arch.flags().iter().any(|flag| flag == "--cfg=warpwire_sm90");
        assert!(!has(Arch::SM_80) && has(Arch::SM_90) && has(Arch::SM_100));
    }
}
