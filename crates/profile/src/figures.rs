//! Draws a profile's laws as charts.
use crate::{LevelForwarding, MatchLayers, Profile};
use weir_model::switch::costs::{AddCostInputs, ChangeCostInputs, add_s, modify_s};
use weir_model::switch::device::SwitchModel;
use weir_model::switch::forward::{BASE, PacketConditions};
use weir_model::switch::speedup::CommandBatch;
use weir_model::{Distribution, Law};
use weir_plot::{Axis, AxisScale, Chart, ChartPoint, ChartSeries, Figure, LineStyle, short};

/// Number of entries up to which an unlimited level is drawn.
const ENTRIES: u64 = 8_000;
/// Vertical axis of charts of commands.
const COMMAND: &str = "time of one command, ms";
/// Vertical axis of charts of packets.
const DELAY: &str = "delay in the switch, us";
/// Number of points of a line.
const POINTS: u32 = 60;

/// Returns charts of a profile: changes over the number of entries and over batches, the time until they take effect,
/// packet delays over lengths and over times between packets. None if it has no tables.
pub fn figures(profile: &Profile) -> Vec<Figure> {
    let Some(tables) = &profile.tables else { return Vec::new() };
    let mut charts = vec![over_entries(profile, tables)];
    if tables.batching.most > 1 {
        charts.push(over_batches(profile, tables));
    }
    if let Some(law) = profile.effect.as_ref().and_then(|effect| effect.law.as_ref()) {
        charts.push(effect(profile, law));
    }
    if profile.forwarding.iter().any(Option::is_some) {
        charts.push(over_bytes(profile));
        charts.push(over_gaps(profile));
    }
    charts.into_iter().map(Figure::Chart).collect()
}

/// Returns what a profile says in a line: what commands and packets take in its first level. None if it has no tables.
pub fn in_a_line(profile: &Profile) -> Option<String> {
    let tables = profile.tables.as_ref()?;
    let (level, most) = (profile.levels.first()?, tables.levels.first()?.size.unwrap_or(ENTRIES));
    let add_ms = |entries| Some(short(command_s(tables, 0, "add, one priority", entries, 1)? * 1e3));
    let adding = add_ms(0).zip(add_ms(most)).map(|(empty, full)| {
        format!("adding an entry to level {level} takes {empty} ms if it is empty and {full} ms beside {most} entries")
    });
    let delay_s = profile.forwarding.iter().flatten().find_map(|law| {
        let kinds = MatchLayers::ALL.into_iter().zip(law.base_s).filter(|(_, base)| base.is_some());
        kinds.filter_map(|(kind, _)| Some(law.forward(kind, BASE).ok()?.delay_s)).next()
    });
    let packet = delay_s.map(|delay_s| {
        format!("a packet of {} bytes passes the idle switch in {} us", short(BASE.bytes), short(delay_s * 1e6))
    });
    let parts: Vec<String> = adding.into_iter().chain(packet).collect();
    (!parts.is_empty()).then(|| format!("By the profile, {}.", parts.join("; ")))
}

fn chart(profile: &Profile, name: &str, title: &str, x: Axis, unit: &str, series: Vec<ChartSeries>) -> Chart {
    Chart {
        name: format!("{}-{name}", profile.name),
        title: format!("{}: {title}", profile.name),
        x,
        y: Axis::linear(unit),
        series,
    }
}

/// Returns the time of a command in a level with `entries` entries, in seconds; with ascending priorities all of them
/// shift.
fn command_s(tables: &SwitchModel, at: usize, command: &str, entries: u64, batch: u32) -> Option<f64> {
    let costs = &tables.levels[at].costs;
    let batch = CommandBatch { commands: batch, most: tables.batching.most };
    let adding = |overhead, shifts| {
        let (shift_s, write_s) = (costs.shift_s, costs.write_s);
        add_s(&AddCostInputs { overhead, entries, shifts, batch, shift_s, write_s }).ok()
    };
    match command {
        "add, one priority" => adding(costs.add.single, 0),
        "add, descending" => adding(costs.add.several, 0),
        "add, ascending" => adding(costs.add.several, entries),
        _ => {
            let overhead = costs.modify.several;
            let (search_s, write_s) = (costs.search_s, costs.write_s);
            modify_s(&[ChangeCostInputs { overhead, entries, matching: 1, search_s, write_s }], batch).ok()
        }
    }
}

const COMMANDS: [&str; 4] = ["add, one priority", "add, descending", "add, ascending", "modify"];

