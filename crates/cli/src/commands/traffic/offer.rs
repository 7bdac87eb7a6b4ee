//! Options for the traffic to send.
use super::laws::{GapLawArg, SizeLawArg, TrafficRateArg, trace};
use std::net::IpAddr;
use std::path::PathBuf;
use weir_generator::{CaptureReplay, FrameSpec, TrafficSenderConfig};
use weir_packet::MacAddr;
use weir_traffic::{ArrivalProcess, FlowArrivals, FlowMix, OfferedPackets, OfferedTraffic, PacketSizeLaw};

#[derive(clap::Args)]
pub(super) struct OfferArgs {
    /// Packets per second, such as 1000, 10k or 1.5M, or bits per second, such as 100Mbit/s [default: 1000; for a
    /// capture, its own]
    #[arg(long, value_name = "RATE", help_heading = "Traffic")]
    rate: Option<TrafficRateArg>,
    /// Law of the times between packets: constant, poisson, pareto:SHAPE, on-off:ON,OFF, mmpp:HIGH,LOW,TIME (rates
    /// relative to the mean, mean time in the high state), pareto-on-off:ON,OFF,SHAPE, gamma:SCV, h2:SCV,
    /// uniform:LOW,HIGH (only their ratio counts), law:JSON, or trace:FILE with lines of SECONDS BYTES [default:
    /// poisson; for a capture, its own times]
    #[arg(long, value_name = "LAW", help_heading = "Traffic")]
    gaps: Option<GapLawArg>,
    /// Packet length, in bytes of the frame without FCS: a number, bimodal, imix, exp:MEAN, or file:FILE with lines
    /// of BYTES WEIGHT
    #[arg(long, value_name = "LAW", default_value = "100", help_heading = "Traffic")]
    size: SizeLawArg,
    /// Seed of the random numbers: the same seed gives the same packets
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Traffic")]
    seed: u64,
    /// Send the unchanged frames of this capture instead of packets by rule (then single packets cannot be traced,
    /// but see --replay-headers)
    #[arg(long, value_name = "FILE", help_heading = "Traffic", conflicts_with_all = ["size", "flows", "flow_arrivals"])]
    replay: Option<PathBuf>,
    /// Write the header that identifies a packet over the end of the payload of the capture's TCP and UDP packets
    /// that have room for it
    #[arg(long, help_heading = "Traffic", requires = "replay")]
    replay_headers: bool,
    /// Number of flows that packets are drawn from
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Flows")]
    flows: u64,
    /// Exponent of the flows' popularity: the n-th flow is sent in proportion to n^-Z
    #[arg(long, value_name = "Z", default_value_t = 0.0, help_heading = "Flows")]
    zipf: f64,
    /// Probability that a packet starts a new flow
    #[arg(long, value_name = "P", default_value_t = 0.0, help_heading = "Flows")]
    new_flow: f64,
    /// UDP destination port of packets that start a new flow, if it differs
    #[arg(long, value_name = "PORT", help_heading = "Flows")]
    new_flow_port: Option<u16>,
    /// Send flows instead of single packets: mean number of new flows per second, as a Poisson process
    #[arg(long, value_name = "RATE", help_heading = "Flows", conflicts_with_all = ["flows", "zipf", "new_flow", "gaps", "rate"])]
    flow_arrivals: Option<f64>,
    /// Mean number of packets of such a flow
    #[arg(long, value_name = "N", default_value_t = 10.0, help_heading = "Flows", requires = "flow_arrivals")]
    flow_packets: f64,
    /// Packets per second of such a flow while it lasts
    #[arg(long, value_name = "RATE", default_value_t = 100.0, help_heading = "Flows", requires = "flow_arrivals")]
    flow_rate: f64,
    /// Ethernet destination [default: 02:00:00:00:ff:02]
    #[arg(long, value_name = "MAC", help_heading = "Headers")]
    eth_dst: Option<MacAddr>,
    /// Ethernet source [default: 02:00:00:00:ff:01]
    #[arg(long, value_name = "MAC", help_heading = "Headers")]
    eth_src: Option<MacAddr>,
    /// VLAN id of the tag
    #[arg(long, value_name = "N", help_heading = "Headers")]
    vlan: Option<u16>,
    /// IP source of the first 32768 flows; further flows use the following addresses [default: 198.18.0.1]
    #[arg(long, value_name = "IP", help_heading = "Headers")]
    ip_src: Option<IpAddr>,
    /// IP destination [default: 198.19.0.1]
    #[arg(long, value_name = "IP", help_heading = "Headers")]
    ip_dst: Option<IpAddr>,
    /// UDP source port of the first flow; further flows use the following ports [default: 1024]
    #[arg(long, value_name = "PORT", help_heading = "Headers")]
    udp_src: Option<u16>,
    /// UDP destination port [default: 9]
    #[arg(long, value_name = "PORT", help_heading = "Headers")]
    udp_dst: Option<u16>,
}

