//! The module for AMD GPUs, without one: what it says where there is no runtime, and what it asks of one.
#![cfg(feature = "hip")]

use std::path::{Path, PathBuf};
use std::process::Command;

use warpwire::abi::ElementType;
use warpwire::hip::Runtime;
use warpwire::{Error, ErrorKind};

/// The stand-in, compiled; none where there is no C compiler.
fn stand_in() -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hip/runtime.c");
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libstand_in_hip.so");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source);
    match compile.status() {
        Ok(status) => {
            assert!(status.success(), "the stand-in does not compile");
            Some(library)
        }
        Err(error) => {
            eprintln!("skipped: no C compiler ({error})");
            None
        }
    }
}

#[test]
fn without_a_runtime_the_error_says_so() {
    let error = Runtime::open_at(Path::new("/nowhere/libamdhip64.so"), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let text = error.to_string();
    assert!(text.contains("libamdhip64.so") && text.contains("install ROCm"), "{text}");
}

/// On this machine, whatever it has.
#[test]
fn without_a_gpu_the_error_says_so() {
    match Runtime::open(0) {
        Ok(runtime) => eprintln!("skipped: there is an AMD GPU here: {runtime:?}"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            let text = error.to_string();
            assert!(text.contains("libamdhip64.so") || text.contains("no AMD GPU 0"), "{text}");
        }
    }
}

#[test]
fn kernels_are_launched_with_their_arguments() {
    let Some(library) = stand_in() else { return };
    let runtime = Runtime::open_at(&library, 0).unwrap();
    let converter = runtime.converter().unwrap();
    for count in [1, 4, 1023, 100_000] {
        let halves: Vec<u16> = (0..count).map(|i| (i * 257) as u16).collect();
        let from = runtime.upload(&halves).unwrap();
        let to = runtime.allocate(count).unwrap();
        converter.convert((&from, ElementType::F16), (&to, ElementType::E4m3B15), count).unwrap();
        let codes: Vec<u8> = to.download().unwrap();
        assert!(codes.iter().zip(&halves).all(|(&code, half)| code == half.to_be_bytes()[0]));
        let back = runtime.allocate(2 * count).unwrap();
        converter.convert((&to, ElementType::E4m3B15Extended), (&back, ElementType::F16), count).unwrap();
        let halves: Vec<u16> = back.download().unwrap();
        assert!(halves.iter().zip(&codes).all(|(half, &code)| *half == u16::from(code) << 8));
    }
}

#[test]
fn what_cannot_be_is_an_error() {
    let Some(library) = stand_in() else { return };
    let runtime = Runtime::open_at(&library, 0).unwrap();
    assert!(Runtime::open_at(&library, 1).unwrap_err().to_string().contains("no AMD GPU 1"));
    assert!(matches!(runtime.allocate(0), Err(Error::EmptyAllocation)));
    let error = runtime.allocate(1 << 40).unwrap_err();
    assert!(matches!(&error, Error::Driver { name, .. } if name == "hipErrorOutOfMemory"), "{error}");
    let converter = runtime.converter().unwrap();
    let (from, to) = (runtime.allocate(16).unwrap(), runtime.allocate(8).unwrap());
    let error = converter.convert((&from, ElementType::F32), (&to, ElementType::U8), 4).unwrap_err();
    assert!(error.to_string().contains("from f32 to u8"), "{error}");
    let error = converter.convert((&from, ElementType::F16), (&to, ElementType::E4m3B15), 9).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}
