//! Frames and links of the hosts H1 and H2 in Fig. 2 of Rahimi et al., 2016, which are the two ends of a tester.
use crate::tester::{BulkFlow, BulkFlowRate, TesterFrameTemplate, VaryingHeaderField};
use std::net::Ipv4Addr;
use weir_packet::MacAddr;
use weir_packet::craft::{FrameBuilder, TcpHeader};

/// VLANs a and b, at the first and the second end.
pub(super) const VLANS: [u16; 2] = [10, 20];
/// Ethernet addresses of the hosts at the first and the second end.
pub(super) const MACS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])];
/// Size of a full frame in bytes without frame check sequence: 1500 bytes of payload, as in iperf3's frames.
pub(super) const FULL_FRAME: usize = 1514;
/// Bytes of a full frame that iperf3 counts: without the headers of IPv4 and of TCP with time stamps.
const PAYLOAD: f64 = 1448.0;
/// Size of ping's frame in bytes: 64 bytes of ICMP, ping's default.
const PING_FRAME: usize = 98;
/// Frames per second that fill a link of 1 Gbit/s. Each frame takes its bytes, a tag, check sequence, preamble and
/// gap.
pub(super) const GIGABIT_FRAMES: f64 = 1e9 / 8.0 / (FULL_FRAME as f64 + 4.0 + 4.0 + 20.0);

/// Returns a stream from one end to the other, with the VLAN tag of the sending end if `tagged`.
pub(super) fn stream(from: usize, tagged: bool, rate: BulkFlowRate) -> BulkFlow {
    let tcp = TcpHeader { source: 40_001, destination: 5201, flags: 16, window: 512, ..TcpHeader::default() };
    let frame = addressed(from, tagged).tcp(tcp).payload(&[0; 64]).frame();
    let bytes = FULL_FRAME + if tagged { 4 } else { 0 };
    BulkFlow { rate, template: TesterFrameTemplate::new(&frame, bytes, VaryingHeaderField::Nothing) }
}

/// Returns the echo request of the first end and the reply of the second.
pub(super) fn pings() -> [TesterFrameTemplate; 2] {
    [(0, 8), (1, 0)].map(|(from, kind)| {
        let frame = addressed(from, true).icmp(kind, 0, [0, 1, 0, 1]).payload(&[0; 56]).frame();
        TesterFrameTemplate::new(&frame, PING_FRAME + 4, VaryingHeaderField::Nothing)
    })
}

fn addressed(from: usize, tagged: bool) -> FrameBuilder {
    let frame = FrameBuilder::ethernet(MACS[1 - from], MACS[from]);
    let frame = if tagged { frame.vlan(0x8100, VLANS[from], 0) } else { frame };
    let addresses = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
    frame.ipv4(addresses[from], addresses[1 - from])
}

/// Returns the payload of full frames, in Mbit/s.
pub(super) fn goodput_mbps(frames_per_second: f64) -> f64 {
    frames_per_second * PAYLOAD * 8.0 / 1e6
}
