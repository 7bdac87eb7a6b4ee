//! Requests about meters.
use super::flows::wrong;
use super::{Meter, MeterVerb, Meters};
use crate::engine::inbox::EngineClient;
use crate::handle::SwitchError;
use serde_json::{Value, json};
use weir_openflow::model::meter::command;
use weir_openflow::text;

/// Changes meters.
///
/// # Errors
/// The text is wrong, or the switch refuses.
pub(super) async fn change(engine: &EngineClient, verb: MeterVerb, meter: &str) -> Result<Value, SwitchError> {
    let command = match verb {
        MeterVerb::Add => command::ADD,
        MeterVerb::Modify => command::MODIFY,
        MeterVerb::Delete => command::DELETE,
    };
    let change = text::parse_meter(meter, command).map_err(wrong)?;
    engine.call_async(move |engine| engine.meter_mod(&change)).await??;
    Ok(json!({}))
}

/// A meter as it was set, or all.
///
/// # Errors
/// The text is wrong, or there is no such meter.
pub(super) async fn dump(engine: &EngineClient, meter: &str) -> Result<Value, SwitchError> {
    let wanted = text::parse_meter_id(meter).map_err(wrong)?;
    let found = engine.call_async(move |engine| engine.meters(wanted)).await??;
    let meters = found
        .iter()
        .map(|meter| Meter { text: text::format_meter(meter.meter, meter.flags, &meter.bands), meter: json!(meter) });
    Ok(json!(Meters { meters: meters.collect() }))
}

/// What a meter counted, or all.
///
/// # Errors
/// The text is wrong, or there is no such meter.
pub(super) async fn stats(engine: &EngineClient, meter: &str) -> Result<Value, SwitchError> {
    let wanted = text::parse_meter_id(meter).map_err(wrong)?;
    let found = engine.call_async(move |engine| engine.meter_stats(wanted)).await??;
    let meters = found.iter().map(|stats| Meter { text: text::format_meter_stats(stats), meter: json!(stats) });
    Ok(json!(Meters { meters: meters.collect() }))
}
