//! `weir profile tcp:HOST:PORT --data eth0,eth1`: measures the timing of a switch and writes its profile.
use super::text;
use crate::commands::ofp::time::utc;
use anyhow::Context as _;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use weir_openflow::Version;
use weir_packet::PortNo;
use weir_profiler::{
    LiveDevice, MeasurementGrid, MeasurementOptions, MeasurementParts, MeasurementProgress, MeasurementSettings,
    ProfileMetadata, ProfilerError, ProgressReporter, RawDataStore, RigDelayTable, RigSource, SwitchAddress,
};
use weir_terminal::output;
use weir_terminal::progress::ProgressDisplay;
use weir_terminal::prose::wrapped;
use weir_terminal::signals::{STOPPED, StopSignalHandler};
use weir_units::{Clock as _, Instant, SystemClock, TimeSpan};

/// Maximum size of a grid file in bytes.
const MAX_GRID: u64 = 64 * 1024;

#[derive(clap::Args)]
pub(super) struct ProfileMeasureArgs {
    /// The switch to measure; its flow entries are deleted: tcp:HOST:PORT or unix:PATH to connect to the switch,
    /// ptcp:PORT to let it connect. A device without OpenFlow has none: with --only data its data plane is measured
    #[arg(value_name = "SWITCH")]
    target: Option<SwitchAddress>,
    /// Network interfaces connected to its ports: packets enter by the first and leave by the second. Modified
    /// entries output to the third; without a third, back to the first. Instead of a name, a port such as af_xdp:eth0
    #[arg(long, value_name = "INTERFACE", value_delimiter = ',')]
    data: Vec<String>,
    /// Port numbers of the switch at these interfaces [default: found out]
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    ports: Vec<PortNo>,
    /// Measure fewer sizes with fewer runs: minutes instead of the better part of an hour
    #[arg(long)]
    quick: bool,
    /// Read sizes and numbers of runs from a file; an earlier measurement's are in grid.toml in its folder
    #[arg(long, value_name = "FILE", conflicts_with = "quick")]
    grid: Option<PathBuf>,
    /// Measure only this part
    #[arg(long, value_enum)]
    only: Option<ProfilePart>,
    /// Folder for the profile and the raw runs. A measurement that was stopped continues there
    #[arg(long, value_name = "FOLDER", default_value = "profile")]
    out: PathBuf,
    /// The profile's name [default: that of the folder]
    #[arg(long)]
    name: Option<String>,
    /// OpenFlow version: 1.0 or 1.3 [default: the higher one that both support]
    #[arg(long, value_parser = version)]
    openflow: Option<Version>,
    /// Longest time to wait for any answer of the switch
    #[arg(long, value_name = "TIME", default_value = "60s")]
    patience: TimeSpan,
    /// Delay of the measuring setup itself, which is subtracted from the device's: auto, none, veth (a pair created
    /// for the measurement), IF,IF (two interfaces joined by a cable), a time, or FILE, a report of `weir traffic
    /// --json` without the device. auto: veth if --data are veth interfaces, else none
    #[arg(long, value_name = "RIG", default_value = "auto")]
    rig: RigSource,
    /// Seed of the random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the result as one JSON document, in seconds
    #[arg(long)]
    json: bool,
}

/// A part of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ProfilePart {
    /// Durations of commands and messages
    Control,
    /// Sizes and policies of tables, batches
    Tables,
    /// Delays of packets, throughput
    Data,
}

fn version(text: &str) -> Result<Version, String> {
    match text.parse() {
        Ok(version @ (Version::V10 | Version::V13)) => Ok(version),
        _ => Err(format!("found `{text}`, expected 1.0 or 1.3")),
    }
}

