//! How long devices take.
use super::law::{MAX_SERVICE_S, service_time};
use super::{Checked, Source, duration};
use crate::document::{self, Agents, Order};
use crate::{ControlPath, ControllerTiming, Gate, Returns, Switch, SwitchTiming};
use std::time::Duration;
use toml::Spanned;
use weir_units::Span;

/// Most packets of a buffer with a limit.
const MAX_BUFFER: u32 = 1 << 20;
/// Most places where packets wait for a batch.
const MAX_STAGES: u8 = 2;
/// What counts as held up when the file does not say.
const DEFAULT_SLOW: Duration = Duration::from_millis(1);
/// Slack for `delay` at exactly `1 / capacity`, both rounded.
const ROUNDING: f64 = 1e-9;

/// What is being read, for errors.
struct Reader<'a> {
    source: &'a Source<'a>,
    /// The device with its section.
    what: String,
}

impl Reader<'_> {
    fn law(&self, key: &str, law: Option<&Spanned<document::Law>>) -> Checked<Option<crate::ServiceTime>> {
        law.map(|law| service_time(self.source, &format!("{}: {key}", self.what), law.span(), law.as_ref())).transpose()
    }

    fn buffer(&self, key: &str, buffer: Option<&Spanned<u32>>) -> Checked<Option<u32>> {
        match buffer {
            Some(wrong) if !(1..=MAX_BUFFER).contains(wrong.as_ref()) => {
                Err(self.error(wrong, &buffer_problem(key, *wrong.as_ref())))
            }
            other => Ok(other.map(|buffer| *buffer.as_ref())),
        }
    }

    fn time(&self, key: &str, time: Option<&Spanned<Span>>) -> Checked<Option<Duration>> {
        time.map(|time| duration(self.source, &format!("{}: {key}", self.what), time)).transpose()
    }

    fn error<T>(&self, at: &Spanned<T>, problem: &str) -> crate::ScenarioError {
        self.source.error(at.span(), format!("{}: {problem}", self.what))
    }
}

fn buffer_problem(key: &str, found: u32) -> String {
    format!("{key}: found {found}, expected 1 to {MAX_BUFFER} packets: the one in service counts")
}

/// A switch's timing.
pub(super) fn switch(source: &Source<'_>, name: &str, item: Spanned<document::Timing>) -> Checked<SwitchTiming> {
    let reader = Reader { source, what: format!("switch {name}: timing") };
    let timing = item.as_ref();
    let made = SwitchTiming {
        data: reader.law("data", timing.data.as_ref())?,
        data_buffer: reader.buffer("data_buffer", timing.data_buffer.as_ref())?,
        gate: gate(&reader, timing)?,
        control: control(&reader, timing)?,
        returns: returns(&reader, timing.returns.as_ref())?,
        write: reader.time("write", timing.write.as_ref())?.unwrap_or_default(),
        slow: reader.time("slow", timing.slow.as_ref())?.unwrap_or(DEFAULT_SLOW),
    };
    if made.data.is_none() && made.gate.is_none() && made.control.is_unknown() {
        return Err(reader.error(&item, "found no service time, expected `data` at least, such as data = \"9us\""));
    }
    Ok(made)
}

fn gate(reader: &Reader<'_>, timing: &document::Timing) -> Checked<Option<Gate>> {
    if let (Some(_), Some(batch)) = (&timing.tick, &timing.batch) {
        return Err(reader.error(batch, "found `tick` and `batch`, expected one of them"));
    }
    if let (None, Some(most)) = (&timing.tick, &timing.tick_max) {
        return Err(reader.error(most, "found `tick_max` without `tick`, expected both"));
    }
    if let Some(every) = reader.time("tick", timing.tick.as_ref())? {
        return Ok(Some(Gate::Tick { every, most: reader.buffer("tick_max", timing.tick_max.as_ref())? }));
    }
    let Some(batch) = timing.batch.as_ref().map(Spanned::as_ref) else { return Ok(None) };
    let stages = batch.stages.as_ref().map_or(1, |stages| *stages.as_ref());
    if let Some(wrong) = batch.stages.as_ref().filter(|_| !(1..=MAX_STAGES).contains(&stages)) {
        return Err(reader.error(wrong, &format!("batch: stages: found {stages}, expected 1 to {MAX_STAGES}")));
    }
    let packets = reader.buffer("batch: packets", Some(&batch.packets))?.unwrap_or(1);
    let timeout = duration(reader.source, &format!("{}: batch: timeout", reader.what), &batch.timeout)?;
    Ok(Some(Gate::Batch { packets, timeout, stages }))
}

