//! Runs other programs and turns their failures into errors.

use crate::error::Error;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs to the end and gives what was written to standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, Error> {
    let (stdout, _) = both(command)?;
    Ok(stdout)
}

/// Runs to the end and gives standard output and standard error.
pub(crate) fn both(command: &mut Command) -> Result<(String, String), Error> {
    let done = Command::output(command.stdin(Stdio::null()));
    let failed = |detail: String| Error::Command { command: spelled(command), detail };
    let done = done.map_err(|error| failed(error.to_string()))?;
    let stdout = String::from_utf8_lossy(&done.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
    if done.status.success() {
        return Ok((stdout, stderr));
    }
    let said = if stderr.trim().is_empty() { stdout.trim() } else { stderr.trim() };
    Err(failed(format!("{}\n{said}", done.status).trim_end().to_owned()))
}

/// The command as one would type it.
pub(crate) fn spelled(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Where a program is, looking through `PATH`.
pub(crate) fn in_path(name: impl AsRef<OsStr>) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(Path::new(name.as_ref()))).find(|file| file.is_file())
}
