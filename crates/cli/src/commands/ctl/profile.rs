//! `weir ctl profile`: formats how a switch keeps its profile's times.
use anyhow::Context as _;
use std::fmt::Write as _;
use std::path::Path;
use weir_device::{LatenessSnapshot, TimingSnapshot};
use weir_switch::ctl::ProfileReply;
use weir_terminal::table::ReportTable;

/// Formats a profile's lateness and what waits as one line.
pub(super) fn line(timing: &TimingSnapshot) -> String {
    let TimingSnapshot { profile, lateness, commands_waiting, packets_waiting, control_waiting, .. } = timing;
    format!(
        "profile {profile}: {}; waiting: {commands_waiting} commands, {packets_waiting} packets, {control_waiting} on the control path\n",
        late(lateness)
    )
}

fn late(lateness: &LatenessSnapshot) -> String {
    if lateness.count == 0 {
        return "nothing was released yet".to_owned();
    }
    let us = |seconds: f64| seconds * 1e6;
    let share = 100.0 * lateness.late as f64 / lateness.count as f64;
    let LatenessSnapshot { count, p50_s, p99_s, max_s, .. } = *lateness;
    format!(
        "{count} released, late by {:.1} us (p50), {:.1} us (p99), {:.1} us at most, {share:.2} % by more than 20 us",
        us(p50_s),
        us(p99_s),
        us(max_s)
    )
}

/// Formats the report as text and writes the commands' durations to the file `commands`.
pub(super) fn text(found: &ProfileReply, commands: Option<&Path>) -> anyhow::Result<String> {
    let timing = &found.timing;
    let mut text = line(timing);
    if !timing.levels.is_empty() {
        let mut levels = ReportTable::new(["level", "entries", "room for"]).numbers(1..3);
        for level in &timing.levels {
            let size = level.size.map_or_else(|| "no limit".to_owned(), |size| size.to_string());
            levels.row([level.name.clone(), level.entries.to_string(), size]);
        }
        let _ = writeln!(text, "\n{levels}");
    }
    let TimingSnapshot { commands: done, refused, barriers_waiting, beyond, .. } = timing;
    let _ = writeln!(
        text,
        "\ncommands: {done} carried out, {refused} refused since the tables were full, {barriers_waiting} barriers wait"
    );
    if *beyond > 0 {
        let _ = writeln!(text, "entries that others than controllers added beyond all levels: {beyond}");
    }
    let lost = [
        ("found no room in the data path", timing.lost_data),
        ("found no room at an agent", timing.lost_control),
        ("would have held too many bytes", timing.lost_beyond),
        ("super-frames that could not be cut", timing.lost_bad_offload),
    ];
    let lost: Vec<String> =
        lost.iter().filter(|(_, count)| *count > 0).map(|(why, count)| format!("{count} {why}")).collect();
    let _ = writeln!(text, "packets lost: {}", if lost.is_empty() { "none".to_owned() } else { lost.join(", ") });
    if let Some((file, lines)) = write(found, commands)? {
        let _ = writeln!(text, "{lines} commands written to {}", file.display());
        if timing.records_lost > 0 {
            let _ = writeln!(text, "{} older ones were not asked for in time", timing.records_lost);
        }
    }
    Ok(text)
}

/// Returns the report as JSON and writes the commands' durations to the file `commands`.
pub(super) fn json(found: &ProfileReply, commands: Option<&Path>) -> anyhow::Result<serde_json::Value> {
    write(found, commands)?;
    Ok(serde_json::json!(found.timing))
}

/// Writes the commands' durations to `file`. Returns the file and the number of commands, or `None` if there is
/// nothing to write.
fn write<'a>(found: &ProfileReply, file: Option<&'a Path>) -> anyhow::Result<Option<(&'a Path, usize)>> {
    let (Some(file), Some(lines)) = (file, &found.commands) else { return Ok(None) };
    let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    weir_terminal::output::write_file(file, &text)
        .with_context(|| format!("{}: cannot write the commands", file.display()))?;
    Ok(Some((file, lines.len().saturating_sub(1))))
}
