//! Defines the test messages about groups and meters, for 1.3.
use super::*;

pub(super) fn all() -> Vec<Body> {
    let mut bodies = groups();
    bodies.extend(meters());
    bodies
}

fn groups() -> Vec<Body> {
    use GroupCommand::{Add, Delete, Modify};
    use GroupKind::{All, FastFailover, Indirect, Select};
    let bucket = |weight, watch: PortNo, actions: &str| Bucket {
        weight,
        watch_port: watch,
        ..Bucket::new(BucketId(0), text::parse_actions(actions).unwrap())
    };
    let any = PortNo::ANY;
    let mut groups: [(GroupCommand, GroupKind, u32, Vec<Bucket>); 5] = [
        (Add, All, 1, vec![bucket(0, any, "1"), bucket(0, any, "set_field:2:0:0:0:0:1->eth_dst,2")]),
        (Modify, Select, 2, vec![bucket(1, any, "1"), bucket(10, any, "2")]),
        (Add, Indirect, 3, vec![bucket(0, any, "group:1")]),
        (Add, FastFailover, 4, vec![bucket(0, PortNo(1), "1"), bucket(0, PortNo(2), "2")]),
        (Delete, All, GroupId::ALL.0, vec![]),
    ];
    // Before 1.5, buckets are numbered by their index.
    for (_, _, _, buckets) in &mut groups {
        (0..).zip(buckets).for_each(|(place, bucket)| bucket.id = BucketId(place));
    }
    let descs = groups[..4].iter().map(|(_, kind, group, buckets)| GroupDesc {
        kind: *kind,
        group: GroupId(*group),
        buckets: buckets.clone(),
        properties: vec![],
    });
    let descs = reply(ReplyBody::GroupDesc(descs.collect()));
    let mods = groups.into_iter().map(|(command, kind, group, buckets)| {
        let (group, command_bucket) = (GroupId(group), BucketId::ALL);
        Body::GroupMod(GroupMod { command, kind, group, command_bucket, buckets, properties: vec![] })
    });
    let stats = GroupStats {
        group: GroupId(1),
        ref_count: 2,
        packet_count: 3,
        byte_count: 4,
        duration_sec: 5,
        duration_nsec: 6_000_000,
        buckets: vec![(1, 2), (3, 4)],
    };
    let features =
        GroupFeatures { types: 0xf, capabilities: 0x7, max_groups: [10, 20, 30, 40], actions: [0x0240_0001, 1, 1, 0] };
    let mut bodies: Vec<Body> = mods.collect();
    bodies.extend([
        descs,
        request(RequestBody::Group(GroupId::ALL)),
        request(RequestBody::Group(GroupId(7))),
        request(RequestBody::GroupDesc(GroupId::ALL)),
        request(RequestBody::GroupFeatures),
        reply(ReplyBody::Group(vec![stats])),
        reply(ReplyBody::GroupFeatures(features)),
    ]);
    bodies
}

fn meters() -> Vec<Body> {
    let bands = vec![
        Band { rate: 1000, burst_size: 100, kind: BandKind::Drop },
        Band { rate: 2000, burst_size: 0, kind: BandKind::DscpRemark { prec_level: 1 } },
    ];
    let meter = |flags| MeterConfig { flags, meter: MeterId(3), bands: bands.clone() };
    let meter_stats = MeterStats {
        meter: MeterId(3),
        flow_count: 1,
        packet_in_count: 2,
        byte_in_count: 3,
        duration_sec: 4,
        duration_nsec: 0,
        bands: vec![(5, 6), (7, 8)],
    };
    let features = MeterFeatures {
        max_meter: 100,
        band_types: 0b110,
        capabilities: 0b1111,
        max_bands: 8,
        max_color: 0,
        features: 0,
    };
    vec![
        Body::MeterMod(MeterMod { command: MeterCommand::Add, flags: 0b1101, meter: MeterId(3), bands: bands.clone() }),
        Body::MeterMod(MeterMod {
            command: MeterCommand::Modify,
            flags: 0b1010,
            meter: MeterId::CONTROLLER,
            bands: bands.clone(),
        }),
        Body::MeterMod(MeterMod { command: MeterCommand::Delete, flags: 0, meter: MeterId::ALL, bands: vec![] }),
        request(RequestBody::Meter(MeterId::ALL)),
        request(RequestBody::MeterConfig(MeterId(3))),
        request(RequestBody::MeterFeatures),
        reply(ReplyBody::Meter(vec![meter_stats.clone(), meter_stats])),
        reply(ReplyBody::MeterConfig(vec![meter(0b0101), meter(0b0010)])),
        reply(ReplyBody::MeterFeatures(features)),
    ]
}
