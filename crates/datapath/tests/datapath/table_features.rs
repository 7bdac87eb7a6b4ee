//! Restricting the features of tables (OpenFlow 1.3.5, 7.3.5.5).
use crate::bench::*;
use std::time::Duration;
use weir_openflow::model::error::{
    BadAction, BadInstruction, BadMatch, BadRequest, FlowModFailed, TableFeaturesFailed, TableModFailed,
};
use weir_openflow::model::multipart::{
    FeatureTypeId, MultipartRequest, ReplyBody, RequestBody, TableFeatures, TableProperty,
};
use weir_openflow::model::role::{Role, RoleMessage};
use weir_openflow::model::{ActionType, ErrorType, FlowMod, Instruction, InstructionType, Match, TableId};
use weir_openflow::{Body, Message, Version, codec};
use weir_packet::Field;

fn ask(bench: &mut Bench, wanted: Vec<TableFeatures>) -> Result<Vec<TableFeatures>, ErrorType> {
    let replies = bench.multipart(CONTROLLER, RequestBody::TableFeatures(wanted))?;
    let tables = replies.into_iter().flat_map(|reply| match reply {
        ReplyBody::TableFeatures(tables) => tables,
        other => panic!("{other:?}"),
    });
    Ok(tables.collect())
}

fn current(bench: &mut Bench) -> Vec<TableFeatures> {
    ask(bench, Vec::new()).unwrap()
}

fn flow(table: u8, matching: Match, instructions: Vec<Instruction>) -> FlowMod {
    FlowMod { table: TableId(table), ..FlowMod::add(1, matching, instructions) }
}

/// Applies `what` to each property of a table.
fn change(table: &mut TableFeatures, mut what: impl FnMut(&mut TableProperty)) {
    table.properties.iter_mut().for_each(&mut what);
}

#[test]
fn what_they_are_can_be_asked_for() {
    let mut bench = Bench::controlled();
    bench.add(1, from_port(1), output(2));
    let all = current(&mut bench);
    assert_eq!(all.len(), 64);
    assert_eq!(ask(&mut bench, all.clone()), Ok(all));
    assert_eq!(bench.ports_of(1, &frame()), [2], "nothing changed, so no entry went");
}

#[test]
fn names_and_sizes_are_taken() {
    let mut bench = Bench::controlled();
    let mut all = current(&mut bench);
    all[3].name = "acl".into();
    all[3].max_entries = 1;
    assert_eq!(ask(&mut bench, all.clone()), Ok(all));
    assert_eq!(bench.flow_mod(&flow(3, from_port(1), apply(output(2)))), Ok(()));
    let full = bench.flow_mod(&flow(3, from_port(2), apply(output(2))));
    assert_eq!(full, Err(FlowModFailed::TableFull.into()));
    let stats = bench.multipart(CONTROLLER, RequestBody::Table).unwrap();
    let [ReplyBody::Table(stats)] = &stats[..] else { panic!("{stats:?}") };
    assert_eq!((&stats[3].name[..], stats[3].max_entries), ("acl", 1));
}

#[test]
fn tables_left_out_leave_the_pipeline() {
    let mut bench = Bench::controlled();
    bench.flow_mod(&flow(0, from_port(1), vec![Instruction::GotoTable(TableId(9))])).unwrap();
    bench.flow_mod(&flow(9, Match::any(), apply(output(2)))).unwrap();
    assert_eq!(bench.ports_of(1, &frame()), [2]);
    let all = current(&mut bench);
    assert_eq!(ask(&mut bench, all[..2].to_vec()).unwrap().len(), 2);
    assert_eq!(bench.ports_of(1, &frame()), [0; 0], "the entry that led there went");
    let gone = Err(ErrorType::from(FlowModFailed::BadTableId));
    assert_eq!(bench.flow_mod(&flow(9, Match::any(), Vec::new())), gone);
    let goto = bench.flow_mod(&flow(0, from_port(1), vec![Instruction::GotoTable(TableId(9))]));
    assert_eq!(goto, Err(BadInstruction::BadTableId.into()));
    let table_mod = Body::TableMod(weir_openflow::model::config::TableMod::new(TableId(9), 0));
    assert_eq!(bench.error_of(CONTROLLER, table_mod), Some(TableModFailed::BadTable.into()));
    assert_eq!(ask(&mut bench, all).unwrap().len(), 64, "they come back when asked for");
    assert_eq!(bench.flow_mod(&flow(9, Match::any(), Vec::new())), Ok(()));
}

