//! Parses text as flow entries, groups, meters, matches, actions and instructions: parsed items are unchanged by
//! writing and reading them again.
//!
//! The first byte chooses: its low four bits the form, its highest bit the syntax of 1.0 or 1.3.
#![no_main]
use libfuzzer_sys::fuzz_target;
use std::fmt::Debug;
use weir_fuzz::{bounded, choice_and_text};
use weir_openflow::model::FlowCommand;
use weir_openflow::model::group::{GroupCommand, GroupDesc, GroupMod};
use weir_openflow::model::meter::{MeterCommand, MeterMod};
use weir_openflow::{Version, text};

const FLOW_COMMANDS: [FlowCommand; 5] =
    [FlowCommand::Add, FlowCommand::Modify, FlowCommand::ModifyStrict, FlowCommand::Delete, FlowCommand::DeleteStrict];
const GROUP_COMMANDS: [GroupCommand; 5] = [
    GroupCommand::Add,
    GroupCommand::Modify,
    GroupCommand::Delete,
    GroupCommand::InsertBucket,
    GroupCommand::RemoveBucket,
];
const METER_COMMANDS: [MeterCommand; 3] = [MeterCommand::Add, MeterCommand::Modify, MeterCommand::Delete];

fuzz_target!(|input: &[u8]| {
    let Some((choice, written)) = choice_and_text(input) else { return };
    let version = if choice & 0x80 == 0 { Version::V13 } else { Version::V10 };
    bounded(input, || match usize::from(choice & 0xf) {
        at @ 0..5 => {
            let command = FLOW_COMMANDS[at];
            again(written, |text| text::parse_flow(text, command), |flow| text::format_flow(flow, version));
        }
        at @ 5..10 => group(written, GROUP_COMMANDS[at - 5]),
        at @ 10..13 => meter(written, METER_COMMANDS[at - 10]),
        13 => again(written, text::parse_match, text::format_match),
        14 => again(written, text::parse_actions, |actions| text::format_actions(actions, version)),
        _ => again(written, text::parse_instructions, |list| text::format_instructions(list, version)),
    });
});

/// Parses a text. Checks that the result is unchanged by writing and reading it again.
fn again<T: PartialEq + Debug, E: Debug>(
    written: &str,
    read: impl Fn(&str) -> Result<T, E>,
    write: impl Fn(&T) -> String,
) {
    let Ok(meant) = read(written) else { return };
    let told = write(&meant);
    let understood = read(&told).unwrap_or_else(|error| panic!("{error:?}\n {told}\n {meant:?}"));
    assert_eq!(understood, meant, "{told}");
}

/// Parses a group. Only complete groups are written: other commands have no separate text form.
fn group(written: &str, command: GroupCommand) {
    let Ok(meant) = text::parse_group(written, command) else { return };
    if !matches!(command, GroupCommand::Add | GroupCommand::Modify) {
        return;
    }
    let GroupMod { kind, group, buckets, properties, .. } = meant.clone();
    let told = text::format_group(&GroupDesc { kind, group, buckets, properties });
    let mut understood = text::parse_group(&told, command).unwrap_or_else(|error| panic!("{error:?}\n {told}"));
    understood.command_bucket = meant.command_bucket;
    assert_eq!(understood, meant, "{told}");
}

/// Parses a meter, and a meter's number. Deletes have no bands to write.
fn meter(written: &str, command: MeterCommand) {
    let _ = text::parse_meter_id(written);
    if command == MeterCommand::Delete {
        let _ = text::parse_meter(written, command);
        return;
    }
    let write = |meter: &MeterMod| text::format_meter(meter.meter, meter.flags, &meter.bands);
    again(written, |text| text::parse_meter(text, command), write);
}
