//! A run as it is kept: every repetition of every contender.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use warpwire::device::Device;

use super::case::{Point, Unit, Who};
use super::statistics::Summary;

/// The version of the format.
const FORMAT: u32 = 1;

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`].
    format: u32,
    /// Where it ran, and when.
    pub machine: Machine,
    /// Repetitions of each case.
    pub repetitions: u32,
    /// The cases, in the order in which they ran.
    pub cases: Vec<CaseRecord>,
}

/// Where and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The device's name.
    pub device: String,
    /// Its multiprocessors.
    pub multiprocessors: u32,
    /// The version of NVIDIA's driver, where there is one and it says so.
    pub driver: Option<String>,
    /// UTC, by the system's clock.
    pub date: String,
    /// warpwire's.
    pub version: String,
}

/// One case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseRecord {
    /// The row that it belongs to.
    pub row: String,
    /// What is measured.
    pub name: String,
    /// With which sizes and shapes.
    pub configuration: String,
    /// What the numbers count.
    pub unit: Unit,
    /// What is aimed at on this device.
    pub aim: Option<f64>,
    /// Its place in a plot.
    pub point: Option<Point>,
    /// One for each contender.
    pub results: Vec<ResultRecord>,
    /// Why there are no results, where there are none.
    pub failure: Option<String>,
}

/// One contender of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultRecord {
    /// Who.
    pub who: Who,
    /// The shape that it chose.
    pub shape: Option<String>,
    /// Every repetition, in the order in which they ran.
    pub values: Vec<f64>,
}

impl Record {
    /// A run on `device` that begins now.
    pub fn new(device: &Device, repetitions: u32) -> Self {
        Self { format: FORMAT, machine: Machine::of(device), repetitions, cases: Vec::new() }
    }

    /// Reads a stored run.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        let record: Self =
            serde_json::from_str(&text).with_context(|| format!("{shown} is no stored run"))?;
        ensure!(record.format == FORMAT, "{shown} has format {}, this program knows {FORMAT}", record.format);
        Ok(record)
    }

    /// Stores the run.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

impl CaseRecord {
    /// What identifies a case in another run.
    pub fn key(&self) -> (&str, &str, &str) {
        (&self.row, &self.name, &self.configuration)
    }

    /// A contender's measurements, summed up.
    pub fn summary(&self, who: Who) -> Option<Summary> {
        Summary::of(&self.results.iter().find(|result| result.who == who)?.values)
    }

    /// Our time over another's.
    pub fn ratio(&self, to: Who) -> Option<f64> {
        Some(self.unit.ratio(self.summary(Who::Ours)?.median, self.summary(to)?.median))
    }
}

impl Machine {
    fn of(device: &Device) -> Self {
        let properties = device.properties();
        let loaded = fs::read_to_string("/proc/driver/nvidia/version").ok();
        Self {
            device: properties.name.clone(),
            multiprocessors: properties.multiprocessors,
            driver: loaded.as_deref().and_then(driver_version).map(str::to_owned),
            date: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// The version in what the kernel module says of itself: the first word of digits and points.
fn driver_version(text: &str) -> Option<&str> {
    let is_version = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.lines().find(|line| line.contains("NVRM"))?.split_whitespace().find(is_version)
}

#[cfg(test)]
mod tests {
    use warpwire::device::DeviceSelector;

    use super::*;

    #[test]
    fn a_run_comes_back_as_stored() {
        let device = Device::open(DeviceSelector::Cpu).unwrap();
        let mut record = Record::new(&device, 9);
        record.cases.push(CaseRecord {
            row: "put".into(),
            name: "put".into(),
            configuration: "1 KiB".into(),
            unit: Unit::GigabytesPerSecond,
            aim: Some(3.5),
            point: Some(Point { curve: "put".into(), bytes: 1024 }),
            results: vec![
                ResultRecord { who: Who::Ours, shape: Some("8 x 1024".into()), values: vec![4.0, 2.0, 3.0] },
                ResultRecord { who: Who::Baseline, shape: None, values: vec![1.5] },
            ],
            failure: None,
        });
        let path = std::env::temp_dir().join(format!("warpwire-bench-{}.json", std::process::id()));
        record.write(&path).unwrap();
        let read = Record::read(&path).unwrap();
        assert_eq!(read, record);
        assert_eq!(read.cases[0].ratio(Who::Baseline), Some(0.5));
        assert_eq!(read.cases[0].ratio(Who::Driver), None);
        let other = fs::read_to_string(&path).unwrap().replace("\"format\": 1", "\"format\": 99");
        fs::write(&path, other).unwrap();
        assert!(Record::read(&path).unwrap_err().to_string().contains("99"));
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn the_drivers_version_is_found() {
        let text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\nGCC version: 12.2.0";
        assert_eq!(driver_version(text), Some("580.159.04"));
        assert_eq!(driver_version("GCC version: 12.2.0"), None);
    }
}