#[test]
fn less_is_what_entries_may_do_from_then_on() {
    let mut bench = Bench::controlled();
    bench.add(1, from_port(1), output(2));
    let mut all = current(&mut bench);
    all[0].metadata_write = 0xff;
    all[0].metadata_match = 0xf0;
    change(&mut all[0], |property| match property {
        TableProperty::Instructions { ids, .. } => {
            ids.retain(|id| *id != FeatureTypeId::Standard(InstructionType::WriteActions))
        }
        TableProperty::NextTables { tables, .. } => tables.truncate(1),
        TableProperty::ApplyActions { ids, .. } => {
            let kept = [ActionType::Output, ActionType::SetField].map(FeatureTypeId::Standard);
            ids.retain(|id| kept.contains(id));
        }
        TableProperty::ApplySetField { fields, .. } => fields.retain(|id| id.field() == Some(Field::EthDst)),
        TableProperty::Match(fields) => {
            let kept = [Field::InPort, Field::EthSrc, Field::Metadata].map(Some);
            fields.retain(|id| kept.contains(&id.field()));
            fields.iter_mut().filter(|id| id.field() == Some(Field::EthSrc)).for_each(|id| id.has_mask = false);
        }
        TableProperty::Wildcards(fields) => fields.retain(|id| id.field() != Some(Field::InPort)),
        _ => {}
    });
    let reply = ask(&mut bench, all.clone()).unwrap();
    assert_eq!(reply, all);
    assert_eq!(bench.ports_of(1, &frame()), [0; 0], "the table changed, so its entries went");

    use weir_openflow::model::Action;
    let set = |field| vec![Instruction::ApplyActions(vec![Action::SetField { field, value: 1 }])];
    let metadata = |mask| vec![Instruction::WriteMetadata { metadata: 0, mask }];
    let cases: [(Match, Vec<Instruction>, Option<ErrorType>); 13] = [
        (from_port(1), apply(output(2)), None),
        (from_port(1), set(Field::EthDst), None),
        (from_port(1), set(Field::EthSrc), Some(BadAction::BadSetType.into())),
        (from_port(1), apply(vec![Action::PushVlan(0x8100)]), Some(BadAction::BadType.into())),
        (from_port(1), vec![Instruction::WriteActions(output(2))], Some(BadInstruction::UnsupInst.into())),
        (from_port(1), vec![Instruction::GotoTable(TableId(1))], None),
        (from_port(1), vec![Instruction::GotoTable(TableId(2))], Some(BadInstruction::BadTableId.into())),
        (from_port(1).with(Field::EthDst, 1_u32), Vec::new(), Some(BadMatch::BadField.into())),
        (from_port(1).with_masked(Field::EthSrc, 0_u32, 1_u32), Vec::new(), Some(BadMatch::BadMask.into())),
        (from_port(1).with(Field::Metadata, 1_u32), Vec::new(), Some(BadMatch::BadMask.into())),
        (Match::any(), Vec::new(), Some(BadMatch::BadWildcards.into())),
        (from_port(1), metadata(0xff), None),
        (from_port(1), metadata(0x100), Some(BadInstruction::UnsupMetadataMask.into())),
    ];
    for (matching, instructions, error) in cases {
        let flow = flow(0, matching, instructions);
        assert_eq!(bench.error_of(CONTROLLER, Body::FlowMod(flow.clone())), error, "{flow:?}");
    }
    let miss = FlowMod::add(0, Match::any(), apply(output(3)));
    assert_eq!(bench.flow_mod(&miss), Ok(()), "the table-miss entry always matches all");
}

