//! Tests that views accept what the decoder accepts, and read the same values.
use crate::dice::Dice;
use proptest::collection::vec;
use proptest::prelude::*;
use weir_openflow::model::{Body, Message, Version};
use weir_openflow::{EchoRequestView, PacketInView, decode, encode, peek_packet};

fn encoded(message: &Message, version: Version) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(message, version, &mut bytes).unwrap();
    bytes
}

/// Compares both views of a message with the decoder.
fn check(bytes: &[u8]) {
    let decoded = decode(bytes);
    match (PacketInView::read(bytes), &decoded) {
        (Ok(Some(view)), Ok(Message { xid, body: Body::PacketIn(packet) })) => {
            assert_eq!((view.xid(), view.version() as u8), (*xid, bytes[0]));
            assert_eq!((view.buffer_id(), view.total_len()), (packet.buffer_id, packet.total_len));
            assert_eq!((view.reason(), view.table(), view.cookie()), (packet.reason, packet.table, packet.cookie));
            assert_eq!((view.in_port(), view.data()), (packet.in_port(), &packet.data.0[..]));
            assert_eq!(peek_packet(bytes), Some(view.data()));
            assert_eq!((view.message(), view.to_packet_in()), (bytes, packet.clone()));
        }
        (Ok(None), Ok(Message { body, .. })) => assert!(!matches!(body, Body::PacketIn(_)), "{body:?}"),
        (Err(error), Err(expected)) => assert_eq!(error, *expected),
        // Whatever is no packet-in is left to the decoder.
        (Ok(None), Err(_)) => assert!(bytes.len() < 8 || bytes[1] != 10 || Version::from_number(bytes[0]).is_none()),
        (view, decoded) => panic!("{view:?} {decoded:?}"),
    }
    match (EchoRequestView::read(bytes), decoded) {
        (Some(view), Ok(Message { xid, body: Body::EchoRequest(data) })) => {
            assert_eq!(view.data(), data.0);
            let (mut reply, version) = (vec![9], Version::from_number(bytes[0]).unwrap());
            view.write_reply(&mut reply);
            assert_eq!(reply[1..], encoded(&Message { xid, body: Body::EchoReply(data) }, version));
        }
        (view, decoded) => {
            let is_echo = matches!(decoded, Ok(Message { body: Body::EchoRequest(_), .. }));
            assert!(view.is_none() && !is_echo, "{view:?} {decoded:?}");
        }
    }
}

fn version() -> impl Strategy<Value = Version> {
    prop::sample::select(Version::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn views_of_packet_ins_agree_with_the_decoder(
        noise in vec(any::<u8>(), 0..200),
        version in version(),
        changes in vec((0_usize..60, any::<u8>()), 0..3),
        cut in prop::option::of(0_usize..90),
    ) {
        let mut bytes = encoded(&Dice::new(&noise).packet_in_message(version), version);
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        check(&bytes);
        if let Some(cut) = cut {
            bytes.truncate(cut);
            check(&bytes);
            if bytes.len() >= 4 {
                let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
                bytes[2..4].copy_from_slice(&length);
                check(&bytes);
            }
        }
    }

    #[test]
    fn views_of_other_messages_agree_with_the_decoder(noise in vec(any::<u8>(), 0..200), version in version()) {
        check(&encoded(&Dice::new(&noise).message(version), version));
    }

    #[test]
    fn views_of_any_bytes_agree_with_the_decoder(
        mut bytes in vec(any::<u8>(), 0..100),
        version in 0_u8..8,
        kind in prop::sample::select(vec![2_u8, 10, 10, 10]),
    ) {
        check(&bytes);
        if bytes.len() >= 8 {
            let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
            bytes[..4].copy_from_slice(&[version, kind, length[0], length[1]]);
            check(&bytes);
        }
    }
}
