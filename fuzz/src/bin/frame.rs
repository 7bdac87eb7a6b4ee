//! Parses, edits and finishes any bytes as a frame. Beyond the absence of panics, the functions' promises are
//! checked.
//!
//! The first sixteen bytes choose: four edits (number: a field below 128, another edit from 128 on; two bytes of
//! value), then the work left to the port (flags, start and offset of the checksum, segment length). The remaining
//! bytes are the frame. The flags' high four bits choose the frame's first header: Ethernet or one of a few
//! EtherTypes.
#![no_main]
use libfuzzer_sys::fuzz_target;
use weir_packet::edit::{self, EditEffect};
use weir_packet::frame::{PartialChecksum, Segmentation, SegmentationKind};
use weir_packet::{
    Field, Frame, FramePool, Layers, PacketType, ParsedHeaders, PortNo, checksum, offload, parse_frequent,
};

const EDITS: usize = 4;
/// Numbers of edits below this set a field.
const FIELDS: u8 = 128;

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first_chunk::<16>() else { return };
    let mut frame = Frame::from_bytes(bytes);
    set_offload(&mut frame, &choice[3 * EDITS..]);
    for edit in choice.chunks(3).take(EDITS) {
        let Ok(before) = parse(&frame) else { return };
        apply(
            &mut frame,
            &before,
            edit[0],
            u128::from_be_bytes([[edit[1], edit[2]]; 8].as_flattened().try_into().unwrap()),
        );
    }
    finish(frame);
});

fn parse(frame: &Frame) -> Result<ParsedHeaders, impl std::fmt::Debug> {
    let parsed = ParsedHeaders::of(frame, PortNo(1));
    let mut short = ParsedHeaders::default();
    if frame.is_plain() && parse_frequent(frame, PortNo(1), &mut short).is_some() {
        assert_eq!(Some(&short), parsed.as_ref().ok());
    }
    parsed
}

fn set_offload(frame: &mut Frame, choice: &[u8]) {
    let [flags, start, offset, segment_bytes] = choice.try_into().unwrap();
    if let Some(kind) = [0x0800, 0x86dd, 0x8847, 0x894f].get(usize::from(flags >> 4).wrapping_sub(1)) {
        frame.set_packet_type(PacketType::of_eth_type(*kind));
    }
    let kind = match flags >> 1 & 3 {
        0 => None,
        1 => Some(SegmentationKind::Tcpv4 { ecn: true }),
        2 => Some(SegmentationKind::Tcpv6 { ecn: true }),
        _ => Some(SegmentationKind::Udp),
    };
    let checksum = PartialChecksum { start: u16::from(start), offset: u16::from(offset) };
    frame.offload.checksum = (flags & 1 != 0).then_some(checksum);
    let segment_bytes = u16::from(segment_bytes);
    frame.offload.segmentation = kind.map(|kind| Segmentation { kind, segment_bytes, header_bytes: u16::from(start) });
}

/// Applies an edit and checks the result that it reports.
fn apply(frame: &mut Frame, before: &ParsedHeaders, which: u8, value: u128) {
    let bytes = frame.bytes().to_vec();
    let field = Field::ALL.get(usize::from(which)).copied().filter(|_| which < FIELDS);
    let edited = match field {
        Some(field) => edit::set_field(frame, &before.layers, field, value),
        None => other_edit(frame, &before.layers, which.wrapping_sub(FIELDS), value),
    };
    match (edited, field) {
        (EditEffect::Nothing, _) => assert_eq!(frame.bytes(), bytes),
        (EditEffect::InPlace, None) => assert_eq!(parse(frame).unwrap().layers, before.layers),
        (EditEffect::InPlace, Some(field)) => {
            let mut expected = *before;
            let present = if field == Field::VlanVid { 0x1000 } else { 0 };
            expected.key.set(field, value | present);
            assert_eq!(parse(frame).unwrap(), expected, "{field}");
        }
        (EditEffect::Moved, _) => {}
    }
}

fn other_edit(frame: &mut Frame, layers: &Layers, which: u8, value: u128) -> EditEffect {
    let number = (value & 0xffff) as u16;
    let ttl = (value & 0xff) as u8;
    match which {
        0 => edit::push_vlan(frame, layers, 0x88a8).unwrap(),
        1 => edit::pop_vlan(frame, layers),
        2 => edit::push_mpls(frame, layers, 0x8847).unwrap_or(EditEffect::Nothing),
        3 => edit::pop_mpls(frame, layers, number),
        4 => edit::push_pbb(frame, layers, 0x88e7).unwrap(),
        5 => edit::pop_pbb(frame, layers),
        6 => edit::copy_ttl_in(frame, layers),
        7 => edit::copy_ttl_out(frame, layers),
        8 => edit::set_nw_ttl(frame, layers, ttl),
        9 => edit::set_mpls_ttl(frame, layers, ttl),
        10 => edit::dec_nw_ttl(frame, layers).unwrap_or(EditEffect::Nothing),
        11 => edit::dec_mpls_ttl(frame, layers).unwrap_or(EditEffect::Nothing),
        12 => edit::dec_nsh_ttl(frame, layers).unwrap_or(EditEffect::Nothing),
        13 => edit::encap_nsh(frame, 1 + ttl % 2, std::iter::empty()).unwrap_or(EditEffect::Nothing),
        14 => edit::encap_ethernet(frame).unwrap_or(EditEffect::Nothing),
        15 => edit::decap(frame, layers, PacketType::NEXT_PROTOCOL).unwrap_or(EditEffect::Nothing),
        _ => EditEffect::Nothing,
    }
}

/// Finishes the frame: segments must have correct checksums and no work left, and a dropped frame leaves no output.
fn finish(frame: Frame) {
    let segmented = frame.offload.segmentation.is_some();
    let (mut pool, mut out) = (FramePool::default(), Vec::new());
    let done = offload::finish(frame, &mut pool, &mut out);
    assert!(done != out.is_empty() && out.len() <= offload::MAX_SEGMENTS);
    for frame in &out {
        assert!(frame.offload.is_none());
        let right = checksum::verify_as(frame.bytes(), frame.packet_type());
        assert!(!segmented || right.is_ok(), "{right:?}");
    }
}
