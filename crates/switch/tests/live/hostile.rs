//! Channels on which every message is damaged in every place: cut at every length, each byte changed.
use crate::bed::{Controller, PATIENCE, switch, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use weir_openflow::codec::HEADER_BYTES;
use weir_openflow::{Body, Message, Version, encode};
use weir_switch::{SoftwareSwitchConfig, SwitchHandle};

/// Returns encoded messages of other implementations. Hello and error messages are left out because they belong to
/// the handshake.
fn messages(folder: &str, version: Version) -> Option<Vec<Vec<u8>>> {
    let folder = weir_testing::shared(&format!("conformance/os-ken-packets/{folder}"))?;
    let files = weir_testing::files(&folder, "", "packet");
    let messages = files.into_iter().map(|(_, bytes)| bytes).filter(|bytes| bytes[0] == version as u8 && bytes[1] > 1);
    Some(messages.collect())
}

/// Returns every cut of a message and every change of one byte, with a matching length in the header.
fn damaged(message: &[u8]) -> Vec<Vec<u8>> {
    let cut = (HEADER_BYTES..message.len()).map(|length| message[..length].to_vec());
    let changed = (HEADER_BYTES..message.len()).flat_map(|at| {
        [0x00, 0xff, message[at] ^ 1, message[at].wrapping_add(8)].map(|byte| {
            let mut bytes = message.to_vec();
            bytes[at] = byte;
            bytes
        })
    });
    let types = (2..=40).map(|kind| [&[message[0], kind], &message[2..]].concat());
    let mut all: Vec<Vec<u8>> = cut.chain(changed).chain(types).collect();
    for bytes in &mut all {
        let length = u16::try_from(bytes.len()).unwrap();
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
    }
    all
}

/// Opens a channel, completes the handshake and reads whatever the switch sends.
async fn connect(switch: &SwitchHandle, version: Version) -> (tokio::io::WriteHalf<DuplexStream>, Reading) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    switch.connect_stream(theirs).unwrap();
    let (mut read, mut write) = tokio::io::split(ours);
    write.write_all(&[version as u8, 0, 0, 8, 0, 0, 0, 1]).await.unwrap();
    let reading = tokio::spawn(async move {
        let (mut piece, mut total) = (vec![0; 1 << 16], 0);
        while let Ok(count @ 1..) = read.read(&mut piece).await {
            total += count;
        }
        total
    });
    (write, reading)
}

/// Task that returns the number of bytes received at the end.
type Reading = tokio::task::JoinHandle<usize>;

async fn endures(folder: &str, version: Version) {
    let Some(messages) = messages(folder, version) else { return };
    assert!(messages.len() > 5, "{} messages of {version:?} in {folder}", messages.len());
    let (switch, _hosts) = switch(2, SoftwareSwitchConfig::default());
    for message in messages {
        let (mut write, reading) = connect(&switch, version).await;
        for bytes in damaged(&message) {
            // A message for which the switch ends the channel ends the writing.
            if write.write_all(&bytes).await.is_err() {
                break;
            }
        }
        let _ = write.shutdown().await;
        drop(write);
        let answered = tokio::time::timeout(PATIENCE, reading).await.expect("the channel ends").unwrap();
        assert!(answered > HEADER_BYTES, "the switch answers what is wrong");
    }
    until(|| switch.snapshot().unwrap().channels.is_empty()).await;
    let mut controller = Controller::embedded(&switch, 1 << 16).await;
    controller.barrier().await;
}

#[tokio::test]
async fn damaged_messages_of_1_0_harm_nobody() {
    endures("of10", Version::V10).await;
}

#[tokio::test]
async fn damaged_messages_of_1_3_harm_nobody() {
    endures("of13", Version::V13).await;
}

#[tokio::test]
async fn damaged_messages_of_1_4_harm_nobody() {
    endures("of14", Version::V14).await;
}

#[tokio::test]
async fn damaged_messages_of_1_5_harm_nobody() {
    endures("of15", Version::V15).await;
}

/// A message without most of the bytes its header announces does not delay another channel.
#[tokio::test]
async fn a_message_that_never_ends_holds_nobody_up() {
    let (switch, _hosts) = switch(1, SoftwareSwitchConfig::default());
    let (mut write, _reading) = connect(&switch, Version::V13).await;
    let mut barrier = Vec::new();
    encode(&Message { xid: 1, body: Body::BarrierRequest }, Version::V13, &mut barrier).unwrap();
    barrier[2..4].copy_from_slice(&[0xff, 0xff]);
    write.write_all(&barrier).await.unwrap();
    let mut other = Controller::embedded(&switch, 1 << 16).await;
    other.barrier().await;
}
