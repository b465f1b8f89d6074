//! Kernel modules and the order in which they have to be inserted.
//!
//! The package of a kernel has no `modules.dep`: that is made when it is installed. So this reads what the modules say
//! themselves, in their section `.modinfo`: texts `name=value`, each ended by a zero.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of one kernel.
#[derive(Debug)]
pub struct Modules {
    files: BTreeMap<String, PathBuf>,
    /// Compiled into the kernel.
    builtin: Vec<String>,
}

impl Modules {
    /// Those below `folder`, a `lib/modules/VERSION`.
    pub fn of(folder: &Path) -> Result<Modules> {
        let mut files = BTreeMap::new();
        collect(folder, &mut files)?;
        let builtin = fs::read_to_string(folder.join("modules.builtin")).unwrap_or_default();
        Ok(Modules { files, builtin: builtin.lines().filter_map(|line| name_of(Path::new(line))).collect() })
    }

    /// The files of the modules named and of all that they need, each after what it needs.
    pub fn in_order(&self, wanted: &[&str]) -> Result<Vec<PathBuf>> {
        let mut order = Vec::new();
        for name in wanted {
            self.visit(&canonical(name), &mut vec![], &mut order)?;
        }
        Ok(order)
    }

    fn visit(&self, name: &str, path: &mut Vec<String>, order: &mut Vec<PathBuf>) -> Result<()> {
        let Some(file) = self.files.get(name) else {
            if self.builtin.iter().any(|builtin| builtin == name) {
                return Ok(());
            }
            bail!("this kernel has no module {name}");
        };
        if order.contains(file) {
            return Ok(());
        }
        if path.iter().any(|above| above == name) {
            bail!("the module {name} needs itself, by way of {}", path.join(", "));
        }
        path.push(name.to_owned());
        let image = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        for needed in depends(&image) {
            self.visit(&needed, path, order)?;
        }
        path.pop();
        order.push(file.clone());
        Ok(())
    }
}

fn collect(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for item in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let item = item?;
        // Not its target's: a `build` there links to the whole of the kernel's headers.
        if item.file_type()?.is_dir() {
            collect(&item.path(), files)?;
        } else if let Some(name) = name_of(&item.path()) {
            files.insert(name, item.path());
        }
    }
    Ok(())
}

/// `ib_core` of `kernel/…/ib_core.ko`; `None` for other files, compressed modules among them.
fn name_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.strip_suffix(".ko")?;
    Some(canonical(name))
}

/// Module names have underscores, file names sometimes hyphens.
fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

/// What a module's `depends=` names.
fn depends(image: &[u8]) -> Vec<String> {
    const MARK: &[u8] = b"\0depends=";
    let at = image.windows(MARK.len()).position(|window| window == MARK);
    let value = at.map_or(&[][..], |at| &image[at + MARK.len()..]);
    let value = value.split(|byte| *byte == 0).next().unwrap_or_default();
    let names = String::from_utf8_lossy(value);
    names.split(',').filter(|name| !name.is_empty()).map(canonical).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(modules: &[(&str, &str)]) -> (Modules, PathBuf) {
        let folder = std::env::temp_dir().join(format!("warpwire-modules-{}", std::process::id()));
        let folder = folder.join(modules[0].0);
        fs::create_dir_all(folder.join("kernel")).unwrap();
        for (name, needs) in modules {
            let image = format!("ELF\0license=GPL\0depends={needs}\0retpoline=Y\0");
            fs::write(folder.join(format!("kernel/{name}.ko")), image).unwrap();
        }
        fs::write(folder.join("modules.builtin"), "kernel/lib/crc16.ko\n").unwrap();
        (Modules::of(&folder).unwrap(), folder)
    }

    fn names(order: &[PathBuf]) -> Vec<String> {
        order.iter().filter_map(|path| name_of(path)).collect()
    }

    #[test]
    fn what_is_needed_comes_first_and_once() {
        let (modules, folder) = kernel(&[
            ("rxe", "ib-core,udp_tunnel"),
            ("ib-core", "crc16"),
            ("udp_tunnel", ""),
            ("uverbs", "ib_core"),
        ]);
        let order = modules.in_order(&["uverbs", "rxe"]).unwrap();
        assert_eq!(names(&order), ["ib_core", "uverbs", "udp_tunnel", "rxe"]);
        let error = modules.in_order(&["mlx5_ib"]).unwrap_err().to_string();
        assert!(error.contains("mlx5_ib"), "{error}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_circle_is_an_error() {
        let (modules, folder) = kernel(&[("a", "b"), ("b", "a")]);
        assert!(modules.in_order(&["a"]).unwrap_err().to_string().contains("needs itself"));
        fs::remove_dir_all(folder).unwrap();
    }
}
