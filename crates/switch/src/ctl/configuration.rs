//! Reads the configuration by which a switch would start as a running one is now. `weir ctl save` writes it to
//! a file, `weir ctl reload` compares files with it.
use super::MAX_FLOWS;
use super::flows::{run_blocking, wrong};
use super::server::CtlContext;
use crate::engine::inbox::EngineClient;
use crate::handle::SwitchError;
use crate::snapshot::{PortSnapshot, QueueSnapshot};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::PoisonError;
use weir_openflow::model::meter::MeterConfig;
use weir_openflow::model::multipart::{FlowRequest, FlowStats};
use weir_openflow::model::{FlowMod, MeterId, Version};
use weir_openflow::text;
use weir_port::queues::PortQueueConfig;
use weir_units::{Bps, ByteSize};

/// Texts that a program took a switch's configuration from. The switch keeps them and does not read them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigurationSource {
    /// Configuration file, as an absolute path; none if the switch was started without one.
    pub file: Option<PathBuf>,
    /// Text of the configuration file when it was last read or saved.
    pub text: String,
    /// Settings of the command line, as TOML with the keys of the configuration file. They take precedence over it.
    pub command_line: String,
    /// Section `fabric` of the file that divided the switch into virtual switches, as TOML.
    pub fabric: String,
}

/// Configuration by which a switch would start as this one is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunningConfiguration {
    /// Texts that the switch was started with.
    pub source: ConfigurationSource,
    /// Datapath id.
    pub datapath_id: u64,
    /// Ports with their present queues, as `N=KIND:NAME[,option=value...]`.
    pub ports: Vec<String>,
    /// Meters, groups and entries of the switch itself.
    #[serde(flatten)]
    pub tables: TableContents,
    /// Specification of each virtual switch in the words of a scenario file, with its meters, groups and entries.
    pub virtual_switches: Vec<(Value, TableContents)>,
}

/// Meters, groups and flow entries of a switch or of a virtual switch, as texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableContents {
    /// Meters, in the syntax of `ovs-ofctl`.
    pub meters: Vec<String>,
    /// Groups, in the syntax of `ovs-ofctl`.
    pub groups: Vec<String>,
    /// Flow entries without time-outs, in the syntax of `ovs-ofctl`.
    pub entries: Vec<String>,
    /// Number of flow entries with a time-out; they are in no configuration.
    pub temporary_entries: usize,
}

/// Reads the switch's present configuration.
///
/// # Errors
/// More than [`MAX_FLOWS`] flow entries; the switch stops.
pub(super) async fn read(context: &CtlContext) -> Result<Value, SwitchError> {
    let engine = &context.control.engine;
    let snapshot = engine.snapshot().await?;
    let ports = snapshot.ports.iter().map(port_text).collect::<Result<_, _>>()?;
    let tables = tables(engine).await?;
    let mut virtual_switches = Vec::new();
    for cut in engine.call_async(|engine| engine.virtual_snapshots()).await? {
        let tenant = context.control.virtuals.find(&cut.name)?;
        virtual_switches.push((cut.spec, self::tables(&tenant.control.engine).await?));
    }
    let source = context.source.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let datapath_id = context.identity.datapath_id;
    run_blocking(move || json!(RunningConfiguration { source, datapath_id, ports, tables, virtual_switches })).await
}

/// Notes the text that the configuration file has now.
///
/// # Errors
/// The switch has no configuration file.
pub(super) fn set_text(context: &CtlContext, text: String) -> Result<Value, SwitchError> {
    let mut source = context.source.lock().unwrap_or_else(PoisonError::into_inner);
    if source.file.is_none() {
        return Err(wrong("this switch was started without a configuration file"));
    }
    source.text = text;
    Ok(json!({}))
}

/// Reads meters, groups and flow entries of a switch.
async fn tables(engine: &EngineClient) -> Result<TableContents, SwitchError> {
    let groups = engine.call_served_async(|served| served.groups()).await?;
    let meters = engine.call_served_async(|served| served.meters(MeterId::ALL)).await??;
    let request = FlowRequest::all();
    let mut next = Some(engine.call_served_async(move |served| served.flow_walk(&request)).await??);
    let (mut lasting, mut temporary_entries) = (Vec::new(), 0);
    while let Some(walk) = next {
        let (part, more) = engine.call_served_async(|served| served.walk(walk)).await?;
        let all = part.len();
        let before = lasting.len();
        lasting.extend(part.into_iter().filter(|flow| flow.idle_timeout == 0 && flow.hard_timeout == 0));
        temporary_entries += all - (lasting.len() - before);
        if lasting.len() > MAX_FLOWS {
            return Err(wrong(format!("found more than {MAX_FLOWS} flow entries; a configuration has at most these")));
        }
        next = more;
    }
    run_blocking(move || TableContents {
        meters: meters.iter().map(meter_text).collect(),
        groups: groups.iter().map(text::format_group).collect(),
        entries: lasting.into_iter().map(entry_text).collect(),
        temporary_entries,
    })
    .await
}

/// Returns the text of a meter in one line.
fn meter_text(meter: &MeterConfig) -> String {
    let lines = text::format_meter(meter.meter, meter.flags, &meter.bands);
    lines.split_whitespace().collect::<Vec<_>>().join(" ").replace("bands= ", "bands=")
}

/// Returns the text of a flow entry, by which it can be added again.
fn entry_text(flow: FlowStats) -> String {
    let FlowStats { table, priority, cookie, flags, importance, matching, instructions, .. } = flow;
    let entry = FlowMod { table, cookie, flags, importance, ..FlowMod::add(priority, matching, instructions) };
    text::format_flow(&entry, Version::V13)
}

/// Returns the text of a port with its present queues.
///
/// # Errors
/// A queue has values that none can have.
fn port_text(port: &PortSnapshot) -> Result<String, SwitchError> {
    let parts = port.spec.split(',').filter(|part| !part.starts_with("queue="));
    let mut text = format!("{}={}", port.number, parts.collect::<Vec<_>>().join(","));
    // Queue 0 is there as soon as another one is.
    let queues = port.queues.iter().map(queue_config).filter(|queue| *queue != PortQueueConfig::default());
    for queue in queues {
        text += &format!(",queue={queue}");
    }
    Ok(text)
}

fn queue_config(queue: &QueueSnapshot) -> PortQueueConfig {
    PortQueueConfig {
        id: queue.queue,
        min: queue.min_bps.map(Bps),
        max: queue.max_bps.map(Bps),
        buffer: ByteSize(queue.buffer_bytes),
        priority: queue.priority,
    }
}
