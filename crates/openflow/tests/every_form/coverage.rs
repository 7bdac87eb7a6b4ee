//! Tests that the generators cover every field with and without mask, every action and every instruction.
use crate::action::{action, instructions};
use crate::matching::matching;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeSet;
use weir_openflow::model::{Action, Instruction, MatchField, NxAction};
use weir_packet::Field;

const DRAWS: usize = 6000;

/// Passes generated values to `seen`, the same in every run.
fn each<T: std::fmt::Debug>(strategy: &impl Strategy<Value = T>, mut seen: impl FnMut(T)) {
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    for _ in 0..DRAWS {
        seen(strategy.new_tree(&mut runner).unwrap().current());
    }
}

/// Every match field is generated: exact, masked if it is maskable, and with all its bits set.
#[test]
fn every_field_is_matched() {
    let (mut exact, mut masked, mut full) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    each(&matching(), |matching| {
        for entry in matching.fields {
            let MatchField::Known { field, value, mask } = entry else { continue };
            if mask.is_some() {
                masked.insert(field)
            } else {
                exact.insert(field)
            };
            if value == field.all_ones() {
                full.insert(field);
            }
        }
    });
    let every: BTreeSet<_> = Field::ALL.into_iter().collect();
    assert_eq!(exact, every);
    assert_eq!(masked, every.iter().copied().filter(|field| field.is_maskable()).collect());
    assert_eq!(full, every, "with all bits set");
}

/// Returns the kind of an action. A new action does not compile until it has a name here, and fails the test until it
/// is generated.
fn kind(action: &Action) -> &'static str {
    match action {
        Action::Output { .. } => "output",
        Action::Group(_) => "group",
        Action::SetQueue(_) => "set_queue",
        Action::CopyTtlOut => "copy_ttl_out",
        Action::CopyTtlIn => "copy_ttl_in",
        Action::SetMplsTtl(_) => "set_mpls_ttl",
        Action::DecMplsTtl => "dec_mpls_ttl",
        Action::SetNwTtl(_) => "set_nw_ttl",
        Action::DecNwTtl => "dec_nw_ttl",
        Action::PushVlan(_) => "push_vlan",
        Action::PopVlan => "pop_vlan",
        Action::PushMpls(_) => "push_mpls",
        Action::PopMpls(_) => "pop_mpls",
        Action::PushPbb(_) => "push_pbb",
        Action::PopPbb => "pop_pbb",
        Action::SetField { .. } => "set_field",
        Action::SetVlanVid(_) => "set_vlan_vid",
        Action::SetVlanPcp(_) => "set_vlan_pcp",
        Action::SetNwSrc(_) => "set_nw_src",
        Action::SetNwDst(_) => "set_nw_dst",
        Action::SetNwTos(_) => "set_nw_tos",
        Action::SetTpSrc(_) => "set_tp_src",
        Action::SetTpDst(_) => "set_tp_dst",
        Action::Enqueue { .. } => "enqueue",
        Action::SetFieldMasked { .. } => "set_field_masked",
        Action::Move { .. } => "move",
        Action::Meter(_) => "meter",
        Action::DecNshTtl => "dec_nsh_ttl",
        Action::Encap(_) => "encap",
        Action::Decap(_) => "decap",
        Action::Experimenter { .. } => "experimenter",
        Action::SetFieldRaw(_) => "set_field_raw",
        Action::Nx(nx) => match **nx {
            NxAction::Resubmit { .. } => "resubmit",
            NxAction::Load { .. } => "load",
            NxAction::SetTunnel { .. } => "set_tunnel",
            NxAction::PopQueue => "pop_queue",
            NxAction::Note(_) => "note",
            NxAction::Exit => "exit",
            NxAction::DecTtl(_) => "dec_ttl",
            NxAction::Multipath(_) => "multipath",
            NxAction::Bundle(_) => "bundle",
            NxAction::OutputReg { .. } => "output_reg",
            NxAction::Learn(_) => "learn",
            NxAction::FinTimeout { .. } => "fin_timeout",
            NxAction::Controller(_) => "controller",
            NxAction::WriteMetadata { .. } => "write_metadata",
            NxAction::Push(_) => "push",
            NxAction::Pop(_) => "pop",
            NxAction::OutputTrunc { .. } => "output_trunc",
            NxAction::Clone(_) => "clone",
            NxAction::CheckLarger { .. } => "check_larger",
        },
    }
}

/// Number of kinds that [`kind`] returns.
const KINDS: usize = 51;

#[test]
fn every_action_and_instruction_is_drawn() {
    let (mut kinds, mut set, mut ordered) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    each(&action(), |action| {
        kinds.insert(kind(&action));
        if let Action::SetField { field, .. } = action {
            set.insert(field);
        }
    });
    assert_eq!(kinds.len(), KINDS, "drawn: {kinds:?}");
    assert_eq!(set, Field::ALL.into_iter().collect());
    each(&instructions(), |list| {
        ordered.extend(list.iter().map(|one| match one {
            Instruction::GotoTable(_) => 0,
            Instruction::WriteMetadata { .. } => 1,
            Instruction::WriteActions(_) => 2,
            Instruction::ApplyActions(_) => 3,
            Instruction::ClearActions => 4,
            Instruction::Meter(_) => 5,
            Instruction::StatTrigger { .. } => 6,
            Instruction::Experimenter { .. } => 7,
        }));
    });
    assert_eq!(ordered, (0..8).collect());
}
