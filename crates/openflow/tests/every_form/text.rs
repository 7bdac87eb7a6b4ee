//! Tests that printed text is parsed back to the same value, and that no text makes the parser panic.
use crate::action::{ANY_LENGTH, change};
use crate::entries::{flow, flow_stats, group_desc, meter};
use crate::matching::by_whole_tag;
use proptest::prelude::*;
use weir_openflow::model::group::{GroupCommand, GroupDesc};
use weir_openflow::model::meter::{BandKind, MeterCommand, MeterMod, flags};
use weir_openflow::model::{Action, FlowCommand, FlowMod, Instruction, NxAction, PortNo};
use weir_openflow::{Version, text};

/// Normalises the spelling of an action.
fn plain_action(action: &Action) -> Vec<Action> {
    vec![match action {
        // The length applies only to the controller.
        Action::Output { port, .. } if *port != PortNo::CONTROLLER => Action::output(*port),
        Action::Nx(nx) => match **nx {
            NxAction::SetTunnel { id, wide } => {
                NxAction::SetTunnel { id, wide: wide || id > u64::from(u32::MAX) }.into_action()
            }
            // Open vSwitch's syntax has no place for the length.
            NxAction::OutputReg { src, .. } => NxAction::OutputReg { src, max_len: ANY_LENGTH }.into_action(),
            _ => action.clone(),
        },
        _ => action.clone(),
    }]
}

fn plain_actions(actions: &[Action]) -> Vec<Action> {
    change(actions, &plain_action)
}

/// Returns the instructions in the order of their execution, with a meter action before all actions and a metadata
/// action after them as instructions.
fn plain_instructions(instructions: &[Instruction]) -> Vec<Instruction> {
    let mut plain: Vec<Instruction> = Vec::new();
    let has = |wanted: fn(&Instruction) -> bool| instructions.iter().any(wanted);
    let has_meter = has(|one| matches!(one, Instruction::Meter(_)));
    let has_metadata = has(|one| matches!(one, Instruction::WriteMetadata { .. }));
    for one in instructions {
        match one {
            Instruction::ApplyActions(actions) => {
                let mut actions = plain_actions(actions);
                if let (Some(Action::Meter(meter)), false) = (actions.first().cloned(), has_meter) {
                    actions.remove(0);
                    plain.push(Instruction::Meter(meter));
                }
                if let (Some(Action::Nx(nx)), false) = (actions.last().cloned(), has_metadata)
                    && let NxAction::WriteMetadata { metadata, mask } = *nx
                {
                    actions.pop();
                    plain.push(Instruction::WriteMetadata { metadata, mask });
                }
                if !actions.is_empty() {
                    plain.push(Instruction::ApplyActions(actions));
                }
            }
            Instruction::WriteActions(actions) => plain.push(Instruction::WriteActions(plain_actions(actions))),
            other => plain.push(other.clone()),
        }
    }
    plain.sort_by_key(Instruction::execution_order);
    plain
}

/// Returns a flow-mod without the parts that have no effect in its command.
fn plain_flow(flow: &FlowMod) -> FlowMod {
    let is_delete = matches!(flow.command, FlowCommand::Delete | FlowCommand::DeleteStrict);
    let cookie_mask = if flow.command == FlowCommand::Add { 0 } else { flow.cookie_mask };
    FlowMod {
        cookie: if is_delete && cookie_mask == 0 { 0 } else { flow.cookie },
        cookie_mask,
        matching: by_whole_tag(&flow.matching),
        instructions: if is_delete { Vec::new() } else { plain_instructions(&flow.instructions) },
        ..flow.clone()
    }
}

fn plain_group(group: &GroupDesc) -> GroupDesc {
    let mut group = group.clone();
    for bucket in &mut group.buckets {
        bucket.actions = plain_actions(&bucket.actions);
    }
    group
}

