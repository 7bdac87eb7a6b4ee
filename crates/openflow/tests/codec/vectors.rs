//! Tests that decoding and encoding other implementations' messages gives the same bytes.
use weir_openflow::model::Version;
use weir_openflow::{decode, encode};
use weir_testing::{files, shared};

/// Messages whose bytes differ for a known reason.
const DIFFER: [(&str, &str); 7] = [
    ("ovs-ofctl-of10-action_set_mpls_tc.packet", "a traffic class of four bits, of which the field takes three"),
    ("of10_ovs-ofctl-of10-action_set_mpls_tc.packet", "a traffic class of four bits, of which the field takes three"),
    ("of10_1-6-ofp_switch_features.packet", "a port's state has bit 1, which 1.0 does not have and 1.3 calls blocked"),
    ("of13_4-63-onf_flow_monitor_request.packet", "its match has no head, which Open vSwitch's has"),
    ("4-63-onf_flow_monitor_request.packet", "its match has no head, which Open vSwitch's has"),
    ("libofproto-OFP15-flow_desc_reply.packet", "its instruction of 8 bytes says it has 2056"),
    ("libofproto-OFP15-meter_features_reply.packet", "a message of 40 bytes whose header says 32"),
];

/// Returns the difference after decoding and encoding, if any.
fn difference(name: &str, bytes: &[u8]) -> Option<String> {
    let message = match decode(bytes) {
        Ok(message) => message,
        Err(error) => return Some(format!("{name}: {error}")),
    };
    let version = Version::from_number(bytes[0]).unwrap();
    let mut again = Vec::new();
    if let Err(error) = encode(&message, version, &mut again) {
        return Some(format!("{name}: {error}"));
    }
    (again != bytes).then(|| format!("{name}: {message:?}\n  {bytes:02x?}\n  {again:02x?}"))
}

#[test]
fn bytes_come_back() {
    let sets = [
        ("data/external/rules/openflow/wire", "of10_", 13),
        ("data/external/rules/openflow/wire", "of13_", 96),
        ("conformance/os-ken-packets/of10", "", 9),
        ("conformance/os-ken-packets/of13", "", 73),
        ("conformance/os-ken-packets/of14", "", 51),
        ("conformance/os-ken-packets/of15", "", 54),
    ];
    for (directory, prefix, least) in sets {
        let Some(directory) = shared(directory) else { return };
        let messages = files(&directory, prefix, "packet");
        assert!(messages.len() >= least, "{} messages in {}", messages.len(), directory.display());
        let differences: Vec<_> = messages
            .iter()
            .filter_map(|(name, bytes)| difference(name, bytes))
            .filter(|text| !DIFFER.iter().any(|(name, _)| text.starts_with(name)))
            .collect();
        assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
    }
}
