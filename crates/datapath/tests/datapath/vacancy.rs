//! Full tables: eviction and vacancy events (OpenFlow 1.4.1, 6.5, 7.3.4.1, 7.3.5.16 and 7.4.5).
use crate::bench::*;
use std::time::Duration;
use weir_datapath::{ChannelId, DatapathConfig};
use weir_openflow::model::config::{TableMod, VacancyThresholds, eviction, table_config};
use weir_openflow::model::error::{BadProperty, FlowModFailed, TableModFailed};
use weir_openflow::model::multipart::{FlowRequest, ReplyBody, RequestBody};
use weir_openflow::model::status::{TableReason, TableStatus};
use weir_openflow::model::{ErrorType, FlowFlags, FlowMod, FlowRemovedReason, TableId};
use weir_openflow::{Body, Version};

const CHANNEL: ChannelId = ChannelId(14);

/// Returns a bench whose tables have room for `max_entries` entries.
fn bench(max_entries: u32) -> Bench {
    let mut bench = Bench::with(DatapathConfig { max_entries, ..DatapathConfig::default() });
    bench.datapath.channel_up(bench.now, CHANNEL, Version::V14);
    bench
}

fn evicting(max_entries: u32) -> Bench {
    let mut bench = bench(max_entries);
    assert_eq!(bench.ask(CHANNEL, Body::TableMod(TableMod::new(TableId(0), table_config::EVICTION))), []);
    bench
}

/// Adds an entry for packets from a port. Returns the messages to the channel.
fn add(bench: &mut Bench, port: u32, importance: u16, hard_timeout: u16) -> Vec<Body> {
    let flow = FlowMod::add(1, from_port(port), apply(output(2)));
    let flags = FlowFlags::SEND_FLOW_REM;
    bench.ask(CHANNEL, Body::FlowMod(FlowMod { importance, hard_timeout, flags, cookie: port.into(), ..flow }))
}

/// Returns the cookies of entries reported as evicted.
fn evicted(told: Vec<Body>) -> Vec<u64> {
    let gone = told.into_iter().filter_map(|body| if let Body::FlowRemoved(gone) = body { Some(gone) } else { None });
    gone.inspect(|gone| assert_eq!(gone.reason, FlowRemovedReason::Eviction)).map(|gone| gone.cookie).collect()
}

fn refused(told: &[Body]) -> bool {
    matches!(told, [Body::Error(error)] if error.error == FlowModFailed::TableFull.into())
}

#[test]
fn the_least_important_goes_then_the_one_that_ends_first_then_the_oldest() {
    let mut bench = evicting(4);
    for (port, importance, hard_timeout) in [(1, 5, 0), (2, 3, 100), (3, 3, 50), (4, 3, 0)] {
        assert_eq!(add(&mut bench, port, importance, hard_timeout), []);
    }
    assert_eq!(evicted(add(&mut bench, 5, 9, 0)), [3]);
    assert_eq!(evicted(add(&mut bench, 6, 9, 0)), [2]);
    assert_eq!(evicted(add(&mut bench, 7, 9, 0)), [4]);
    assert_eq!(evicted(add(&mut bench, 8, 9, 0)), [1]);
    bench.wait(Duration::from_secs(1));
    assert_eq!(evicted(add(&mut bench, 9, 9, 0)), [5], "of equals the oldest");
}

#[test]
fn more_important_entries_stay() {
    let mut bench = evicting(2);
    add(&mut bench, 1, 5, 0);
    add(&mut bench, 2, 5, 0);
    assert!(refused(&add(&mut bench, 3, 4, 0)));
    assert_eq!(evicted(add(&mut bench, 3, 5, 0)), [1]);
    assert_eq!(add(&mut bench, 3, 1, 0), [], "an entry in the place of its like needs no room");
    assert_eq!(evicted(add(&mut bench, 4, 2, 0)), [3], "and has the importance it came with last");
}

#[test]
fn tables_do_not_evict_unless_asked() {
    let mut bench = evicting(1);
    add(&mut bench, 1, 0, 0);
    bench.ask(CHANNEL, Body::TableMod(TableMod::new(TableId::ALL, 0)));
    assert!(refused(&add(&mut bench, 2, 9, 0)));
    // Entries added before eviction was switched on can be evicted, too.
    bench.ask(CHANNEL, Body::TableMod(TableMod::new(TableId::ALL, table_config::EVICTION)));
    assert_eq!(evicted(add(&mut bench, 2, 9, 0)), [1]);
}