/// The number that stands for "any port" elsewhere is an ordinary value of a match field.
#[test]
fn a_port_of_all_ones_is_matched() {
    use weir_openflow::model::Match;
    use weir_packet::Field;
    for field in [Field::InPort, Field::InPhyPort] {
        let matching = Match::any().with(Field::InPort, 0xffff_ffff_u32);
        let matching = if field == Field::InPort { matching } else { matching.with(field, 0xffff_ffff_u32) };
        let flow = FlowMod::add(1, matching, Vec::new());
        let written = text::format_flow(&flow, Version::V13);
        assert_eq!(text::parse_flow(&written, FlowCommand::Add).unwrap(), flow, "{written}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_flow_written_is_read_back(flow in flow(), version in prop::sample::select(Version::ALL.to_vec())) {
        let written = text::format_flow(&flow, version);
        let read = text::parse_flow(&written, flow.command).map(|read| plain_flow(&read));
        prop_assert_eq!(read, Ok(plain_flow(&flow)), "{}", written);
        // The parsed value is printed to a text with exactly the same meaning.
        let read = text::parse_flow(&written, flow.command).unwrap();
        let again = text::format_flow(&read, version);
        prop_assert_eq!(text::parse_flow(&again, flow.command), Ok(read), "{}", again);
    }

    /// A line of a listing parses to the entry that it shows.
    #[test]
    fn an_entry_listed_is_read_back(stats in flow_stats()) {
        let written = text::format_stats(&stats, Version::V13);
        let expected = FlowMod {
            cookie: stats.cookie,
            table: stats.table,
            idle_timeout: stats.idle_timeout,
            hard_timeout: stats.hard_timeout,
            flags: stats.flags,
            importance: stats.importance,
            ..FlowMod::add(stats.priority, stats.matching, stats.instructions)
        };
        let read = text::parse_flow(&written, FlowCommand::Add).map(|read| plain_flow(&read));
        prop_assert_eq!(read, Ok(plain_flow(&expected)), "{}", written);
        // Milliseconds at most: `12s` or `12.345s`.
        let (_, lived) = written.split_once("duration=").unwrap();
        let (lived, _) = lived.split_once("s,").unwrap();
        let digits = lived.split_once('.').map_or(0, |(_, digits)| digits.len());
        prop_assert!(digits == 0 || digits == 3, "{}", written);
    }

    #[test]
    fn a_group_listed_is_read_back(desc in group_desc()) {
        let written = text::format_group(&desc);
        let read = text::parse_group(&written, GroupCommand::Add).map(|read| {
            GroupDesc { kind: read.kind, group: read.group, buckets: read.buckets, properties: read.properties }
        });
        prop_assert_eq!(read.map(|read| plain_group(&read)), Ok(plain_group(&desc)), "{}", written);
    }

    /// An experimenter's or unknown band is printed, and refused when parsed.
    #[test]
    fn a_meter_listed_is_read_back(mut meter in meter()) {
        meter.command = MeterCommand::Add;
        let written = text::format_meter(meter.meter, meter.flags, &meter.bands);
        let is_known = |kind: &BandKind| matches!(kind, BandKind::Drop | BandKind::DscpRemark { .. });
        let is_both = meter.flags & flags::KBPS != 0 && meter.flags & flags::PKTPS != 0;
        let read = text::parse_meter(&written, MeterCommand::Add);
        if is_both || !meter.bands.iter().all(|band| is_known(&band.kind)) {
            prop_assert!(read.is_err(), "{}", written);
            return Ok(());
        }
        // The burst size has no effect without the flag.
        for band in &mut meter.bands {
            band.burst_size = if meter.flags & flags::BURST != 0 { band.burst_size } else { 0 };
        }
        let plain = |meter: MeterMod| MeterMod { flags: meter.flags & !flags::KBPS, ..meter };
        prop_assert_eq!(read.map(plain), Ok(plain(meter)), "{}", written);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,80}", command in 0_u16..6) {
        let _ = text::parse_flow(&text, FlowCommand::Add);
        let _ = text::parse_group(&text, GroupCommand::from_number(command));
        let _ = text::parse_meter(&text, MeterCommand::from_number(command));
    }

    #[test]
    fn a_changed_text_is_read_or_refused(flow in flow(), at in any::<prop::sample::Index>(), with in "\\PC{0,3}") {
        let written = text::format_flow(&flow, Version::V13);
        let at = at.index(written.len() + 1);
        let changed = format!("{}{with}{}", &written[..at], written.get(at + 1..).unwrap_or_default());
        if let Err(error) = text::parse_flow(&changed, flow.command) {
            prop_assert!(error.position <= changed.len(), "{} in {}", error, changed);
        }
    }

    #[test]
    fn a_changed_group_is_read_or_refused(group in group_desc(), at in any::<prop::sample::Index>(), with in "\\PC{0,3}") {
        let written = text::format_group(&group);
        let at = at.index(written.len() + 1);
        let changed = format!("{}{with}{}", &written[..at], written.get(at + 1..).unwrap_or_default());
        if let Err(error) = text::parse_group(&changed, GroupCommand::Add) {
            prop_assert!(error.position <= changed.len(), "{} in {}", error, changed);
        }
    }
}
