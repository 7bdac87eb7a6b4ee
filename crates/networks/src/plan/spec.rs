//! Describes a virtual switch by keys and values, as a switch takes and shows it.
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use weir_slicing::VirtualSwitch;
use weir_units::Bps;

/// Virtual switch with the keys of a scenario's `[[switch.virtual]]`, without keys that have no value. Two are equal if
/// a switch treats them alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SliceSpec(Map<String, Value>);

impl SliceSpec {
    /// Returns a virtual switch from the value that a switch shows.
    ///
    /// # Errors
    /// The value is not a table with a name and a datapath id.
    pub fn from_value(value: Value) -> Result<SliceSpec, String> {
        let Value::Object(table) = without_nothing(value) else {
            return Err("found a virtual switch that is not a table".to_owned());
        };
        if !table.get("name").is_some_and(Value::is_string) || !table.get("dpid").is_some_and(Value::is_u64) {
            return Err("found a virtual switch without name or dpid".to_owned());
        }
        Ok(SliceSpec(table))
    }

    /// Returns the name of the virtual switch.
    pub fn name(&self) -> &str {
        self.0["name"].as_str().unwrap_or_default()
    }

    /// Returns the datapath id.
    pub fn dpid(&self) -> u64 {
        self.0["dpid"].as_u64().unwrap_or_default()
    }

    /// Returns the text that a switch takes.
    ///
    /// # Errors
    /// A value cannot be written as TOML.
    pub fn toml(&self) -> Result<String, String> {
        let mut keys = self.0.clone();
        // Switches show the settings of early drops always, and take them only with these.
        if keys.get("queue").and_then(Value::as_str) != Some("red") {
            keys.remove("red");
        }
        let table = toml::Table::try_from(&keys).map_err(|error| error.to_string())?;
        Ok(table.to_string())
    }

    /// Returns true if both have one name and one datapath id.
    pub(super) fn is_same_switch(&self, other: &SliceSpec) -> bool {
        self.name() == other.name() && self.dpid() == other.dpid()
    }

    /// Returns the port and the VLAN id of each selector.
    pub(super) fn selectors(&self) -> impl Iterator<Item = (Option<u64>, Option<u64>)> {
        let selectors = self.0.get("select").and_then(Value::as_array).into_iter().flatten();
        selectors.map(|one| (one.get("port").and_then(Value::as_u64), one.get("vlan").and_then(Value::as_u64)))
    }

    /// Returns this virtual switch with output rates that are at most those of `other` at the ports that both have:
    /// neither ceilings nor guaranteed rates are larger.
    pub(super) fn with_rates_at_most(&self, other: &SliceSpec) -> SliceSpec {
        let mut lowered = self.clone();
        let ports = lowered.0.get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            let number = port.get("number").cloned();
            let Some(before) = other.ports().find(|one| one.get("number") == number.as_ref()) else { continue };
            for key in ["ceiling", "rate_out"] {
                let Some(most) = before.get(key) else { continue };
                let is_lower = |own: &Value| rate(own).zip(rate(most)).is_some_and(|(own, most)| own <= most);
                if !port.get(key).is_some_and(is_lower) {
                    port.insert(key.to_owned(), most.clone());
                }
            }
        }
        lowered
    }

    fn ports(&self) -> impl Iterator<Item = &Value> {
        self.0.get("ports").and_then(Value::as_array).into_iter().flatten()
    }
}

impl From<&VirtualSwitch> for SliceSpec {
    fn from(switch: &VirtualSwitch) -> SliceSpec {
        match serde_json::to_value(switch).map(without_nothing) {
            Ok(Value::Object(table)) => SliceSpec(table),
            // Structs with names as keys are always tables.
            _ => SliceSpec(Map::new()),
        }
    }
}

fn rate(value: &Value) -> Option<Bps> {
    value.as_str()?.parse().ok()
}

/// Returns a value without keys that have none. A rate of zero is none: files of virtual switches leave it out.
fn without_nothing(value: Value) -> Value {
    let is_something = |value: &Value| !value.is_null() && value.as_str() != Some("0bit/s");
    match value {
        Value::Object(table) => {
            let kept = table.into_iter().filter(|(_, value)| is_something(value));
            Value::Object(kept.map(|(key, value)| (key, without_nothing(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nothing).collect()),
        other => other,
    }
}
