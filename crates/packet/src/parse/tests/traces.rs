//! Tests with real traffic and hostile captures from the shared data, if present.
use super::oracle::compare;
use crate::Frame;
use crate::edit::{dec_nw_ttl, set_field};
use crate::{Field, PortNo, checksum::verify, parse};
use std::path::{Path, PathBuf};

/// Returns all capture files under `directory`.
fn captures(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let (directories, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let here = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "pcap"));
    here.chain(directories.iter().flat_map(|directory| captures(directory))).collect()
}

/// Returns the Ethernet frames of a classic capture file (draft-ietf-opsawg-pcap); an empty list for other formats or
/// link types.
fn ethernet_frames(file: &[u8]) -> Vec<&[u8]> {
    let number = |at: usize| {
        let bytes: [u8; 4] = file.get(at..at + 4)?.try_into().ok()?;
        Some(if file[0] == 0xa1 { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    };
    let mut frames = Vec::new();
    if !matches!(number(0), Some(0xa1b2_c3d4 | 0xa1b2_3c4d)) || number(20) != Some(1) {
        return frames;
    }
    let mut at = 24;
    while let Some(length) = number(at + 8) {
        let Some(frame) = file.get(at + 16..at + 16 + length as usize) else { break };
        frames.push(frame);
        at += 16 + frame.len();
    }
    frames
}

/// Checks that edits keep correct checksums correct.
fn edit(bytes: &[u8]) {
    if verify(bytes).is_err() {
        return;
    }
    let mut frame = Frame::from_bytes(bytes);
    for field in
        [Field::Ipv4Dst, Field::Ipv6Src, Field::TcpDst, Field::UdpSrc, Field::SctpDst, Field::Icmpv6Code, Field::IpDscp]
    {
        let layers = parse(frame.bytes(), PortNo(1)).unwrap().layers;
        set_field(&mut frame, &layers, field, 0x1234_5678_9abc_def0);
        _ = dec_nw_ttl(&mut frame, &layers);
        assert_eq!(verify(frame.bytes()), Ok(()), "{field} of {bytes:02x?}");
    }
}

#[test]
fn captured_frames() {
    let Some(folder) = weir_testing::shared("data/external/traces") else { return };
    let files = captures(&folder);
    assert!(!files.is_empty(), "no captures in {}", folder.display());
    let (mut frames, mut agreed, mut fields, mut right) = (0, 0, 0, 0);
    for file in files {
        for frame in ethernet_frames(&std::fs::read(&file).unwrap()) {
            if parse(frame, PortNo(1)).is_err() {
                continue;
            }
            let compared = compare(frame);
            frames += 1;
            agreed += usize::from(compared > 0);
            fields += compared;
            right += usize::from(verify(frame).is_ok());
            edit(frame);
        }
    }
    println!("{frames} frames, {agreed} compared in {fields} fields, {right} with right checksums");
    assert!(frames > 1000 && agreed * 2 > frames && right * 2 > frames);
}
