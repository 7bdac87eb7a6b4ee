//! Parts of configurations that `weir ctl save` and `weir ctl reload` work on, as texts that can be compared: what can
//! change while a switch runs.
use super::port_numbers::PortNumbers;
use anyhow::{Context, anyhow};
use std::collections::BTreeMap;
use weir_openflow::Version;
use weir_openflow::model::group::{GroupCommand, GroupDesc, GroupMod};
use weir_openflow::model::meter::MeterCommand;
use weir_openflow::model::{FlowCommand, FlowMod, PortNo};
use weir_openflow::text;
use weir_port::queues::PortQueueConfig;
use weir_switch::PortArgument;
use weir_switch::ctl::{CtlClient, CtlRequest, RunningConfiguration};

/// Reads what a configuration file has to say for the switch as it is now.
///
/// # Errors
/// The switch does not answer.
pub(super) fn read(client: &mut CtlClient) -> anyhow::Result<RunningConfiguration> {
    Ok(serde_json::from_value(client.ask(&CtlRequest::Configuration)?)?)
}

/// Kind of thing in a switch's tables that a configuration lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableItem {
    Meter,
    Group,
    Entry,
}

impl TableItem {
    /// Returns the text in one way of writing, with ports by their numbers, and the text that names the thing: the
    /// request to delete it.
    ///
    /// # Errors
    /// The text cannot be parsed, or names a port that is not there.
    pub(super) fn canonical(self, text: &str, ports: &PortNumbers) -> anyhow::Result<CanonicalItem> {
        let text = &ports.numbered(text).map_err(|error| anyhow!("{} `{text}`: {error}", self.name()))?;
        let wrong = |error: text::ParseError| anyhow!("{} `{text}`: {error}", self.name());
        Ok(match self {
            TableItem::Meter => {
                let change = text::parse_meter(text, MeterCommand::Add).map_err(wrong)?;
                let written = text::format_meter(change.meter, change.flags, &change.bands);
                CanonicalItem { id: format!("meter={}", change.meter), text: one_line(&written) }
            }
            TableItem::Group => {
                let GroupMod { kind, group, buckets, properties, .. } =
                    text::parse_group(text, GroupCommand::Add).map_err(wrong)?;
                let written = text::format_group(&GroupDesc { kind, group, buckets, properties });
                CanonicalItem { id: format!("group_id={}", group.0), text: written }
            }
            TableItem::Entry => {
                let change = text::parse_flow(text, FlowCommand::Add).map_err(wrong)?;
                let (table, priority) = (change.table, change.priority);
                let named = FlowMod { table, ..FlowMod::add(priority, change.matching.clone(), Vec::new()) };
                let named = FlowMod { command: FlowCommand::DeleteStrict, ..named };
                CanonicalItem {
                    id: text::format_flow(&named, Version::V13),
                    text: text::format_flow(&change, Version::V13),
                }
            }
        })
    }

    /// Returns the word for the thing in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            TableItem::Meter => "meter",
            TableItem::Group => "group",
            TableItem::Entry => "entry",
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace("bands= ", "bands=")
}

/// A thing of a configuration as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CanonicalItem {
    /// Text that names the thing.
    pub(super) id: String,
    /// All of it, in one way of writing.
    pub(super) text: String,
}

/// Returns things by their names; of two with one name the later one, as a switch would have it.
///
/// # Errors
/// A text cannot be parsed, or names a port that is not there.
pub(super) fn by_id(
    kind: TableItem,
    texts: &[String],
    ports: &PortNumbers,
) -> anyhow::Result<BTreeMap<String, String>> {
    let items = texts.iter().map(|text| kind.canonical(text, ports).map(|item| (item.id, item.text)));
    items.collect()
}

/// A port of a configuration, with its queues apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfiguredPort {
    pub(super) number: Option<PortNo>,
    /// Name of the port in flow entries and groups.
    pub(super) name: String,
    /// Kind, name and options except queues.
    pub(super) spec: String,
    pub(super) queues: BTreeMap<u32, PortQueueConfig>,
    /// The port as it is written.
    pub(super) text: String,
}

impl ConfiguredPort {
    /// Parses a port.
    ///
    /// # Errors
    /// The text is no port.
    pub(super) fn parse(text: &str) -> anyhow::Result<ConfiguredPort> {
        let PortArgument { number, spec } = text.parse().map_err(|problem: String| anyhow!("port: {problem}"))?;
        let queues = spec.options.texts("queue").map(|queue| {
            let queue: PortQueueConfig = queue.parse().map_err(|problem| anyhow!("port {text}: {problem}"))?;
            Ok((queue.id, queue))
        });
        let queues = queues.collect::<anyhow::Result<_>>()?;
        let written = spec.to_string();
        let parts: Vec<&str> = written.split(',').filter(|part| !part.starts_with("queue=")).collect();
        Ok(ConfiguredPort { number, name: spec.name, spec: parts.join(","), queues, text: text.to_owned() })
    }

