//! Lines of the control socket. A request or a reply is rejected, or unchanged by writing and reading it again. Text
//! inside a request (ports, queues, entries, groups, meters, packets, virtual switches) is rejected or parsed
//! correctly.
#![no_main]
use libfuzzer_sys::fuzz_target;
use std::fmt::{Debug, Display};
use std::str::FromStr;
use std::sync::LazyLock;
use weir_fuzz::bounded;
use weir_openflow::model::{FlowCommand, group::GroupCommand, meter::MeterCommand};
use weir_openflow::text;
use weir_packet::{Field, ParsedHeaders, PortNo};
use weir_port::queues::PortQueueConfig;
use weir_scenario::parse_virtual_switch;
use weir_slicing::{FabricPort, FabricSpec, VirtualSwitch};
use weir_switch::PortArgument;
use weir_switch::ctl::{CtlReply, CtlRequest, described};
use weir_units::Bps;

/// FabricSpec that virtual switches are divided from.
static FABRIC: LazyLock<FabricSpec> = LazyLock::new(|| FabricSpec {
    ports: (1..=4).map(|port| FabricPort { port, rate: Bps(1_000_000_000) }).collect(),
    ..FabricSpec::default()
});

fuzz_target!(|line: &[u8]| {
    bounded(line, || {
        if let Some(CtlReply::Ok(_) | CtlReply::Error(_)) = again::<CtlReply>(line) {
            return;
        }
        if let Some(request) = again::<CtlRequest>(line) {
            read(&request);
        }
    });
});

/// Parses a line. Checks that the result is unchanged by writing and reading it again.
fn again<T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + Debug>(line: &[u8]) -> Option<T> {
    let meant: T = serde_json::from_slice(line).ok()?;
    let told = serde_json::to_string(&meant).expect("nothing in it has no JSON form");
    let understood: T = serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}\n{told}"));
    assert_eq!(understood, meant, "{told}");
    Some(meant)
}

/// Parses the text inside a request as the switch does.
fn read(request: &CtlRequest) {
    match request {
        CtlRequest::AddPort { port } => written_again::<PortArgument>(port, |argument| argument.spec.to_string()),
        CtlRequest::SetQueue { queue, .. } => written_again::<PortQueueConfig>(queue, ToString::to_string),
        CtlRequest::DumpFlows { filter } => drop(text::parse_flow(filter, FlowCommand::Delete)),
        CtlRequest::FlowMod { command, flow } => drop(text::parse_flow(flow, (*command).into())),
        CtlRequest::GroupMod { group, .. } => drop(text::parse_group(group, GroupCommand::Add)),
        CtlRequest::MeterMod { meter, .. } => drop(text::parse_meter(meter, MeterCommand::Add)),
        CtlRequest::DumpMeters { meter } | CtlRequest::MeterStats { meter } => drop(text::parse_meter_id(meter)),
        CtlRequest::Trace { packet, .. } => packet_described(packet),
        CtlRequest::AddVirtual { text, file } => virtual_switch(text, file),
        CtlRequest::Of { what, .. } => read(what),
        _ => {}
    }
}

fn written_again<T: FromStr<Err: Display> + PartialEq + Debug>(text: &str, write: impl Fn(&T) -> String) {
    let Ok(meant) = text.parse::<T>() else { return };
    let told = write(&meant);
    let understood = told.parse::<T>().unwrap_or_else(|error| panic!("{error}\n{told}"));
    assert_eq!(write(&understood), told);
}

/// Checks that a described packet can be parsed, and has the described fields.
fn packet_described(text: &str) {
    let Ok(packet) = described(text) else { return };
    let parsed = ParsedHeaders::of(&packet.frame, PortNo(1));
    let Ok(matching) = text::parse_match(text) else { return };
    // Digits alone are a frame, although some are a field's name, too.
    if text.contains(|c: char| !c.is_ascii_hexdigit() && !c.is_whitespace() && c != ':') {
        let key = parsed.expect("it was crafted from headers").key;
        let fields = Field::ALL.iter().filter(|field| **field != Field::InPort);
        for (field, (value, _)) in fields.filter_map(|field| Some((*field, matching.get(*field)?))) {
            assert_eq!(key.get(field), value, "{field} of {text}");
        }
    }
}

/// Checks that a virtual switch is unchanged by writing and reading it again, as happens when a running one is
/// changed. The lifetime is excluded, because it starts again.
fn virtual_switch(text: &str, file: &str) {
    let Ok(meant) = parse_virtual_switch(text, file, &FABRIC) else { return };
    let meant = VirtualSwitch { lifetime: None, ..meant };
    let told = toml::to_string(&meant).unwrap_or_else(|error| panic!("{error}: {meant:?}"));
    let understood = parse_virtual_switch(&told, file, &FABRIC).unwrap_or_else(|error| panic!("{error}\n{told}"));
    assert_eq!(understood, meant, "{told}");
}