impl OfferArgs {
    /// Returns the traffic source; files are read.
    pub(super) fn source(&self) -> anyhow::Result<TrafficSenderConfig> {
        let replay = self.replay.as_deref().map(CaptureReplay::read).transpose()?;
        let replay = if self.replay_headers { replay.map(CaptureReplay::with_headers).transpose()? } else { replay };
        let flows = FlowMix { known: self.flows, zipf: self.zipf, new: self.new_flow };
        let packets = |offered| OfferedTraffic::Packets { offered, flows };
        let offer = match (&replay, self.flow_arrivals, &self.gaps) {
            (_, Some(per_second), _) => OfferedTraffic::Flows(FlowArrivals {
                per_second,
                packets: self.flow_packets,
                packets_per_second: self.flow_rate,
                size: self.size.law()?,
            }),
            (Some(replay), None, None) if self.rate.is_none() => packets(OfferedPackets::Trace(replay.trace().clone())),
            (_, None, Some(GapLawArg::Trace(file))) => {
                anyhow::ensure!(self.rate.is_none(), "--rate: a trace has its own; leave one of the two out");
                packets(OfferedPackets::Trace(trace(file)?))
            }
            (_, None, Some(GapLawArg::Law(arrival))) => packets(self.rule(arrival, replay.as_ref())?),
            (_, None, None) => packets(self.rule(&ArrivalProcess::Poisson, replay.as_ref())?),
        };
        Ok(TrafficSenderConfig { offer, replay, frames: self.headers(), seed: self.seed })
    }

    fn rule(&self, arrival: &ArrivalProcess, replay: Option<&CaptureReplay>) -> anyhow::Result<OfferedPackets> {
        // Frames of a capture have their own lengths: only their mean is used, to convert a rate in bit/s.
        let size = match replay {
            Some(replay) => {
                let mean = OfferedPackets::Trace(replay.trace().clone()).mean_bytes()?;
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 65535")]
                PacketSizeLaw::Fixed(mean.round() as u32)
            }
            None => self.size.law()?,
        };
        let own = replay.and_then(CaptureReplay::per_second).unwrap_or(1000.0);
        let mean = OfferedPackets::Rule { arrival: ArrivalProcess::Poisson, per_second: 1.0, size: size.clone() }
            .mean_bytes()?;
        let per_second = self.rate.map_or(own, |rate| rate.per_second(mean));
        Ok(OfferedPackets::Rule { arrival: arrival.clone(), per_second, size })
    }

    fn headers(&self) -> FrameSpec {
        let default = FrameSpec::default();
        FrameSpec {
            eth: [self.eth_dst.unwrap_or(default.eth[0]), self.eth_src.unwrap_or(default.eth[1])],
            vlan: self.vlan,
            ip: [self.ip_src.unwrap_or(default.ip[0]), self.ip_dst.unwrap_or(default.ip[1])],
            udp: [self.udp_src.unwrap_or(default.udp[0]), self.udp_dst.unwrap_or(default.udp[1])],
            new_flow_port: self.new_flow_port,
        }
    }
}