fn grid(measure: &ProfileMeasureArgs) -> anyhow::Result<MeasurementGrid> {
    let Some(path) = &measure.grid else {
        return Ok(if measure.quick { MeasurementGrid::quick() } else { MeasurementGrid::full() });
    };
    let shown = path.display();
    let length = std::fs::metadata(path).with_context(|| format!("--grid: read {shown}"))?.len();
    anyhow::ensure!(length <= MAX_GRID, "--grid {shown}: found {length} bytes, expected at most {MAX_GRID}");
    let text = weir_units::read_text(path).with_context(|| format!("--grid: read {shown}"))?;
    let grid: MeasurementGrid = toml::from_str(&text).with_context(|| format!("--grid {shown}"))?;
    grid.check()?;
    Ok(grid)
}

fn parts(only: Option<ProfilePart>) -> MeasurementParts {
    MeasurementParts {
        control: only.is_none_or(|only| only == ProfilePart::Control),
        tables: only.is_none_or(|only| only == ProfilePart::Tables),
        data: only.is_none_or(|only| only == ProfilePart::Data),
    }
}

fn today() -> String {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let ns = u64::try_from(now.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000);
    utc(ns)[..10].to_owned()
}

pub(super) fn run(measure: &ProfileMeasureArgs) -> anyhow::Result<ExitCode> {
    check(measure)?;
    let grid = grid(measure)?;
    let mut store = RawDataStore::folder(&measure.out, &grid)?;
    let settings =
        MeasurementSettings { patience: measure.patience.0, seed: measure.seed, ..MeasurementSettings::default() };
    let mut live = open(measure)?;
    store.of(&device_label(measure))?;
    let signals = StopSignalHandler::watch()?;
    let rig = match rig(measure, &grid, &store, &mut || signals.cancel.is_cancelled()) {
        Err(ProfilerError::Stopped) => return Ok(ExitCode::from(STOPPED)),
        rig => rig?,
    };
    live.count_sending(rig.has_sending);
    let mut shown = ProfilerProgressDisplay::new();
    let mut tell = |at: &MeasurementProgress<'_>| shown.show_progress(at);
    let mut stop = || signals.cancel.is_cancelled();
    let options = MeasurementOptions {
        settings,
        grid,
        parts: parts(measure.only),
        ports: measure.ports.clone(),
        stop: &mut stop,
        progress: ProgressReporter::new(&mut tell),
    };
    let (mut found, ended) = weir_profiler::measure(&mut live, options, &mut store);
    drop(shown);
    found.rig = rig;
    let profile = found.profile(&about(measure));
    let file = measure.out.join("profile.toml");
    if let Ok(profile) = &profile {
        output::write_file(&file, &profile.to_toml()).with_context(|| format!("--out: write {}", file.display()))?;
    }
    print(measure, &found.summary(), profile.as_ref().ok(), ended.as_ref().err(), &file)?;
    match ended {
        Ok(()) => profile.map(|_| ExitCode::SUCCESS).map_err(Into::into),
        Err(ProfilerError::Stopped) => Ok(ExitCode::from(STOPPED)),
        Err(error) => {
            let kept = "what was measured is kept; the same command goes on from there";
            Err(anyhow::Error::new(error).context(format!("{}: {kept}", measure.out.display())))
        }
    }
}

/// Checks that the options fit together.
///
/// # Errors
/// There is no switch to measure, or an option needs a switch.
fn check(measure: &ProfileMeasureArgs) -> anyhow::Result<()> {
    let is_data_alone = measure.only == Some(ProfilePart::Data);
    anyhow::ensure!(
        measure.target.is_some() || is_data_alone,
        "found no SWITCH, expected one such as tcp:127.0.0.1:6654; or --only data for a device without OpenFlow"
    );
    let is_known = measure.target.is_some() || measure.ports.is_empty() && measure.openflow.is_none();
    anyhow::ensure!(
        is_known,
        "found --ports or --openflow without a SWITCH, expected neither: a device without OpenFlow has none"
    );
    Ok(())
}