#[test]
fn the_miss_entry_has_its_own_properties() {
    let mut bench = Bench::controlled();
    let mut all = current(&mut bench);
    all[0].properties.push(TableProperty::ApplyActions { miss: true, ids: Vec::new() });
    ask(&mut bench, all).unwrap();
    let miss = FlowMod::add(0, Match::any(), apply(output(3)));
    assert_eq!(bench.flow_mod(&miss), Err(BadAction::BadType.into()));
    assert_eq!(bench.flow_mod(&FlowMod { priority: 1, ..miss }), Ok(()));
}

#[test]
fn what_there_is_not_is_refused_and_nothing_changes() {
    let mut bench = Bench::controlled();
    let all = current(&mut bench);
    type Wrong = fn(&mut Vec<TableFeatures>);
    let cases: [(Wrong, TableFeaturesFailed); 11] = [
        (|tables| tables[5].table = TableId(64), TableFeaturesFailed::BadTable),
        (|tables| tables[5].table = TableId(4), TableFeaturesFailed::BadTable),
        (|tables| drop(tables.remove(0)), TableFeaturesFailed::BadTable),
        (|tables| tables[5].max_entries = 1_000_001, TableFeaturesFailed::BadArgument),
        (|tables| tables[5].config = 1 << 9, TableFeaturesFailed::BadArgument),
        (|tables| drop(tables[5].properties.pop()), TableFeaturesFailed::BadArgument),
        (
            |tables| {
                let twice = tables[5].properties[0].clone();
                tables[5].properties.push(twice);
            },
            TableFeaturesFailed::BadType,
        ),
        (
            |tables| tables[5].properties.push(TableProperty::Unknown { kind: 99, data: vec![].into() }),
            TableFeaturesFailed::BadType,
        ),
        (
            |tables| {
                change(&mut tables[5], |property| {
                    if let TableProperty::Instructions { ids, .. } = property {
                        ids.push(FeatureTypeId::Standard(InstructionType::Unknown(77)));
                    }
                });
            },
            TableFeaturesFailed::BadArgument,
        ),
        (
            |tables| {
                change(&mut tables[5], |property| {
                    if let TableProperty::NextTables { tables, .. } = property {
                        tables.push(TableId(5));
                    }
                });
            },
            TableFeaturesFailed::BadArgument,
        ),
        (
            |tables| {
                change(&mut tables[5], |property| {
                    if let TableProperty::Match(fields) = property {
                        fields.iter_mut().for_each(|id| id.has_mask = true);
                    }
                });
            },
            TableFeaturesFailed::BadArgument,
        ),
    ];
    for (number, (wrong, error)) in cases.into_iter().enumerate() {
        let mut wanted = all.clone();
        wanted[1].name = "other".into();
        wrong(&mut wanted);
        assert_eq!(ask(&mut bench, wanted), Err(error.into()), "case {number}");
        assert_eq!(current(&mut bench), all, "case {number}");
    }
}

#[test]
fn slaves_may_ask_but_not_set() {
    let mut bench = Bench::controlled();
    let all = current(&mut bench);
    bench.ask(CONTROLLER, Body::RoleRequest(RoleMessage { role: Role::Slave, short_id: 0, generation_id: 1 }));
    assert_eq!(current(&mut bench), all);
    assert_eq!(ask(&mut bench, all), Err(BadRequest::IsSlave.into()));
}

