//! Connections by mapped memory over CUDA's driver, without a GPU: what they ask of a driver, whatever it lacks. The driver is a
//! stand-in, which a child of this program finds in place of the real one.
#![cfg(feature = "cuda")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use warpwire::abi::Rank;
use warpwire::bootstrap::{LocalBootstrap, Tag};
use warpwire::communicator::Communicator;
use warpwire::connection::EndpointConfig;
use warpwire::device::{Device, DeviceSelector};
use warpwire::memory::Transports;

#[path = "support/process.rs"]
mod process;

use process::{Child, command, role, tell_parent};

const LONG: Duration = Duration::from_secs(60);

/// Updates of a child, each behind a write, and those that follow without one: more than are staged where words are copied.
const UPDATES: u64 = 50;
const MORE: u64 = 500;

/// What a child does.
#[test]
fn child() {
    if role().is_some() {
        connect_and_write();
    }
}

/// A connection of a rank to itself: everything asked of it arrives in order.
fn connect_and_write() {
    let device = Device::open(DeviceSelector::Cuda(0)).unwrap();
    let bootstrap = LocalBootstrap::group(1).unwrap().remove(0);
    let communicator = Communicator::new(Arc::new(bootstrap), &device).unwrap();
    let mut pending = communicator.connect(EndpointConfig::CudaIpc, Rank(0), Tag(1)).unwrap();
    let connection = pending.wait(LONG).unwrap();
    let allocate = || device.allocate_shareable::<u64>(1000).unwrap();
    let (from, to, words) = (allocate(), allocate(), allocate());
    let register = |buffer| communicator.register_memory(buffer, Transports::CUDA_IPC).unwrap();
    let (source, target, word) = (register(&from), register(&to), register(&words));
    for round in 1..=UPDATES {
        from.write(&vec![round; 1000]).unwrap();
        connection.write(&target, 8, &source, 16, 7000 + round).unwrap();
        connection.update(&word, 24, round).unwrap();
        connection.flush(LONG).unwrap();
        assert_eq!(words.read().unwrap()[3], round);
        assert_eq!(to.read().unwrap()[1..875], [round; 874]);
    }
    (1..=MORE).for_each(|more| connection.update(&word, 24, UPDATES + more).unwrap());
    let mark = connection.mark().unwrap();
    connection.flush(LONG).unwrap();
    assert!(connection.is_complete(mark).unwrap());
    assert_eq!(words.read().unwrap()[3], UPDATES + MORE);
    tell_parent(&(words.address().address() + 24).to_string());
}

/// What the driver was asked, in order: each with the two numbers of the stand-in's notes.
type Asked = Vec<(String, [u64; 2])>;

/// Runs a child over a driver that lacks this, and gives where its word lies and what its driver was asked; none, with the reason
/// printed, where there is no C compiler, or where the program is linked with the driver itself and not with what looks for it.
fn asked_of_a_driver_without(lacking: &str) -> Option<(u64, Asked)> {
    if !option_env!("CUDA_LIBRARY_PATH").is_some_and(|path| path.ends_with("target/cuda-link")) {
        println!("skipped: this program is not linked by `cargo xtask cuda-link`");
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cuda-without-{lacking}"));
    fs::create_dir_all(&folder).unwrap();
    let log = folder.join("log");
    if log.exists() {
        fs::remove_file(&log).unwrap();
    }
    stand_in(&folder.join("libcuda.so.1"))?;
    let mut command = command("connect and write");
    command.env("LD_LIBRARY_PATH", &folder);
    command.env("WARPWIRE_STAND_IN_LACKS", lacking).env("WARPWIRE_STAND_IN_LOG", &log);
    let mut child = Child::spawn(&mut command).unwrap();
    let word = child.hear().parse().unwrap();
    child.end();
    let asked = fs::read_to_string(&log).unwrap();
    let parse = |line: &str| {
        let mut parts = line.split(' ');
        let what = parts.next().unwrap().to_owned();
        (what, [(); 2].map(|()| parts.next().unwrap().parse().unwrap()))
    };
    Some((word, asked.lines().map(parse).collect()))
}

/// The stand-in, compiled.
fn stand_in(library: &Path) -> Option<()> {
    let source: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda/driver.c");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-O1", "-o"]).arg(library).arg(source);
    match compile.status() {
        Ok(status) => {
            assert!(status.success(), "the stand-in does not compile");
            Some(())
        }
        Err(error) => {
            println!("skipped: no C compiler ({error})");
            None
        }
    }
}

fn count(asked: &Asked, what: &str, matches: impl Fn(&[u64; 2]) -> bool) -> u64 {
    asked.iter().filter(|(asked, numbers)| asked == what && matches(numbers)).count() as u64
}

/// One call a word: the word first, then the progress, which is always the same word.
#[test]
fn a_word_and_its_mark_are_one_call() {
    let Some((word, asked)) = asked_of_a_driver_without("nothing") else { return };
    let both = count(&asked, "words", |[first, second]| *first == word && *second != word);
    assert_eq!(both, UPDATES + MORE);
    let progress: Vec<u64> =
        asked.iter().filter(|(what, _)| what == "words").map(|(_, [_, second])| *second).collect();
    assert!(progress.iter().all(|second| *second == progress[0]), "the mark's word moves");
    assert_eq!(count(&asked, "word", |[address, _]| *address == word), 0);
}

/// Two calls a word, in the same order.
#[test]
fn a_driver_without_batches_is_asked_twice() {
    let Some((word, asked)) = asked_of_a_driver_without("batches") else { return };
    assert_eq!(count(&asked, "words", |_| true), 0);
    let words: Vec<_> = asked.iter().filter(|(what, _)| what == "word").map(|(_, numbers)| numbers).collect();
    let at: Vec<usize> = (0..words.len()).filter(|&i| words[i][0] == word).collect();
    assert_eq!(at.len() as u64, UPDATES + MORE);
    let values: Vec<u64> = at.iter().map(|&i| words[i][1]).collect();
    assert!(values.iter().copied().eq(1..=UPDATES + MORE), "words are set in another order");
    // Behind each, and before the next, its mark.
    assert!(
        at.iter().all(|&i| words.get(i + 1).is_some_and(|next| next[0] != word)),
        "a word without a mark"
    );
}

/// Words arrive by copies, from memory that is not used again before.
#[test]
fn a_driver_whose_streams_set_no_words_is_asked_to_copy_them() {
    let Some((word, asked)) = asked_of_a_driver_without("words") else { return };
    assert_eq!(count(&asked, "words", |_| true) + count(&asked, "word", |_| true), 0);
    assert_eq!(count(&asked, "copy", |numbers| *numbers == [word, 8]), UPDATES + MORE);
}