fn control(reader: &Reader<'_>, timing: &document::Timing) -> Checked<ControlPath> {
    let Some(measured) = &timing.control else {
        let agents = ControlPath::Agents {
            packet_in: reader.law("packet_in", timing.packet_in.as_ref())?,
            packet_out: reader.law("packet_out", timing.packet_out.as_ref())?,
            shared: timing.agents.as_ref().is_some_and(|agents| *agents.as_ref() == Agents::Shared),
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
            let problem = format!(
                "{}: found `{key}` beside `control`, expected one of them: it is measured with them",
                reader.what
            );
            return Err(reader.source.error(span, problem));
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
    if let Some(wrong) = measured.scv.as_ref().filter(|_| !(0.0..=1e6).contains(&scv)) {
        return Err(reader.error(wrong, &format!("control: scv: found {scv}, expected 0 or more, such as 0.5")));
    }
    let buffer = reader.buffer("control: buffer", measured.buffer.as_ref())?;
    Ok(ControlPath::Measured { delay_s: delay_s.max(1.0 / capacity), capacity, scv, buffer })
}

fn returns(reader: &Reader<'_>, item: Option<&Spanned<document::Returns>>) -> Checked<Returns> {
    let Some(item) = item else { return Ok(Returns::Direct) };
    let (order, service, buffer) = match item.as_ref() {
        document::Returns::Order(order) => (*order, None, None),
        document::Returns::Table(table) => (table.order, table.service.as_ref(), table.buffer),
    };
    match order {
        Order::Direct | Order::Fifo if service.is_some() || buffer.is_some() => {
            Err(reader.error(item, "returns: found service or buffer, expected them only with order priority"))
        }
        Order::Direct => Ok(Returns::Direct),
        Order::Fifo => Ok(Returns::Fifo),
        Order::Priority => {
            if let Some(wrong) = buffer.filter(|buffer| !(1..=MAX_BUFFER).contains(buffer)) {
                return Err(reader.error(item, &buffer_problem("returns: buffer", wrong)));
            }
            let what = format!("{}: returns: service", reader.what);
            let service = service.map(|law| service_time(reader.source, &what, item.span(), law)).transpose()?;
            Ok(Returns::Priority { service, buffer })
        }
    }
}

/// The controller's timing.
pub(super) fn controller(
    source: &Source<'_>,
    item: Option<&Spanned<document::Controller>>,
    switches: &[Switch],
) -> Checked<ControllerTiming> {
    let Some(item) = item else { return Ok(ControllerTiming::default()) };
    let reader = Reader { source, what: "controller".to_owned() };
    let controller = item.as_ref();
    let made = ControllerTiming {
        service: reader.law("service", controller.service.as_ref())?,
        buffer: reader.buffer("buffer", controller.buffer.as_ref())?,
        delay: controller.delay.as_ref().map_or(Duration::ZERO, |delay| delay.as_ref().0),
        install: controller.install.as_ref().map(|install| *install.as_ref()).unwrap_or_default(),
    };
    if let Some(long) = controller.delay.as_ref().filter(|delay| delay.as_ref().0.as_secs_f64() > MAX_SERVICE_S) {
        return Err(reader.error(long, &format!("delay: found {}, expected at most an hour", long.as_ref())));
    }
    if let Some(buffer) = controller.buffer.as_ref().filter(|_| made.service.is_none()) {
        return Err(reader.error(buffer, "found `buffer` without `service`, expected both"));
    }
    let Some(service) = &controller.service else { return Ok(made) };
    if controller.connect.as_ref().is_some_and(|target| target.as_ref() == "none") {
        return Err(
            reader.error(service, "service: found it with connect = \"none\", expected a controller that serves")
        );
    }
    let asks = |switch: &Switch| {
        switch.timing.as_ref().is_some_and(|timing| matches!(timing.control, ControlPath::Agents { .. }))
    };
    if !switches.iter().any(asks) {
        let problem = "service: found no switch that it is for, expected one with [switch.timing] and without `control`, which has the \
                       controller in it";
        return Err(reader.error(service, problem));
    }
    Ok(made)
}

/// Refuses flows that begin at switches with timing, of which nothing says how long asking takes.
pub(super) fn refuse_unknown_control(
    source: &Source<'_>,
    new_flows: Option<&Spanned<f64>>,
    switches: &[Switch],
    controller: &ControllerTiming,
) -> Checked<()> {
    let Some(share) = new_flows.filter(|share| *share.as_ref() > 0.0) else { return Ok(()) };
    let mut timed = switches.iter().filter_map(|switch| switch.timing.as_ref()).peekable();
    let is_unknown = |timing: &SwitchTiming| timing.control.is_unknown();
    if timed.peek().is_none() || controller.service.is_some() || !timed.all(is_unknown) {
        return Ok(());
    }
    let problem = "new_flows: found it, but no service time of what it asks, expected `service` in [controller], or `packet_in`, \
                   `packet_out` or `control` in [switch.timing]";
    Err(source.error(share.span(), problem.to_owned()))
}