#[test]
fn a_request_in_parts_is_one() {
    let mut bench = Bench::controlled();
    let mut all = current(&mut bench);
    all[63].name = "last".into();
    let part = |more, tables: &[TableFeatures]| {
        let body = RequestBody::TableFeatures(tables.to_vec());
        Body::MultipartRequest(MultipartRequest { more, body })
    };
    assert_eq!(bench.ask(CONTROLLER, part(true, &all[..30])), []);
    assert_eq!(bench.ask(CONTROLLER, part(true, &all[30..])), []);
    assert!(!bench.ask(CONTROLLER, part(false, &[])).is_empty());
    assert_eq!(current(&mut bench), all);

    // Requests with more tables than exist are refused.
    let tables = [&all[..], &all, &all, &all].concat();
    let overflow = bench.error_of(CONTROLLER, part(true, &tables));
    assert_eq!(overflow, Some(BadRequest::MultipartBufferOverflow.into()));
    for (xid, refused) in [(1, false), (2, false), (3, false), (4, false), (5, true)] {
        let message = Message { xid, body: part(true, &all[..1]) };
        bench.datapath.handle(bench.now, CONTROLLER, message, &mut bench.pool, &mut bench.out);
        assert_eq!(!bench.told(CONTROLLER).is_empty(), refused, "request {xid}");
    }
    // A request whose remaining parts never arrive is discarded.
    bench.wait(Duration::from_secs(11));
    bench.datapath.expire(bench.now, &mut bench.out);
    assert_eq!(bench.told(CONTROLLER), [], "1.3 has no error for it");
    assert_eq!(bench.ask(CONTROLLER, part(true, &all[..1])), []);
}

#[test]
fn a_request_whose_rest_never_comes_is_refused() {
    let mut bench = Bench::new();
    bench.datapath.channel_up(bench.now, CONTROLLER, Version::V14);
    let first = current(&mut bench)[..1].to_vec();
    let request = MultipartRequest { more: true, body: RequestBody::TableFeatures(first) };
    let message = Message { xid: 5, body: Body::MultipartRequest(request) };
    let mut bytes = Vec::new();
    codec::encode(&message, Version::V14, &mut bytes).unwrap();
    bench.datapath.handle(bench.now, CONTROLLER, message, &mut bench.pool, &mut bench.out);
    let next = bench.datapath.expire(bench.now, &mut bench.out);
    assert_eq!((next, bench.told(CONTROLLER)), (Some(bench.now + Duration::from_secs(10)), vec![]));
    bench.wait(Duration::from_secs(10));
    assert_eq!(bench.datapath.expire(bench.now, &mut bench.out), None);
    let told = std::mem::take(&mut bench.out.messages);
    let [(CONTROLLER, Message { xid: 5, body: Body::Error(refused) })] = &told[..] else { panic!("{told:?}") };
    assert_eq!(refused.error, BadRequest::MultipartRequestTimeout.into());
    assert!(refused.data.0.len() >= 64 && bytes.starts_with(&refused.data.0), "{refused:?}");
}

/// Meter is an instruction before 1.5 and an action in 1.5, which also has copy-field.
#[test]
fn each_version_has_its_own_instructions_and_actions() {
    for version in [Version::V13, Version::V14, Version::V15] {
        let mut bench = Bench::new();
        bench.datapath.channel_up(bench.now, CONTROLLER, version);
        let mut all = current(&mut bench);
        let (mut instructions, mut actions) = (Vec::new(), Vec::new());
        change(&mut all[0], |property| match property {
            TableProperty::Instructions { ids, .. } => instructions.clone_from(ids),
            TableProperty::ApplyActions { ids, .. } => actions.clone_from(ids),
            _ => {}
        });
        let is_new = version == Version::V15;
        assert_eq!(instructions.contains(&FeatureTypeId::Standard(InstructionType::Meter)), !is_new, "{version:?}");
        for new in [ActionType::CopyField, ActionType::Meter] {
            assert_eq!(actions.contains(&FeatureTypeId::Standard(new)), is_new, "{version:?}");
        }
        bench.add(1, from_port(1), output(2));
        assert_eq!(ask(&mut bench, all.clone()), Ok(all.clone()), "{version:?}");
        // A restriction is reported in every version.
        change(&mut all[1], |property| {
            if let TableProperty::WriteActions { ids, .. } = property {
                ids.clear();
            }
        });
        assert_eq!(ask(&mut bench, all.clone()).as_ref(), Ok(&all), "{version:?}");
        for other in [Version::V13, Version::V15] {
            bench.datapath.channel_up(bench.now, CONTROLLER, other);
            let there = current(&mut bench);
            assert_eq!(ask(&mut bench, there.clone()), Ok(there), "{version:?} {other:?}");
        }
    }
}
