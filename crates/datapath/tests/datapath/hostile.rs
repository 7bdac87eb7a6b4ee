//! Every message that can be decoded is handled without a panic: messages of other implementations, whole and
//! damaged, in both versions.
use crate::bench::*;
use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};
use std::time::Duration;
use weir_openflow::model::{Action, FlowMod, Match, Message};
use weir_openflow::{Version, codec};

#[test]
fn messages_of_others_whole_and_damaged() {
    for (folder, channel) in [("of10", OLD_CONTROLLER), ("of13", CONTROLLER)] {
        let Some(folder) = weir_testing::shared(&format!("conformance/os-ken-packets/{folder}")) else { return };
        let messages = weir_testing::files(&folder, "", "packet");
        assert!(messages.len() > 5, "{} messages in {}", messages.len(), folder.display());
        let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
        let mut bench = Bench::controlled();
        bench.datapath.channel_up(bench.now, OLD_CONTROLLER, Version::V10);
        let mut handled = 0;
        for (_, message) in &messages {
            for damage in 0..60 {
                let mut bytes = message.clone();
                for _ in 0..damage.min(3) {
                    // Version, type and length stay, because otherwise nothing could be decoded.
                    let at = 8 + rng.next_u32() as usize % (bytes.len() - 7);
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = if damage % 2 == 0 { 0xff } else { rng.next_u32().to_be_bytes()[0] };
                    }
                }
                if let Ok(message) = codec::decode(&bytes) {
                    handle(&mut bench, channel, message);
                    handled += 1;
                }
            }
        }
        assert!(handled > messages.len() * 15, "only {handled} messages decoded");
    }
}

/// Handles a message, lets packets and time pass, and encodes every answer.
fn handle(bench: &mut Bench, channel: weir_datapath::ChannelId, message: Message) {
    bench.datapath.handle(bench.now, channel, message, &mut bench.pool, &mut bench.out);
    bench.receive(1, &crate::frames::frame("eth 1>2 / vlan 5 / ipv4 10.0.0.1>10.0.0.2 / tcp 1>2"));
    bench.wait(Duration::from_millis(300));
    bench.datapath.expire(bench.now, &mut bench.out);
    for (channel, message) in std::mem::take(&mut bench.out.messages) {
        let version = if channel == OLD_CONTROLLER { Version::V10 } else { Version::V13 };
        let encoded = codec::encode(&message, version, &mut Vec::new());
        assert!(encoded.is_ok(), "{encoded:?}: {message:?}");
    }
}

#[test]
fn packet_outs_to_the_table_end() {
    // Each runs the pipeline once, because no entry can output to TABLE.
    let mut bench = Bench::controlled();
    bench.add(0, Match::any(), output(2));
    let table = Action::Output { port: weir_openflow::model::PortNo::TABLE, max_len: 0 };
    let entry = FlowMod::add(1, Match::any(), apply(vec![table.clone()]));
    assert!(bench.flow_mod(&entry).is_err());
    let out = weir_openflow::model::PacketOut {
        buffer_id: None,
        in_port: weir_openflow::model::PortNo(1),
        matching: weir_openflow::model::Match::any(),
        actions: vec![table; 1000],
        data: crate::frames::frame("eth 1>2 / type 88cc").into(),
    };
    bench.ask(CONTROLLER, weir_openflow::Body::PacketOut(out));
    assert_eq!(bench.sent().len(), 1000);
}