    /// Parses several ports.
    ///
    /// # Errors
    /// A text is no port.
    pub(super) fn parse_all(texts: &[String]) -> anyhow::Result<Vec<ConfiguredPort>> {
        texts.iter().map(|text| ConfiguredPort::parse(text)).collect()
    }

    /// Returns the port in one way of writing: ports with equal texts are equal.
    pub(super) fn canonical(&self) -> String {
        let number = self.number.map(|number| format!("{number}=")).unwrap_or_default();
        let queues: String = self.queues.values().map(|queue| format!(",queue={queue}")).collect();
        format!("{number}{}{queues}", self.spec)
    }
}

/// Converts a virtual switch's specification, as a switch reports it, to an item `[[virtual]]` of a configuration
/// file, without entries.
///
/// # Errors
/// A value cannot be written in TOML.
pub(super) fn virtual_item(spec: &serde_json::Value) -> anyhow::Result<toml::Table> {
    let mut spec = spec.as_object().cloned().unwrap_or_default();
    spec.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
    // RED's parameters are refused beside another way of managing the queue.
    if spec.get("queue").is_none_or(|queue| queue != "red") {
        spec.remove("red");
    }
    ["lifetime", "entries"].iter().for_each(|key| drop(spec.remove(*key)));
    let name = spec.get("name").map(ToString::to_string).unwrap_or_default();
    let mut item = toml::Table::new();
    for (key, value) in spec {
        let value = without_nulls(value);
        item.insert(key, toml::Value::try_from(value).with_context(|| format!("virtual switch {name}"))?);
    }
    Ok(item)
}

/// Removes keys without a value, which TOML cannot write.
fn without_nulls(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key, without_nulls(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_has_one_text_however_it_is_written() {
        let same = |kind: TableItem, one: &str, other: &str| {
            assert_eq!(
                kind.canonical(one, &PortNumbers::default()).unwrap(),
                kind.canonical(other, &PortNumbers::default()).unwrap(),
                "{one}"
            );
        };
        same(TableItem::Entry, "in_port=1,actions=output:2", "priority=32768 in_port=1 table=0 actions=output:2");
        same(TableItem::Meter, "meter=1,kbps,bands=type=drop,rate=1000", "meter=1 kbps bands= type=drop rate=1000");
        let entry = TableItem::Entry.canonical("table=1,priority=7,tcp,actions=drop", &PortNumbers::default()).unwrap();
        assert_eq!(entry.id, "table=1,priority=7,tcp");
        let error =
            TableItem::Group.canonical("group_id=1,type=selct", &PortNumbers::default()).unwrap_err().to_string();
        assert!(error.starts_with("group `group_id=1,type=selct`: "), "{error}");
    }

    #[test]
    fn what_a_switch_prints_is_read_back() {
        for (kind, text) in [
            (
                TableItem::Meter,
                "meter=7,pktps,burst,stats,bands=type=drop,rate=10,burst_size=5,type=dscp_remark,rate=4,burst_size=2,prec_level=1",
            ),
            (
                TableItem::Entry,
                "table=2,cookie=0x7,importance=3,send_flow_rem,priority=9,ip,nw_dst=10.0.0.0/8 actions=meter:1,group:2",
            ),
            (
                TableItem::Group,
                "group_id=2,type=ff,bucket=watch_port:9,actions=output:9,bucket=watch_group:1,actions=group:1",
            ),
        ] {
            let once = kind.canonical(text, &PortNumbers::default()).unwrap();
            assert_eq!(kind.canonical(&once.text, &PortNumbers::default()).unwrap(), once, "{text}");
        }
    }

    #[test]
    fn queues_are_apart_from_the_port() {
        let one = ConfiguredPort::parse("2=null:x,queue=1:min=1Mbit/s,rate=10Mbit/s,queue=0:priority=1").unwrap();
        assert_eq!((one.spec.as_str(), one.queues.len()), ("null:x,rate=10Mbit/s", 2));
        let other = ConfiguredPort::parse("2=null:x,rate=10Mbit/s,queue=0:priority=1,queue=1:min=1000kbit/s").unwrap();
        assert_eq!(one.canonical(), other.canonical());
    }

    #[test]
    fn a_virtual_switch_is_an_item_of_the_file() {
        let spec = serde_json::json!({
            "name": "gold", "dpid": 257, "paths": null, "queue": "tail_drop", "red": {"min": 1}, "lifetime": null,
            "ports": [{"port": 1, "ceiling": null}], "entries": ["actions=drop"],
        });
        let item = virtual_item(&spec).unwrap().to_string();
        assert_eq!(item.parse::<toml::Table>().unwrap().keys().collect::<Vec<_>>(), ["dpid", "name", "ports", "queue"]);
        assert!(!item.contains("ceiling"), "{item}");
    }
}
