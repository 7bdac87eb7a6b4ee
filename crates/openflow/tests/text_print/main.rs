//! Tests printing of messages against `ovs-ofctl ofp-print`, with the raw messages of the reference data and weir's
//! own.
//!
//! Left out of the comparison, because the two differ by design:
//! - messages that Open vSwitch refuses (`decode error`, `parse error`);
//! - Open vSwitch's own fields and actions, which weir prints as `raw_...` and `experimenter(...)`;
//! - asynchronous messages that 1.3 does not have (`ROLE_STATUS: (off)` and the like);
//! - standard actions that Open vSwitch does not know (`copy_ttl_out`, `push_pbb`, ...);
//! - groups and cookies that select entries in deletes and requests, which Open vSwitch does not print;
//! - Open vSwitch's name `in_port_oxm` for 1.3's `in_port` in table features.
//!
//! Spaces at line ends and empty lines are ignored.
mod own;

use std::path::Path;
use std::process::Command;
use weir_openflow::text::{PrintDetail, print_bytes, print_message};
use weir_openflow::{Body, Message, Version, decode, encode};

/// Returns what `ovs-ofctl` prints for one message; `None` if it refuses the message.
fn ovs_print(bytes: &[u8]) -> Option<String> {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let output = Command::new("ovs-ofctl").args(["ofp-print", &hex]).output().expect("ovs-ofctl runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let refused = !output.status.success() || text.contains("decode error") || text.contains("parse error");
    (!refused).then_some(text)
}

/// Starts of lines about messages that only later versions have.
const NOT_IN_13: [&str; 3] = ["ROLE_STATUS:", "TABLE_STATUS:", "REQUESTFORWARD:"];
/// Actions that Open vSwitch does not know.
const NOT_IN_OVS: [&str; 4] = [" copy_ttl_out", " copy_ttl_in", " push_pbb", " pop_pbb"];

fn normal(text: &str) -> String {
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let lines = lines.filter(|line| !NOT_IN_13.iter().any(|word| line.contains(word)));
    let text = lines.map(without_filters).collect::<Vec<_>>().join("\n");
    NOT_IN_OVS.iter().fold(text, |text, word| text.replace(word, "")).replace("in_port_oxm", "in_port")
}

/// Removes what Open vSwitch does not print: the group and cookie that select entries in deletes and requests.
fn without_filters(line: &str) -> String {
    let is_request = line.contains(" request (");
    let hidden = |word: &&str| word.starts_with("out_group") || is_request && word.starts_with("cookie=");
    let words: Vec<&str> = line.split(' ').filter(|word| !hidden(word)).collect();
    words.join(" ").trim_end().to_owned()
}

/// Returns true if weir's text contains something uninterpreted.
fn is_foreign(ours: &str) -> bool {
    ours.contains("raw_0x") || ours.contains("experimenter(0x")
}

/// Messages that Open vSwitch prints differently, with the reason.
const READ_DIFFERENTLY: [(&str, &str); 7] = [
    ("of10_1-6-", "it leaves out bits of a port's state that it does not know"),
    ("of10_ovs-ofctl-of10-action_set_mpls_tc.", "it shows a traffic class of more bits than the field has"),
    ("of13_libofproto-OFP13-flow_mod.", "it does not see the group of a flow-mod that is no delete"),
    ("of13_4-39-", "it cuts a port's name at the first byte beyond ASCII"),
    ("of13_4-55-", "it does not see fields whose header has the length 0"),
    ("of13_4-56-", "it does not see fields whose header has the length 0"),
    ("of13_libofproto-OFP13-packet_in.", "it shows a packet without Ethernet header as one of zeros"),
];

#[test]
fn messages_of_the_reference_data_look_as_in_ovs() {
    let Some(folder) = weir_testing::shared("data/external/rules/openflow/wire") else { return };
    if !weir_testing::programs(&["ovs-ofctl"]) {
        return;
    }
    let (mut compared, mut differences) = (0, Vec::new());
    for (name, bytes) in ["of10_", "of13_"].iter().flat_map(|prefix| weir_testing::files(&folder, prefix, "packet")) {
        let ours = print_bytes(&bytes, PrintDetail::Packets);
        if is_foreign(&ours) || READ_DIFFERENTLY.iter().any(|(start, _)| name.starts_with(start)) {
            continue;
        }
        let Some(theirs) = ovs_print(&bytes) else { continue };
        compared += 1;
        if normal(&ours) != normal(&theirs) {
            differences.push(format!("{name}\n  weir: {ours}\n  ovs:  {theirs}"));
        }
    }
    assert!(differences.is_empty(), "{} of {compared} differ:\n{}", differences.len(), differences.join("\n"));
    assert!(compared >= 60, "only {compared} messages were compared");
}

/// Returns weir's own messages with their wire versions.
fn own_messages() -> impl Iterator<Item = (Version, Message)> {
    let all = |version, bodies: Vec<Body>| bodies.into_iter().map(move |body| (version, Message { xid: 1, body }));
    let old =
        all(Version::V10, own::v10()).chain(all(Version::V13, own::v13())).chain(all(Version::V13, own::bundles()));
    old.chain(all(Version::V14, own::v14(Version::V14))).chain(all(Version::V15, own::v15()))
}

fn encoded(message: &Message, version: Version) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(message, version, &mut bytes).unwrap_or_else(|error| panic!("{message:?}: {error}"));
    bytes
}

#[test]
fn our_messages_look_as_in_ovs() {
    if !weir_testing::programs(&["ovs-ofctl"]) {
        return;
    }
    let mut differences = Vec::new();
    for (version, message) in own_messages() {
        let bytes = encoded(&message, version);
        let ours = print_bytes(&bytes, PrintDetail::Packets);
        match ovs_print(&bytes) {
            Some(theirs) if normal(&ours) == normal(&theirs) => {}
            theirs => differences.push(format!("  weir: {ours}\n  ovs:  {}", theirs.unwrap_or("refused".into()))),
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

/// Compares every message with its recorded text. `WEIR_RECORD=1` overwrites the record, which must then be reviewed
/// before it is committed.
#[test]
fn our_messages_look_as_recorded() {
    let texts: Vec<String> = own_messages()
        .map(|(version, message)| {
            let decoded = decode(&encoded(&message, version)).unwrap_or_else(|error| panic!("{message:?}: {error}"));
            print_message(&decoded, version as u8, PrintDetail::Bytes)
        })
        .collect();
    let text = texts.join("\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/text_print/messages.txt");
    if std::env::var_os("WEIR_RECORD").is_some() {
        std::fs::write(&path, &text).expect("the record can be written");
    }
    let recorded = std::fs::read_to_string(&path).expect("the record is there");
    for (ours, recorded) in text.lines().zip(recorded.lines()) {
        assert_eq!(ours, recorded);
    }
    assert_eq!(text.len(), recorded.len());
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_printed(at in 0_usize..200, change in proptest::collection::vec((0_usize..400, 0_u8..), 0..4), cut in 0_usize..400) {
        let all: Vec<_> = own_messages().collect();
        let (version, message) = &all[at % all.len()];
        let mut bytes = encoded(message, *version);
        for (position, value) in change {
            let length = bytes.len();
            bytes[position % length] = value;
        }
        bytes.truncate(bytes.len().saturating_sub(cut % 4));
        let text = print_bytes(&bytes, PrintDetail::Bytes);
        proptest::prop_assert!(text.ends_with('\n'));
    }
}
