//! The steps, in order: what is quick comes first.

use super::cargo::{all, cargo, counted, verdict};
use super::{Context, Outcome, Step, dynamic};
use crate::spinner::Spinner;
use crate::{build_ptx, cuda_link, layers, packages, rdma as machines, verbs_build, workspace};
use anyhow::Result;
use std::process::ExitCode;
use warpwire_build::toolchain;

/// Every step.
pub const ALL: &[Step] = &[
    Step { name: "fmt", about: "the sources are formatted", run: format },
    Step { name: "layers", about: "imports go one way", run: imports },
    Step { name: "clippy", about: "no warning, in any combination of features", run: clippy },
    Step { name: "doc", about: "the documentation builds without a warning", run: doc },
    Step { name: "ptx", about: "the committed PTX is what the kernels give", run: ptx },
    Step {
        name: "test",
        about: "unit, doc, property, loom, golden, compile-fail and CPU-device tests",
        run: test,
    },
    Step { name: "cuda", about: "what the CUDA device asks of a driver, without a GPU", run: cuda },
    Step {
        name: "rdma",
        about: "InfiniBand tests on a software adapter, in one machine and in two",
        run: rdma,
    },
    Step { name: "thread", about: "ThreadSanitizer", run: dynamic::thread },
    Step { name: "memory", about: "AddressSanitizer, or valgrind", run: dynamic::memory },
    Step { name: "miri", about: "Miri on the device crate", run: dynamic::miri },
    Step { name: "deny", about: "licences and known faults of dependencies", run: deny },
];

fn format(_: &Context) -> Result<Outcome> {
    verdict(&mut cargo(&["fmt", "--all", "--check"]))
}

fn imports(_: &Context) -> Result<Outcome> {
    let violations = layers::violations(&workspace::root())?;
    for violation in &violations {
        println!("{violation}");
    }
    Ok(match violations.len() {
        0 => Outcome::Passed(Default::default()),
        count => Outcome::Failed(format!("{count} violations")),
    })
}

fn clippy(context: &Context) -> Result<Outcome> {
    let mut combinations: Vec<Vec<&str>> = vec![
        vec!["--workspace", "--all-targets"],
        vec!["--package", "warpwire-build", "--no-default-features"],
    ];
    match cuda_link::provide(context.install) {
        Ok(how) => {
            println!("{how}");
            let features = "warpwire/cuda,warpwire-runner/cuda,warpwire-tests/cuda,halo/cuda,ping/cuda";
            combinations.push(vec!["--workspace", "--all-targets", "--features", features]);
        }
        Err(error) => println!("without the feature cuda: {error:#}"),
    }
    let verbs = provide_verbs(context.install);
    match &verbs {
        Ok(_) => {
            combinations.push(vec!["--package", "warpwire", "--all-targets", "--features", "warpwire/ib"])
        }
        Err(error) => println!("without the feature ib: {error:#}"),
    }
    let verbs = verbs.unwrap_or_default();
    all(combinations.iter().map(|combination| {
        let arguments = [&["clippy"], &combination[..], &["--", "-D", "warnings"]].concat();
        let mut command = cargo(&arguments);
        // Of no account where the feature is off.
        verbs.apply(&mut command);
        verdict(&mut command)
    }))
}

fn provide_verbs(install: bool) -> Result<verbs_build::Environment> {
    let spinner = Spinner::new();
    let provided = verbs_build::provide(&toolchain::tools_folder(&workspace::root()), install, &spinner);
    spinner.clear();
    provided
}

fn doc(_: &Context) -> Result<Outcome> {
    let mut command = cargo(&["doc", "--workspace", "--no-deps"]);
    verdict(command.env("RUSTDOCFLAGS", "-D warnings"))
}

fn ptx(context: &Context) -> Result<Outcome> {
    let args = build_ptx::Args { check: true, ..build_ptx::Args::project(context.install) };
    Ok(if build_ptx::run(&args)? == ExitCode::SUCCESS {
        Outcome::Passed(Default::default())
    } else {
        Outcome::Failed("cargo xtask build-ptx --check".into())
    })
}

fn test(_: &Context) -> Result<Outcome> {
    counted(&mut cargo(&["test", "--workspace"]))
}

fn cuda(context: &Context) -> Result<Outcome> {
    match cuda_link::provide(context.install) {
        Ok(how) => {
            println!("{how}");
            let tests = ["--lib", "--test", "cuda_driver"];
            counted(&mut cargo(
                &[&["test", "--package", "warpwire", "--features", "cuda"], &tests[..]].concat(),
            ))
        }
        Err(missing) => Ok(Outcome::Skipped(format!("{missing:#}"))),
    }
}

fn rdma(context: &Context) -> Result<Outcome> {
    match machines::provide(context.install) {
        Ok(prepared) => machines::step(&prepared).map(Outcome::Passed),
        // Nothing is brought unasked, and CI asks: there a lack is a failure.
        Err(missing) if !context.install => Ok(Outcome::Skipped(format!("{missing:#}"))),
        Err(missing) => Err(missing),
    }
}

fn deny(_: &Context) -> Result<Outcome> {
    if packages::in_path("cargo-deny").is_none() {
        return Ok(Outcome::Skipped("no cargo-deny here; cargo install cargo-deny".into()));
    }
    verdict(&mut cargo(&["deny", "check"]))
}
