//! Carries out requests about meters.
use super::flows::{run_blocking, wrong};
use super::{DumpedMeter, MeterDump, MeterVerb};
use crate::engine::inbox::EngineClient;
use crate::handle::SwitchError;
use serde_json::{Value, json};
use weir_openflow::model::meter::{MeterCommand, MeterConfig, MeterStats};
use weir_openflow::text;

/// Adds, modifies or deletes meters.
///
/// # Errors
/// Fails if the text is wrong or the switch refuses.
pub(super) async fn change(engine: &EngineClient, verb: MeterVerb, meter: &str) -> Result<Value, SwitchError> {
    let command = match verb {
        MeterVerb::Add => MeterCommand::Add,
        MeterVerb::Modify => MeterCommand::Modify,
        MeterVerb::Delete => MeterCommand::Delete,
    };
    let change = text::parse_meter(meter, command).map_err(wrong)?;
    engine.call_served_async(move |served| served.meter_mod(&change)).await??;
    Ok(json!({}))
}

/// Returns the configuration of a meter, or of all meters.
///
/// # Errors
/// Fails if the text is wrong or there is no such meter.
pub(super) async fn dump(engine: &EngineClient, meter: &str) -> Result<Value, SwitchError> {
    let wanted = text::parse_meter_id(meter).map_err(wrong)?;
    let found = engine.call_served_async(move |served| served.meters(wanted)).await??;
    let text = |meter: &MeterConfig| DumpedMeter {
        text: text::format_meter(meter.meter, meter.flags, &meter.bands),
        meter: json!(meter),
    };
    run_blocking(move || json!(MeterDump { meters: found.iter().map(text).collect() })).await
}

/// Returns the statistics of a meter, or of all meters.
///
/// # Errors
/// Fails if the text is wrong or there is no such meter.
pub(super) async fn stats(engine: &EngineClient, meter: &str) -> Result<Value, SwitchError> {
    let wanted = text::parse_meter_id(meter).map_err(wrong)?;
    let found = engine.call_served_async(move |served| served.meter_stats(wanted)).await??;
    let text = |stats: &MeterStats| DumpedMeter { text: text::format_meter_stats(stats), meter: json!(stats) };
    run_blocking(move || json!(MeterDump { meters: found.iter().map(text).collect() })).await
}
