//! Select groups whose hash a controller sets (Netronome's selection method, in 1.5).
use super::*;
use weir_datapath::ChannelId;
use weir_openflow::Version;
use weir_openflow::model::error::BadProperty;
use weir_openflow::model::property::RawProperty;

const CONTROLLER_15: ChannelId = ChannelId(15);

/// Returns the property of a selection method. Its fields are OXM elements whose values are masks.
fn method(name: &str, param: u64, fields: &[u8]) -> RawProperty {
    let mut data = vec![0, 0, 0x15, 0x4d, 0, 0, 0, 1, 0, 0, 0, 0];
    let mut padded = [0; 16];
    padded[..name.len()].copy_from_slice(name.as_bytes());
    data.extend(padded);
    data.extend(param.to_be_bytes());
    data.extend(fields);
    RawProperty { kind: RawProperty::EXPERIMENTER, data: data.into() }
}

/// `ip_dst=255.255.255.0` as OXM.
const DESTINATION_NET: [u8; 8] = [0x80, 0, 0x18, 4, 255, 255, 255, 0];

fn select(properties: Vec<RawProperty>) -> GroupMod {
    let buckets = (2..=4).map(|port| weighing(1, output(port))).collect();
    GroupMod { properties, ..group_mod(Add, 1, Select, buckets) }
}

fn with(properties: Vec<RawProperty>) -> Bench {
    let mut bench = Bench::controlled();
    bench.datapath.channel_up(bench.now, CONTROLLER_15, Version::V15);
    assert_eq!(bench.error_of(CONTROLLER_15, Body::GroupMod(select(properties))), None);
    bench.all_to_group(1);
    bench
}

/// Returns the ports taken by packets from many hosts to a host in each of some networks.
fn ways(bench: &mut Bench) -> Vec<Vec<u32>> {
    let packet = |net: u8, host: u8| {
        crate::frames::frame(&format!("eth 1>2 / ipv4 10.0.1.{host}>10.0.{net}.{host} / udp {host}>2"))
    };
    let to = |net| (1..=20).map(|host| bench.ports_of(1, &packet(net, host))[0]).collect();
    (0..40).map(to).collect()
}

#[test]
fn only_the_bits_of_the_fields_named_count() {
    let found = ways(&mut with(vec![method("hash", 0, &DESTINATION_NET)]));
    assert!(found.iter().all(|net| net.iter().all(|way| *way == net[0])), "{found:?}");
    let firsts: std::collections::BTreeSet<u32> = found.iter().map(|net| net[0]).collect();
    assert_eq!(firsts.len(), 3, "networks differ");
    let found = ways(&mut with(vec![]));
    assert!(found.iter().any(|net| net.iter().any(|way| *way != net[0])), "else hosts differ");
}

#[test]
fn another_parameter_is_another_choice() {
    let choice = |name, param, fields: &[u8]| ways(&mut with(vec![method(name, param, fields)]));
    assert_ne!(choice("hash", 1, &DESTINATION_NET), choice("hash", 2, &DESTINATION_NET));
    let usual = ways(&mut with(vec![]));
    assert_eq!(choice("dp_hash", 0, &[]), usual);
    assert_eq!(choice("hash", 0, &[]), usual);
}

#[test]
fn it_is_described_as_it_was_asked_for_and_what_is_wrong_is_refused() {
    let asked = vec![method("hash", 7, &DESTINATION_NET)];
    let mut bench = with(asked.clone());
    assert_eq!(bench.groups()[0].properties, asked);
    let modified = |change: GroupMod| GroupMod { command: Modify, ..change };
    let two = vec![method("hash", 0, &[]), method("hash", 0, &[])];
    let cases = [
        (modified(select(vec![method("magic", 0, &[])])), BadProperty::BadExpValue),
        (modified(select(vec![method("dp_hash", 0, &DESTINATION_NET)])), BadProperty::BadExpValue),
        (modified(select(vec![method("hash", 0, &DESTINATION_NET[..5])])), BadProperty::BadExpValue),
        (modified(select(two)), BadProperty::TooMany),
        (
            GroupMod { properties: vec![method("hash", 0, &[])], ..group_mod(Modify, 1, All, vec![]) },
            BadProperty::BadExpValue,
        ),
    ];
    for (change, error) in cases {
        assert_eq!(bench.error_of(CONTROLLER_15, Body::GroupMod(change.clone())), Some(error.into()), "{change:?}");
    }
    assert_eq!(bench.groups()[0].properties, asked);
}
