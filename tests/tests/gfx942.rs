//! The conversions for gfx942, by executing the committed assembly on every input.

use std::io::Write;
use std::path::{Path, PathBuf};

use warpwire_tests::gfx942::{Function, Machine};
use warpwire_tests::tables::{Reading, decoded, encoded};

/// What `cargo xtask build-hip` wrote.
const ASSEMBLY: &str = include_str!("../../ptx/gfx942/e4m3b15.s");
const MANIFEST: &str = include_str!("../../ptx/gfx942/manifest.json");

/// The two readings, and what the functions call them.
const READINGS: [(Reading, &str); 2] =
    [(Reading::Standard, "e4m3b15"), (Reading::Extended, "e4m3b15_extended")];

fn function(name: &str) -> Function {
    Function::find(ASSEMBLY, name).unwrap_or_else(|fault| panic!("{name}: {fault}"))
}

/// Says how much a test covered, past the harness.
fn covered(what: &str, count: usize) {
    // Where nobody reads standard error, nobody misses the line.
    let _ = writeln!(std::io::stderr(), "{what}: {count} covered");
}

/// All 65,536 inputs in each of the lanes of an x2 and an x4 conversion, with others around.
#[test]
fn every_f16_encodes_as_the_table_says() {
    let mut count = 0;
    for (reading, name) in READINGS {
        let table = encoded(reading);
        let (two, four) =
            (function(&format!("warpwire_f16x2_to_{name}")), function(&format!("warpwire_f16x4_to_{name}")));
        for first in 0..=u16::MAX {
            let halves: [u16; 4] = std::array::from_fn(|lane| first.wrapping_add(lane as u16 * 0x4321));
            let words = [0, 2].map(|k| u32::from(halves[k]) | u32::from(halves[k + 1]) << 16);
            let expected = u32::from_le_bytes(halves.map(|half| table[usize::from(half)]));
            assert_eq!(Machine::call(&two, &words[..1])[0], expected & 0xFFFF, "{name}, {halves:04x?}");
            assert_eq!(Machine::call(&four, &words)[0], expected, "{name}, {halves:04x?}");
            count += 6;
        }
    }
    covered("f16 inputs on gfx942, in lanes", count);
}

/// All 256 codes in each of the lanes, with others around.
#[test]
fn every_code_decodes_as_the_table_says() {
    let mut count = 0;
    for (reading, name) in READINGS {
        let table = decoded(reading);
        let (two, four) =
            (function(&format!("warpwire_{name}x2_to_f16")), function(&format!("warpwire_{name}x4_to_f16")));
        for first in 0..=u8::MAX {
            for step in [1, 37, 128] {
                let codes: [u8; 4] =
                    std::array::from_fn(|lane| first.wrapping_add((lane as u8).wrapping_mul(step)));
                let halves = codes.map(|code| u32::from(table[usize::from(code)]));
                let expected = [0, 2].map(|k| halves[k] | halves[k + 1] << 16);
                let word = u32::from_le_bytes(codes);
                assert_eq!(Machine::call(&two, &[word & 0xFFFF])[0], expected[0], "{name}, {codes:02x?}");
                assert_eq!(Machine::call(&four, &[word]), expected, "{name}, {codes:02x?}");
                count += 6;
            }
        }
    }
    covered("codes on gfx942, in lanes", count);
}

#[test]
fn the_conversions_are_what_they_should_be_made_of() {
    let has = |name: &str, opcode: &str| {
        let body = ASSEMBLY.split(&format!("\n{name}:")).nth(1).unwrap().split("s_setpc_b64").next().unwrap();
        body.contains(opcode)
    };
    for (_, name) in READINGS {
        assert!(has(&format!("warpwire_f16x4_to_{name}"), "v_pk_min_u16"));
        assert!(has(&format!("warpwire_f16x4_to_{name}"), "v_perm_b32"));
        assert!(has(&format!("warpwire_{name}x4_to_f16"), "v_perm_b32"));
        // A branch would not be executed above either: the functions are straight.
        assert!(!has(&format!("warpwire_f16x4_to_{name}"), "s_cbranch"));
    }
}

/// The assembly that is executed is that of the sources at hand.
#[test]
fn the_committed_files_are_of_these_sources() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../device/hip");
    let files: Vec<PathBuf> = std::fs::read_dir(sources).unwrap().map(|item| item.unwrap().path()).collect();
    assert!(files.len() >= 3);
    for file in files {
        let (name, contents) = (file.file_name().unwrap().to_str().unwrap(), std::fs::read(&file).unwrap());
        let entry = format!("\"{name}\": \"{}\"", warpwire_build::sha256(&contents));
        assert!(MANIFEST.contains(&entry), "{name} has changed: cargo xtask build-hip");
    }
    let assembly = format!("\"e4m3b15.s\": \"{}\"", warpwire_build::sha256(ASSEMBLY.as_bytes()));
    assert!(MANIFEST.contains(&assembly), "the assembly is not what the manifest says");
}
