//! Checks the timing of a switch.
use super::SectionReader;
use super::law::{MAX_SCV, MAX_SERVICE_S};
use super::reader::{Checked, MAX_BUFFER, buffer_problem};
use crate::written::{self, AgentsToml, ReturnOrder};
use crate::{ControlPathTiming, ReleaseGate, ReturnDiscipline, ServiceTime, SwitchTiming};
use std::time::Duration;
use toml::Spanned;

/// Most places where packets wait for a batch.
const MAX_STAGES: u8 = 2;
/// Default of [`SwitchTiming::slow`].
pub(crate) const DEFAULT_SLOW: Duration = Duration::from_millis(1);
/// Relative tolerance for `delay` at exactly `1 / capacity`, as both are rounded.
const ROUNDING: f64 = 1e-9;

/// Converts a switch's timing.
///
/// # Errors
/// A value is invalid, with its position.
pub fn timing(reader: &SectionReader, item: &Spanned<written::TimingToml>) -> Checked<SwitchTiming> {
    with_data(reader, item, None)
}

/// Converts a switch's timing; `data` is the data path's service if none is written.
pub(super) fn with_data(
    reader: &SectionReader,
    item: &Spanned<written::TimingToml>,
    data: Option<ServiceTime>,
) -> Checked<SwitchTiming> {
    let timing = item.as_ref();
    let made = SwitchTiming {
        data: reader.law("data", timing.data.as_ref())?.or(data),
        data_buffer: reader.buffer("data_buffer", timing.data_buffer.as_ref())?,
        gate: gate(reader, timing)?,
        control: control(reader, timing)?,
        returns: returns(reader, timing.returns.as_ref())?,
        write: reader.time("write", timing.write.as_ref())?.unwrap_or_default(),
        slow: reader.time("slow", timing.slow.as_ref())?.unwrap_or(DEFAULT_SLOW),
    };
    if made.data.is_none() && made.gate.is_none() && made.control.is_unknown() {
        return Err(reader.error(item, "found no service time, expected `data` at least, such as data = \"9us\""));
    }
    Ok(made)
}

fn gate(reader: &SectionReader, timing: &written::TimingToml) -> Checked<Option<ReleaseGate>> {
    if let (Some(_), Some(batch)) = (&timing.tick, &timing.batch) {
        return Err(reader.error(batch, "found `tick` and `batch`, expected one of them"));
    }
    if let (None, Some(most)) = (&timing.tick, &timing.tick_max) {
        return Err(reader.error(most, "found `tick_max` without `tick`, expected both"));
    }
    if let Some(every) = reader.time("tick", timing.tick.as_ref())? {
        return Ok(Some(ReleaseGate::Tick { every, most: reader.buffer("tick_max", timing.tick_max.as_ref())? }));
    }
    let Some(batch) = timing.batch.as_ref().map(Spanned::as_ref) else { return Ok(None) };
    let stages = batch.stages.as_ref().map_or(1, |stages| *stages.as_ref());
    if let Some(wrong) = batch.stages.as_ref().filter(|_| !(1..=MAX_STAGES).contains(&stages)) {
        return Err(reader.error(wrong, &format!("batch: stages: found {stages}, expected 1 to {MAX_STAGES}")));
    }
    let packets = reader.buffer("batch: packets", Some(&batch.packets))?.unwrap_or(1);
    let timeout = reader.span("batch: timeout", &batch.timeout)?;
    Ok(Some(ReleaseGate::Batch { packets, timeout, stages }))
}

fn control(reader: &SectionReader, timing: &written::TimingToml) -> Checked<ControlPathTiming> {
    let Some(measured) = &timing.control else {
        let agents = ControlPathTiming::Agents {
            packet_in: reader.law("packet_in", timing.packet_in.as_ref())?,
            packet_out: reader.law("packet_out", timing.packet_out.as_ref())?,
            shared: timing.agents.as_ref().is_some_and(|agents| *agents.as_ref() == AgentsToml::Shared),
            buffer: reader.buffer("buffer", timing.buffer.as_ref())?,
        };
        if let Some(buffer) = timing.buffer.as_ref().filter(|_| agents.is_unknown()) {
            return Err(reader.error(buffer, "found `buffer` without `packet_in` or `packet_out`, whose it is"));
        }
        return Ok(agents);
    };
    let others = [
        ("packet_in", timing.packet_in.as_ref().map(Spanned::span)),
        ("packet_out", timing.packet_out.as_ref().map(Spanned::span)),
        ("agents", timing.agents.as_ref().map(Spanned::span)),
        ("buffer", timing.buffer.as_ref().map(Spanned::span)),
    ];
    for (key, span) in others {
        if let Some(span) = span {
            let problem = format!("found `{key}` beside `control`, expected one of them: it is measured with them");
            return Err(reader.problem(span, &problem));
        }
    }
    let measured = measured.as_ref();
    let (delay_s, capacity) = (measured.delay.as_ref().0, *measured.capacity.as_ref());
    if !(capacity > 0.0 && capacity <= 1e9) {
        let problem = format!("control: capacity: found {capacity}, expected packets a second, above 0");
        return Err(reader.error(&measured.capacity, &problem));
    }
    if delay_s * (1.0 + ROUNDING) < 1.0 / capacity || delay_s > MAX_SERVICE_S {
        let problem = format!(
            "control: delay: found {} ms, expected at least 1 / capacity, {} ms, and at most an hour",
            delay_s * 1e3,
            1e3 / capacity
        );
        return Err(reader.error(&measured.delay, &problem));
    }
    let scv = measured.scv.as_ref().map_or(1.0, |scv| *scv.as_ref());
    if let Some(wrong) = measured.scv.as_ref().filter(|_| !(0.0..=MAX_SCV).contains(&scv)) {
        return Err(reader.error(wrong, &format!("control: scv: found {scv}, expected 0 to {MAX_SCV}, such as 0.5")));
    }
    let buffer = reader.buffer("control: buffer", measured.buffer.as_ref())?;
    Ok(ControlPathTiming::Measured { delay_s: delay_s.max(1.0 / capacity), capacity, scv, buffer })
}

fn returns(reader: &SectionReader, item: Option<&Spanned<written::ReturnsToml>>) -> Checked<ReturnDiscipline> {
    let Some(item) = item else { return Ok(ReturnDiscipline::Direct) };
    let (order, service, buffer) = match item.as_ref() {
        written::ReturnsToml::Order(order) => (*order, None, None),
        written::ReturnsToml::Table(table) => (table.order, table.service.as_ref(), table.buffer),
    };
    match order {
        ReturnOrder::Direct | ReturnOrder::Fifo if service.is_some() || buffer.is_some() => {
            Err(reader.error(item, "returns: found service or buffer, expected them only with order priority"))
        }
        ReturnOrder::Direct => Ok(ReturnDiscipline::Direct),
        ReturnOrder::Fifo => Ok(ReturnDiscipline::Fifo),
        ReturnOrder::Priority => {
            if let Some(wrong) = buffer.filter(|buffer| !(1..=MAX_BUFFER).contains(buffer)) {
                return Err(reader.error(item, &buffer_problem("returns: buffer", wrong)));
            }
            let service = service.map(|law| reader.service("returns: service", item.span(), law)).transpose()?;
            Ok(ReturnDiscipline::Priority { service, buffer })
        }
    }
}
