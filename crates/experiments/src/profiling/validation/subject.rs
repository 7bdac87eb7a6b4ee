//! Switches under test, with the profile that was found for them and predicts their behaviour.
use super::super::{case, grid, hidden, measured};
use crate::{ExperimentError, ExperimentRun, ExternalSwitch};
use std::path::Path;
use std::time::Duration;
use weir_model::switch::device::SwitchModel;
use weir_openflow::Version;
use weir_profile::{MatchLayers, Profile};
use weir_profiler::validation::KnownSwitchTiming;
use weir_profiler::{
    DeviceUnderTest, LiveDevice, MeasurementGrid, MeasurementOptions, MeasurementParts, MeasurementSettings,
    ProfileMetadata, ProfilerError, ProgressReporter, RawDataStore, RigDelayTable, RigSource, VirtualTimeSwitch,
};

/// Entries used beyond the levels with a known size, if not all levels have one.
const MORE: u64 = 400;
/// Used share of the room, in tenths, so that no entry is rejected.
const TENTHS: u64 = 9;
/// Maximum number of entries in a series.
const MOST: u64 = 2000;
/// Length in bytes and interval in seconds of the packets whose delay determines how often others can be sent.
const ASKED: weir_model::switch::forward::PacketConditions =
    weir_model::switch::forward::PacketConditions { gap_s: 5e-3, entries: 1.0, bytes: 64.0 };

/// Message for a device without a channel whose commands are to be measured.
const NO_COMMANDS: &str = "--data without --switch: found a device without OpenFlow, such as a bridge, expected one \
    that takes commands; model-validation-data measures its packets";

/// Bits of a seed below the number of the model.
const MODEL_BITS: u32 = 40;

/// A switch, and what was found about it.
pub(super) struct ValidationSubject {
    /// Name in figures.
    pub(super) name: String,
    pub(super) device: Box<dyn DeviceUnderTest>,
    /// Profile that predicts the switch.
    pub(super) found: Profile,
    pub(super) known: KnownSwitchTiming,
    /// Delay of the measuring setup itself, which is not part of the switch.
    pub(super) rig: RigDelayTable,
    /// Settings for measuring both switch and model.
    pub(super) settings: MeasurementSettings,
    /// Longest time between packets; `None` in virtual time, where waiting is free.
    pub(super) longest_gap: Option<Duration>,
}

/// Part of a switch that the profile must cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValidatedPlane {
    Control,
    Data,
}

impl ValidatedPlane {
    /// Returns the name of what is compared, in the plural.
    pub(super) fn things(self) -> &'static str {
        match self {
            ValidatedPlane::Control => "commands",
            ValidatedPlane::Data => "packets",
        }
    }

    fn parts(self) -> MeasurementParts {
        match self {
            ValidatedPlane::Control => MeasurementParts { data: false, ..MeasurementParts::ALL },
            ValidatedPlane::Data => MeasurementParts { control: false, tables: false, data: true },
        }
    }

    fn grid(self, full: bool) -> MeasurementGrid {
        match self {
            ValidatedPlane::Control => grid(if full { 10 } else { 4 }),
            ValidatedPlane::Data => MeasurementGrid {
                gaps_us: vec![100, 300, 1000, 3000, 10_000, 30_000],
                bytes: vec![64, 512, 1500],
                ..grid(1)
            },
        }
    }
}

fn failed(what: &str) -> impl Fn(ProfilerError) -> ExperimentError + '_ {
    move |error| ExperimentError::Case(format!("{what}: {error}"))
}

impl ValidationSubject {
    /// Returns hidden switch `number` and the profile that the profiler finds for it, or `None` if stopped.
    pub(super) fn hidden(
        run: &mut ExperimentRun<'_>,
        number: u32,
        plane: ValidatedPlane,
    ) -> Result<Option<ValidationSubject>, ExperimentError> {
        let truth = hidden::profile(run.options.seed, number)?;
        let name = case(number, &truth);
        run.tell(&format!("{name}: profiling it"));
        let grid = plane.grid(run.options.full);
        let Some((measurement, found)) = measured(run, &truth, number, grid, plane.parts())? else { return Ok(None) };
        let device = VirtualTimeSwitch::new(&truth, 3, run.options.seed ^ u64::from(number)).map_err(failed(&name))?;
        let delays_s = measurement.sizes.map_or(Vec::new(), |sizes| sizes.delays_s);
        let known = KnownSwitchTiming::of(&found, delays_s);
        let settings = MeasurementSettings {
            finest: Duration::from_micros(10),
            grace: Duration::from_millis(2),
            resolution: 1.0 / 50.0,
            seed: run.options.seed,
            ..MeasurementSettings::default()
        };
        Ok(Some(ValidationSubject {
            name,
            device: Box::new(device),
            found,
            known,
            rig: RigDelayTable::default(),
            settings,
            longest_gap: None,
        }))
    }