/// Gives a chart of commands a logarithmic axis if all times are positive: levels differ by orders of magnitude.
fn by_magnitude(mut chart: Chart) -> Chart {
    if chart.series.iter().flat_map(|series| &series.points).all(|point| point.y > 0.0) {
        chart.y.scale = AxisScale::Log;
    }
    chart
}

fn over_entries(profile: &Profile, tables: &SwitchModel) -> Chart {
    let mut series = Vec::new();
    for (at, level) in tables.levels.iter().enumerate() {
        let most = level.size.unwrap_or(ENTRIES);
        for command in COMMANDS {
            let point = |step: u32| {
                let entries = most * u64::from(step) / u64::from(POINTS);
                Some(ChartPoint::new(entries as f64, command_s(tables, at, command, entries, 1)? * 1e3))
            };
            let points = (0..=POINTS).filter_map(point).collect();
            series.push(ChartSeries::looking(format!("{}: {command}", profile.levels[at]), LineStyle::Curve, points));
        }
    }
    by_magnitude(chart(profile, "entries", "one command alone", Axis::linear("entries in the level"), COMMAND, series))
}

fn over_batches(profile: &Profile, tables: &SwitchModel) -> Chart {
    let most = tables.batching.most;
    let mut series = Vec::new();
    for (at, level) in tables.levels.iter().enumerate() {
        let entries = level.size.unwrap_or(ENTRIES).min(ENTRIES) / 2;
        for command in COMMANDS {
            let point = |step: u32| {
                let batch = 1 + (most - 1) * step / POINTS;
                Some(ChartPoint::new(f64::from(batch), command_s(tables, at, command, entries, batch)? * 1e3))
            };
            let points = (0..=POINTS).filter_map(point).collect();
            let name = format!("{}: {command}, {entries} entries", profile.levels[at]);
            series.push(ChartSeries::looking(name, LineStyle::Curve, points));
        }
    }
    by_magnitude(chart(
        profile,
        "batches",
        "one command of a batch",
        Axis::linear("commands in the batch"),
        COMMAND,
        series,
    ))
}

/// Returns a line for each level and kind of match.
fn forward(
    profile: &Profile,
    mut point: impl FnMut(&LevelForwarding, MatchLayers, u32) -> Option<ChartPoint>,
) -> Vec<ChartSeries> {
    let mut series = Vec::new();
    for (name, law) in profile.levels.iter().zip(&profile.forwarding) {
        let Some(law) = law else { continue };
        for kind in
            MatchLayers::ALL.into_iter().zip(law.base_s).filter(|(_, base)| base.is_some()).map(|(kind, _)| kind)
        {
            let points = (0..=POINTS).filter_map(|step| point(law, kind, step)).collect();
            series.push(ChartSeries::looking(format!("{name}: {}", kind.name()), LineStyle::Steps, points));
        }
    }
    series
}

fn effect(profile: &Profile, law: &Law) -> Chart {
    let share = |step: u32| (f64::from(step) + 0.5) / f64::from(POINTS);
    let curve = Distribution::law(law).curve((0..POINTS).map(share));
    let points = curve.into_iter().map(|(share, s)| ChartPoint::new(s * 1e3, share)).collect();
    let series = vec![ChartSeries::looking("bursts", LineStyle::Curve, points)];
    let title = "until packets meet what commands changed";
    Chart {
        y: Axis::linear("share of bursts, from 0 to 1"),
        ..chart(profile, "effect", title, Axis::linear("time after the last command, ms"), "", series)
    }
}

fn over_bytes(profile: &Profile) -> Chart {
    let series = forward(profile, |law, kind, step| {
        let bytes = 64.0 + 1450.0 * f64::from(step) / f64::from(POINTS);
        Some(ChartPoint::new(bytes, law.forward(kind, PacketConditions { bytes, ..BASE }).ok()?.delay_s * 1e6))
    });
    chart(profile, "bytes", "packets of an idle switch, by length", Axis::linear("length, bytes"), DELAY, series)
}

fn over_gaps(profile: &Profile) -> Chart {
    let series = forward(profile, |law, kind, step| {
        let gap_s = 1e-4 * 10f64.powf(4.0 * f64::from(step) / f64::from(POINTS));
        Some(ChartPoint::new(gap_s * 1e3, law.forward(kind, PacketConditions { gap_s, ..BASE }).ok()?.delay_s * 1e6))
    });
    chart(profile, "gaps", "packets of an idle switch, by gap", Axis::log("time between packets, ms"), DELAY, series)
}