fn open(measure: &ProfileMeasureArgs) -> Result<LiveDevice, ProfilerError> {
    let Some(target) = &measure.target else { return LiveDevice::without_channel(&measure.data) };
    let versions = measure.openflow.map_or(vec![Version::V13, Version::V10], |version| vec![version]);
    LiveDevice::open(target, &measure.data, &versions, measure.patience.0)
}

/// Names the measured device and its interfaces.
fn device_label(measure: &ProfileMeasureArgs) -> String {
    let target = measure.target.as_ref().map_or("a device without OpenFlow".to_owned(), SwitchAddress::to_string);
    format!("{target} by interfaces {}", measure.data.join(", "))
}

/// Returns the delay of the measuring setup: the one measured before, unless `--rig` asks for another.
fn rig(
    measure: &ProfileMeasureArgs,
    grid: &MeasurementGrid,
    store: &RawDataStore,
    stop: &mut dyn FnMut() -> bool,
) -> Result<RigDelayTable, ProfilerError> {
    if let (RigSource::Auto, Some(rig)) = (&measure.rig, store.rig()?) {
        return Ok(rig);
    }
    let rig = RigDelayTable::find(&measure.rig, &measure.data, grid, stop)?;
    store.keep_rig(&rig)?;
    Ok(rig)
}

fn about(measure: &ProfileMeasureArgs) -> ProfileMetadata {
    let folder = || measure.out.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = measure.name.clone().or_else(folder).unwrap_or_else(|| "profile".to_owned());
    let grid = if measure.quick { "the quick grid" } else { "its grid" };
    let source = format!("{}, {grid}, seed {}", device_label(measure), measure.seed);
    ProfileMetadata { name, device: String::new(), source, date: Some(today()), runs: Some(PathBuf::from(".")) }
}

fn print(
    measure: &ProfileMeasureArgs,
    summary: &weir_profiler::report::MeasurementSummary,
    profile: Option<&weir_profile::Profile>,
    ended: Option<&ProfilerError>,
    file: &Path,
) -> anyhow::Result<()> {
    if measure.json {
        let document = json!({
            "summary": summary,
            "parameters": profile.map(weir_profile::Profile::parameters),
            "partial": ended.map(ToString::to_string),
            "file": profile.map(|_| file),
        });
        output::print(&(serde_json::to_string_pretty(&document)? + "\n"))?;
        return Ok(());
    }
    let mut said = summary.text();
    if let Some(profile) = profile {
        said.push('\n');
        said.push_str(&text::show(profile));
        said.push_str(&format!("\nThe profile is in {}\n", file.display()));
    }
    if let Some(ended) = ended {
        said.push_str(&format!("Partial: {ended}\n"));
    }
    output::print(&wrapped(&said))?;
    Ok(())
}

/// Progress of a measurement on standard error.
struct ProfilerProgressDisplay {
    display: ProgressDisplay,
    clock: SystemClock,
    phase: String,
    began: Instant,
}

impl ProfilerProgressDisplay {
    fn new() -> ProfilerProgressDisplay {
        let clock = SystemClock::start();
        ProfilerProgressDisplay { display: ProgressDisplay::start(), clock, phase: String::new(), began: clock.now() }
    }

    fn show_progress(&mut self, at: &MeasurementProgress<'_>) {
        let now = self.clock.now();
        if self.phase != at.phase {
            (self.phase, self.began) = (at.phase.to_owned(), now);
        }
        let left = self.left(at, now).map_or_else(String::new, |left| format!(", {} s left", left.as_secs()));
        let done = if at.of > 0 { format!(" ({} of {}{left})", at.done, at.of) } else { String::new() };
        self.display.show(at.phase, &format!("{}: {}{done}", at.phase, at.doing), at.done as u64, at.of as u64);
    }

    /// Estimates the remaining time of the current part from its progress so far.
    fn left(&self, at: &MeasurementProgress<'_>, now: Instant) -> Option<Duration> {
        let share = at.done as f64 / at.of.max(1) as f64;
        (at.of > 0 && share > 0.02).then(|| now.since(self.began).mul_f64((1.0 - share) / share))
    }
}
