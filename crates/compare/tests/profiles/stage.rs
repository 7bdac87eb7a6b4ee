//! A script of commands, packets and messages for the timing stage, which simulated packets, labs and live runs share.
use weir_device::{DataPathPacket, ReleaseKind, TableEffect, TimingStage};
use weir_scenario::{MatchLayers, Profile};
use weir_units::Instant;

/// Item of the script.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ScriptItem {
    Add(u64),
    Modify(u64),
    Delete(u64),
    Other,
}

/// Number of entries that are added.
const ENTRIES: u64 = 60;

fn priority(entry: u64) -> u16 {
    u16::try_from(entry * 7 % 40).unwrap()
}

fn effect(item: &ScriptItem) -> TableEffect {
    match item {
        ScriptItem::Add(entry) => TableEffect::Add { priority: priority(*entry) },
        ScriptItem::Modify(entry) => TableEffect::Modify { entries: vec![*entry] },
        ScriptItem::Delete(entry) => TableEffect::Delete { entries: vec![*entry] },
        ScriptItem::Other => TableEffect::Nothing,
    }
}

/// Result of the script.
#[derive(Debug, PartialEq)]
pub(crate) struct ScriptResult {
    /// Sum of all release times of commands, barriers, packets and messages, in seconds.
    pub(crate) sum_s: f64,
    /// Numbers of lost packets and messages, of entries by level, and of refused commands.
    pub(crate) counts: Vec<u64>,
}

/// Runs the script on a stage with this profile. The error names what the stage refuses.
pub(crate) fn run(profile: &Profile) -> Result<ScriptResult, String> {
    let mut stage = TimingStage::new(profile, 7).map_err(|error| error.to_string())?.unwrap();
    let items = (0..ENTRIES).map(ScriptItem::Add);
    let items = items.chain((0..20).map(ScriptItem::Modify)).chain((20..30).map(ScriptItem::Delete));
    // Added one behind the other, one at a time, so that batches are possible.
    for (number, item) in (0..).zip(items) {
        stage.command(Instant::from_nanos(number * 20_000), item);
    }
    stage.barrier(Instant::from_nanos(2_000_000), ScriptItem::Other);
    for number in 0..30 {
        let now = Instant::from_nanos(1_500_000 + number * 10_000);
        let passing = DataPathPacket { level: 0, kind: MatchLayers::L2, bytes: 100, flow: 0 };
        let _ = stage.packet(now, passing, ScriptItem::Other);
        let _ = stage.packet_in(now, 100, ScriptItem::Other);
        let _ = stage.packet_out(now, 100, ScriptItem::Other);
    }
    let (mut sum_s, mut refused) = (0.0, 0);
    while stage.due() != Instant::FAR {
        let now = stage.due();
        while let Some(one) = stage.release(now, &mut effect) {
            sum_s += one.due.as_nanos() as f64 / 1e9;
            refused += u64::from(one.part == ReleaseKind::Refused);
            if one.part == ReleaseKind::PacketOut && stage.passes_again() {
                let passing = DataPathPacket { level: 0, kind: MatchLayers::L2, bytes: 100, flow: 0 };
                let _ = stage.packet(one.due, passing, ScriptItem::Other);
            }
            let (Some(tables), true) = (stage.tables(), one.part == ReleaseKind::Command) else { continue };
            match one.item {
                ScriptItem::Add(entry) => tables.added(entry, priority(entry)),
                ScriptItem::Modify(entry) => tables.modified(&[entry]),
                ScriptItem::Delete(entry) => tables.removed(entry),
                ScriptItem::Other => {}
            }
        }
    }
    let lost = stage.counts();
    let levels: Vec<u64> = (0..ENTRIES)
        .map(|entry| stage.tables().and_then(|tables| tables.level_of(entry)).map_or(9, |level| level as u64))
        .collect();
    Ok(ScriptResult { sum_s, counts: [vec![lost.lost_data, lost.lost_control, refused], levels].concat() })
}
