//! Decodes bytes as OpenFlow messages: no panic, a decoded message is unchanged by encoding and decoding, and views
//! read what the decoder reads.
#![no_main]
use libfuzzer_sys::fuzz_target;
use weir_openflow::model::{Body, Message, Version};
use weir_openflow::{DecodeError, EchoRequestView, PacketInView, decode, encode};

fuzz_target!(|bytes: &[u8]| {
    let mut message = bytes.to_vec();
    // Sets the right length, so that the fuzzer need not find it.
    if let (Some(length), Ok(right)) = (message.get_mut(2..4), u16::try_from(bytes.len())) {
        length.copy_from_slice(&right.to_be_bytes());
    }
    for bytes in [bytes, &message] {
        let decoded = decode(bytes);
        compare_views(bytes, &decoded);
        let Ok(understood) = decoded else { continue };
        for version in Version::ALL {
            let mut encoded = Vec::new();
            // Another version, and sometimes the original one, cannot encode every message.
            if encode(&understood, version, &mut encoded).is_err() {
                continue;
            }
            match decode(&encoded) {
                Ok(again) => assert!(version as u8 != bytes[0] || again == understood, "{understood:?}\n{again:?}"),
                // A property that one version treats as unknown may be malformed in a version that knows it.
                Err(error) => assert!(version as u8 != bytes[0], "{understood:?}\n{error:?}"),
            }
        }
    }
});

fn compare_views(bytes: &[u8], decoded: &Result<Message, DecodeError>) {
    match (PacketInView::read(bytes), decoded) {
        (Ok(Some(view)), Ok(Message { xid, body: Body::PacketIn(packet) })) => {
            assert_eq!((view.xid(), view.buffer_id(), view.total_len()), (*xid, packet.buffer_id, packet.total_len));
            assert_eq!((view.reason(), view.table(), view.cookie()), (packet.reason, packet.table, packet.cookie));
            assert_eq!((view.in_port(), view.data()), (packet.in_port(), &packet.data.0[..]));
            assert_eq!(view.to_packet_in(), *packet);
        }
        (Ok(Some(view)), other) => panic!("{view:?} {other:?}"),
        (Ok(None), decoded) => assert!(!matches!(decoded, Ok(Message { body: Body::PacketIn(_), .. }))),
        (Err(error), decoded) => assert_eq!(Some(&error), decoded.as_ref().err()),
    }
    match (EchoRequestView::read(bytes), decoded) {
        (Some(view), Ok(Message { body: Body::EchoRequest(data), .. })) => assert_eq!(view.data(), data.0),
        (view, decoded) => {
            assert!(view.is_none() && !matches!(decoded, Ok(Message { body: Body::EchoRequest(_), .. })));
        }
    }
}
