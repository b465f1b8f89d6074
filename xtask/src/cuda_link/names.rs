//! The driver's functions that cust's bindings name.

use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The crate with the bindings.
const BINDINGS: &str = "cust_raw";

/// Reads the names out of the sources that this workspace's Cargo.lock settles on.
pub fn of_bindings(root: &Path) -> Result<BTreeSet<String>> {
    let source = bindings_source(root)?;
    let text = fs::read_to_string(&source).with_context(|| format!("cannot read {}", source.display()))?;
    let names = parse(&text);
    if names.is_empty() {
        bail!("{} declares no function of the CUDA driver", source.display());
    }
    Ok(names)
}

fn bindings_source(root: &Path) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--features", "cuda", "--manifest-path"])
        .arg(root.join("host/Cargo.toml"))
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let package = packages.iter().find(|package| package["name"] == BINDINGS);
    let package =
        package.with_context(|| format!("the host crate's feature `cuda` does not bring {BINDINGS}"))?;
    let manifest = package["manifest_path"].as_str().context("a package without a manifest")?;
    Ok(Path::new(manifest).with_file_name("src").join("cuda.rs"))
}

/// Every `pub fn cu…` of a file of bindings.
fn parse(text: &str) -> BTreeSet<String> {
    let declared = text.lines().filter_map(|line| line.trim_start().strip_prefix("pub fn "));
    let names = declared.filter_map(|rest| {
        let len = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        rest.get(..len).filter(|name| name.starts_with("cu"))
    });
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_bindings() {
        let text = "extern \"C\" {\n    pub fn cuInit(Flags: u32) -> CUresult;\n}\nextern \"C\" {\n    pub fn cuMemAlloc_v2(\n        dptr: *mut u64,\n    ) -> CUresult;\n    pub fn other();\n}";
        assert_eq!(parse(text).into_iter().collect::<Vec<_>>(), ["cuInit", "cuMemAlloc_v2"]);
    }
}