    /// Returns an external switch and its profile, or `None` if stopped.
    pub(super) fn live(
        run: &mut ExperimentRun<'_>,
        switch: &ExternalSwitch,
        plane: ValidatedPlane,
    ) -> Result<Option<ValidationSubject>, ExperimentError> {
        if plane == ValidatedPlane::Control && switch.target.is_none() {
            return Err(ExperimentError::Case(NO_COMMANDS.to_owned()));
        }
        let name = switch.target.as_ref().map_or_else(|| switch.data.join(","), ToString::to_string);
        let settings = MeasurementSettings { seed: run.options.seed, ..MeasurementSettings::default() };
        let versions = [Version::V13, Version::V10];
        let device = match &switch.target {
            Some(target) => LiveDevice::open(target, &switch.data, &versions, settings.patience),
            None => LiveDevice::without_channel(&switch.data),
        };
        let mut device = device.map_err(failed(&name))?;
        let grid = MeasurementGrid { trial_ms: 0, ..MeasurementGrid::quick() };
        let cancel = run.options.cancel.clone();
        let rig = RigDelayTable::find(&RigSource::Auto, &switch.data, &grid, &mut || cancel.is_cancelled());
        let rig = match rig {
            Err(ProfilerError::Stopped) => return Ok(None),
            other => other.map_err(failed("the rig's own delay"))?,
        };
        let (found, known) = match &switch.profile {
            Some(file) => {
                let found =
                    Profile::find(&file.to_string_lossy(), Path::new("")).map_err(|error| case_of(&name, &error))?;
                let known = KnownSwitchTiming::of(&found, delays_s(&found));
                (found, known)
            }
            None => match profiled(run, &mut device, (settings, grid), plane, &rig)? {
                Some(found) => found,
                None => return Ok(None),
            },
        };
        let longest_gap = Some(Duration::from_millis(20));
        Ok(Some(ValidationSubject { name, device: Box::new(device), found, known, rig, settings, longest_gap }))
    }

    /// Returns a switch in virtual time that behaves like the profile, with the random numbers of this model.
    pub(super) fn model(&self, number: u64) -> Result<VirtualTimeSwitch, ProfilerError> {
        VirtualTimeSwitch::new(&self.found, 3, self.settings.seed ^ (number << MODEL_BITS))
    }

    /// Returns the kinds of the entries that packets are sent to.
    pub(super) fn kinds(&self) -> &'static [MatchLayers] {
        if self.device.version().is_some() { &MatchLayers::ALL } else { &[MatchLayers::L2] }
    }

    /// Returns the maximum number of entries in a series.
    pub(super) fn room(&self) -> u32 {
        room(self.known.tables.as_ref())
    }
}

fn case_of(name: &str, error: &impl std::fmt::Display) -> ExperimentError {
    ExperimentError::Case(format!("{name}: {error}"))
}

fn room(tables: Option<&SwitchModel>) -> u32 {
    let levels = tables.map_or(&[][..], |tables| &tables.levels[..]);
    let sized: u64 = levels.iter().filter_map(|level| level.size).sum();
    let has_end = !levels.is_empty() && levels.iter().all(|level| level.size.is_some());
    let room = if has_end { sized * TENTHS / 10 } else { sized + MORE };
    u32::try_from(room.clamp(4, MOST)).unwrap_or(4)
}

/// Returns the delay of packets in each level by a profile, in seconds.
fn delays_s(profile: &Profile) -> Vec<f64> {
    let of = |level: &Option<weir_profile::LevelForwarding>| {
        let law = level.as_ref().and_then(|law| law.forward(MatchLayers::L2L3, ASKED).ok());
        law.map_or(0.0, |forwarded| forwarded.delay_s)
    };
    profile.forwarding.iter().map(of).collect()
}

/// Profiles a live switch within minutes.
fn profiled(
    run: &mut ExperimentRun<'_>,
    device: &mut LiveDevice,
    (settings, grid): (MeasurementSettings, MeasurementGrid),
    plane: ValidatedPlane,
    rig: &RigDelayTable,
) -> Result<Option<(Profile, KnownSwitchTiming)>, ExperimentError> {
    let cancel = run.options.cancel.clone();
    let mut stop = || cancel.is_cancelled();
    let mut phase = String::new();
    let mut tell = |at: &weir_profiler::MeasurementProgress<'_>| {
        if at.phase != phase {
            phase = at.phase.to_owned();
            (run.progress)(&format!("profiling the switch: {phase}"));
        }
    };
    let options = MeasurementOptions {
        settings,
        grid,
        parts: plane.parts(),
        ports: Vec::new(),
        stop: &mut stop,
        progress: ProgressReporter::new(&mut tell),
    };
    let (mut measurement, ended) = weir_profiler::measure(device, options, &mut RawDataStore::none());
    match ended {
        Err(ProfilerError::Stopped) => return Ok(None),
        other => other.map_err(failed("profiling the switch"))?,
    }
    measurement.rig = rig.clone();
    let about = ProfileMetadata {
        name: "found".to_owned(),
        source: "this experiment".to_owned(),
        ..ProfileMetadata::default()
    };
    let found = measurement.profile(&about).map_err(failed("the switch's profile"))?;
    measurement.notes().into_iter().for_each(|note| run.note(format!("profile: {note}")));
    let delays_s = measurement.sizes.map_or(Vec::new(), |sizes| sizes.delays_s);
    let known = KnownSwitchTiming::of(&found, delays_s);
    Ok(Some((found, known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_not_filled() {
        let tables = |text: &str| {
            let text = format!("name = \"x\"\ndevice = \"x\"\norigin = \"assumed\"\nsource = \"x\"\n{text}");
            Profile::parse(&text, "x").unwrap().tables
        };
        let level = |size: &str| format!("[[level]]\nname = \"l{}\"\n{size}\nwrite = \"1ms\"\n", size.len());
        assert_eq!(room(tables(&(level("size = 100") + &level("size = 1100"))).as_ref()), 1080);
        assert_eq!(room(tables(&(level("size = 100") + &level(""))).as_ref()), 500);
        assert_eq!(room(None), 400);
        assert_eq!(room(tables(&level("size = 9000")).as_ref()), 2000);
    }
}