#[test]
fn importance_is_told_back() {
    let mut bench = bench(9);
    add(&mut bench, 1, 77, 0);
    let replies = bench.multipart(CHANNEL, RequestBody::Flow(FlowRequest::all())).unwrap();
    assert!(matches!(&replies[..], [ReplyBody::Flow(list)] if list[0].importance == 77), "{replies:?}");
}

#[test]
fn vacancy_is_told_when_it_crosses_a_threshold() {
    let mut bench = bench(10);
    let vacancy = Some(VacancyThresholds { down: 30, up: 50, now: 0 });
    let change = TableMod { vacancy, ..TableMod::new(TableId(0), table_config::VACANCY_EVENTS) };
    assert_eq!(bench.ask(CHANNEL, Body::TableMod(change.clone())), []);
    let told = |reason, now| {
        let table = TableMod { vacancy: Some(VacancyThresholds { down: 30, up: 50, now }), ..change.clone() };
        vec![Body::TableStatus(TableStatus { reason, table })]
    };
    for port in 1..8 {
        assert_eq!(add(&mut bench, port, 0, if port > 4 { 5 } else { 0 }), [], "{port} entries");
    }
    assert_eq!(add(&mut bench, 8, 0, 5), told(TableReason::VacancyDown, 20));
    assert_eq!(add(&mut bench, 9, 0, 5), [], "once");
    bench.wait(Duration::from_secs(5));
    bench.datapath.expire(bench.now, &mut bench.out);
    let events: Vec<Body> = bench.told(CHANNEL);
    let events: Vec<Body> = events.into_iter().filter(|body| matches!(body, Body::TableStatus(_))).collect();
    assert_eq!(events, told(TableReason::VacancyUp, 60));
    // A slave gets no event.
    let descs = bench.multipart(CHANNEL, RequestBody::TableDesc).unwrap();
    let [ReplyBody::TableDesc(descs)] = &descs[..] else { panic!("{descs:?}") };
    assert_eq!(descs.len(), 64);
    assert_eq!(descs[0].vacancy, Some(VacancyThresholds { down: 30, up: 50, now: 60 }));
    assert_eq!((descs[1].config, descs[1].vacancy), (0, None));
}

#[test]
fn eviction_is_described() {
    let mut bench = evicting(5);
    let descs = bench.multipart(CHANNEL, RequestBody::TableDesc).unwrap();
    let [ReplyBody::TableDesc(descs)] = &descs[..] else { panic!("{descs:?}") };
    let by = eviction::IMPORTANCE | eviction::LIFETIME;
    assert_eq!((descs[0].config, descs[0].eviction), (table_config::EVICTION, Some(by)));
    assert_eq!((descs[1].config, descs[1].eviction), (0, None));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut bench = bench(5);
    bench.datapath.channel_up(bench.now, CONTROLLER, Version::V13);
    let new = |config| TableMod::new(TableId(0), config);
    let vacancy = |down, up| Some(VacancyThresholds { down, up, now: 0 });
    let cases: [(ChannelId, TableMod, Option<ErrorType>); 7] = [
        (CHANNEL, new(1 << 4), Some(TableModFailed::BadConfig.into())),
        (CONTROLLER, new(table_config::EVICTION), Some(TableModFailed::BadConfig.into())),
        (CHANNEL, new(table_config::VACANCY_EVENTS), Some(TableModFailed::BadConfig.into())),
        (CHANNEL, TableMod { vacancy: vacancy(30, 20), ..new(8) }, Some(BadProperty::BadValue.into())),
        (CHANNEL, TableMod { vacancy: vacancy(30, 101), ..new(8) }, Some(BadProperty::BadValue.into())),
        (CHANNEL, TableMod { eviction: Some(8), ..new(4) }, Some(BadProperty::BadValue.into())),
        (CHANNEL, TableMod { eviction: Some(eviction::IMPORTANCE), ..new(4) }, None),
    ];
    for (channel, change, error) in cases {
        assert_eq!(bench.error_of(channel, Body::TableMod(change.clone())), error, "{change:?}");
    }
}
