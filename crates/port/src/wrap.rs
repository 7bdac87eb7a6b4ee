//! Parses the options that every kind of port accepts, and wraps the port accordingly.
//!
//! - `rate=100Mbit/s`, `delay=5ms`, `buffer=64kB`, `jitter=1ms`, `jitter-law=normal`, `reorder=on`: a link in both
//!   directions ([`crate::link`]);
//! - `loss=0.01`: faults in both directions ([`crate::fault`]); with `loss-burst=10`, losses of the link in bursts of
//!   that mean length;
//! - `corrupt=0.01`, `duplicate=0.01`, `seed=1`: faults in both directions ([`crate::fault`]);
//! - `capture=FILE`: records every frame in a pcap file ([`crate::tracer`]);
//! - `queue=1:min=10Mbit/s:max=20Mbit/s`, once per queue: queues that share the rate ([`crate::queues`]).
//!
//! Order of the wrappers, from the switch to the port: queues, capture, link, faults.
use crate::fault::{FaultProbabilities, FaultyPort};
use crate::link::{LinkEmulator, LinkShape};
use crate::queues::{self, PortQueueConfig};
use crate::spec::PortOptions;
use crate::tracer::PortTracer;
use crate::{Port, PortError, pcap};
use std::path::Path;
use std::time::Duration;
use weir_traffic::impair::{LinkJitter, LinkLoss};
use weir_units::TimeSpan;

/// Names of the options of wrappers.
pub(crate) const OPTIONS: [&str; 13] = [
    "rate",
    "delay",
    "buffer",
    "jitter",
    "jitter-law",
    "reorder",
    "loss",
    BURST,
    "corrupt",
    "duplicate",
    "seed",
    "capture",
    QUEUE,
];
/// Option that moves losses from the faults to the link, in bursts of this mean length.
const BURST: &str = "loss-burst";
const PROBABILITY: &str = "a probability from 0 to 1";
/// Option that may be given several times.
pub(crate) const QUEUE: &str = "queue";

/// Wraps `port` as `options` require.
pub(crate) fn wrap(mut port: Box<dyn Port>, options: &PortOptions) -> Result<Box<dyn Port>, PortError> {
    let faults = faults(options)?;
    let seed = options.get("seed", "a number")?.unwrap_or(1);
    if faults != FaultProbabilities::default() {
        port = Box::new(FaultyPort::new(port, faults, seed));
    }
    let shape = shape(options)?;
    if !shape.is_none() {
        port = Box::new(LinkEmulator::new(port, shape, shape).seeded(seed, 0));
    }
    if let Some(file) = options.text("capture") {
        let capture = pcap::PcapFileWriter::create(Path::new(file))
            .map_err(|error| pcap::cannot("write", file, error, options))?;
        port = Box::new(PortTracer::new(port, capture));
    }
    queue(port, options)
}

/// Inserts the queues that `options` require in front of `port`; without queue options, returns the port unchanged.
fn queue(port: Box<dyn Port>, options: &PortOptions) -> Result<Box<dyn Port>, PortError> {
    let wrong = |problem: String| options.error(format!("option queue: {problem}"));
    let configs = options.texts(QUEUE).map(|text| text.parse::<PortQueueConfig>().map_err(wrong));
    let configs: Vec<PortQueueConfig> = configs.collect::<Result<_, _>>()?;
    if let Some(twice) = configs.iter().enumerate().find(|(at, c)| configs[..*at].iter().any(|other| other.id == c.id))
    {
        return Err(wrong(format!("queue {} is given twice", twice.1.id)));
    }
    queues::queued(port, configs).map_err(wrong)
}

fn shape(options: &PortOptions) -> Result<LinkShape, PortError> {
    let rate = options.get("rate", "a rate such as 100Mbit/s")?;
    let delay = options.get::<TimeSpan>("delay", "a time such as 5ms")?.map_or(Duration::ZERO, |span| span.0);
    let buffer = options.get("buffer", "a size such as 64kB")?;
    if buffer.is_some() && rate.is_none() {
        return Err(options.error("option buffer is for a limited rate: add rate=..."));
    }
    let (jitter, loss) = (jitter(options, delay)?, bursts(options)?);
    Ok(LinkShape { rate, delay, buffer, jitter, loss })
}

fn jitter(options: &PortOptions, delay: Duration) -> Result<Option<LinkJitter>, PortError> {
    let law = options.get("jitter-law", "uniform, normal or pareto")?;
    let reorder = options.flag("reorder", false)?;
    let Some(size) = options.get::<TimeSpan>("jitter", "a time such as 1ms")? else {
        let lonely = ["jitter-law", "reorder"].into_iter().find(|name| options.text(name).is_some());
        return lonely
            .map_or(Ok(None), |name| Err(options.error(format!("option {name} is for jitter: add jitter=..."))));
    };
    let jitter = LinkJitter { size: size.0, law: law.unwrap_or_default(), reorder };
    jitter.check(delay).map_err(|error| options.error(format!("option {error}")))?;
    Ok(Some(jitter))
}

/// Returns the link's losses, which come in bursts. Without `loss-burst`, losses are faults.
fn bursts(options: &PortOptions) -> Result<Option<LinkLoss>, PortError> {
    let Some(burst) = options.get(BURST, "a number of frames")? else { return Ok(None) };
    let share = options.get("loss", PROBABILITY)?;
    let Some(share) = share else { return Err(options.error("option loss-burst is for losses: add loss=...")) };
    let loss = LinkLoss { share, burst: Some(burst) };
    loss.check().map_err(|error| options.error(format!("option {error}")))?;
    Ok(Some(loss))
}

fn faults(options: &PortOptions) -> Result<FaultProbabilities, PortError> {
    let probability = |name| -> Result<f64, PortError> {
        let expected = PROBABILITY;
        let value = options.get(name, expected)?.unwrap_or(0.0);
        if (0.0..=1.0).contains(&value) {
            Ok(value)
        } else {
            Err(options.error(format!("option {name}: found `{value}`, expected {expected}")))
        }
    };
    let loss = if options.text(BURST).is_some() { 0.0 } else { probability("loss")? };
    Ok(FaultProbabilities { loss, corrupt: probability("corrupt")?, duplicate: probability("duplicate")? })
}

#[cfg(test)]
mod tests {
    use crate::spec::{PortSpec, open};
    use weir_packet::{Frame, FramePool};
    use weir_units::{Bps, Instant};

    #[test]
    fn every_kind_takes_the_wrappers() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.pcap");
        let text = format!("null:,rate=8Mbit/s,delay=1ms,loss=1,capture={}", file.display());
        let mut port = open(&text.parse::<PortSpec>().unwrap()).unwrap();
        assert_eq!(port.link().speed, Some(Bps(8_000_000)));
        let mut pool = FramePool::default();
        port.transmit(Instant::ZERO, &mut pool, &mut vec![Frame::from_bytes(&[0; 1000])]).unwrap();
        assert_eq!(port.next_wake(), Some(Instant::from_nanos(2_000_000)));
        port.receive(Instant::from_nanos(2_000_000), &mut pool, &mut Vec::new(), 8).unwrap();
        assert_eq!(port.counters().tx_packets, 0, "lost behind the link");
        drop(port);
        assert_eq!(std::fs::metadata(&file).unwrap().len(), 24 + 16 + 1000);
    }

    #[test]
    fn queues_share_the_link() {
        let text = "null:,rate=8Mbit/s,buffer=9kB,queue=1:min=2Mbit/s,queue=7:max=1Mbit/s:priority=3";
        let mut port = open(&text.parse::<PortSpec>().unwrap()).unwrap();
        assert_eq!(port.link().speed, Some(Bps(8_000_000)));
        let queues: Vec<String> =
            port.queues(|queues| queues.iter().map(|queue| queue.config.to_string()).collect()).unwrap();
        assert_eq!(queues, ["0:buffer=9kB", "1:min=2Mbit/s", "7:max=1Mbit/s:priority=3"]);
        for (wrong, problem) in [
            ("queue=1:min=9Mbit/s", "found min=9Mbit/s, expected at most 8Mbit/s"),
            ("queue=1,queue=1:min=1Mbit/s", "queue 1 is given twice"),
            ("queue=1:minimum=1", "queue 1: found `minimum=1`, expected min=RATE"),
        ] {
            let text = format!("null:,rate=8Mbit/s,{wrong}");
            let error = open(&text.parse::<PortSpec>().unwrap()).map(|_| ()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("port {text}: option queue: ")) && error.contains(problem), "{error}");
        }
    }

    #[test]
    fn a_link_varies_its_delay_and_loses_in_bursts() {
        let text = "null:,delay=5ms,jitter=1ms,jitter-law=normal,reorder=on,loss=0.5,loss-burst=4";
        let mut port = open(&text.parse::<PortSpec>().unwrap()).unwrap();
        let mut pool = FramePool::default();
        let mut frames: Vec<_> = (0..200).map(|_| Frame::from_bytes(&[0; 60])).collect();
        port.transmit(Instant::ZERO, &mut pool, &mut frames).unwrap();
        let first = port.next_wake().unwrap().as_nanos();
        assert!((1_000_000..5_000_000).contains(&first), "{first}");
        port.receive(Instant::from_nanos(10_000_000), &mut pool, &mut Vec::new(), 0).unwrap();
        let counters = port.counters();
        assert_eq!(counters.tx_packets + counters.tx_lost, 200);
        assert!((50..150).contains(&counters.tx_lost), "{}", counters.tx_lost);
    }

    #[test]
    fn wrong_values_are_refused() {
        for wrong in [
            "jitter=1ms",
            "jitter-law=normal",
            "reorder=on",
            "delay=1ms,jitter=2ms",
            "delay=1ms,jitter=1ms,jitter-law=x",
        ] {
            let spec: PortSpec = format!("null:,{wrong}").parse().unwrap();
            assert!(open(&spec).is_err(), "{wrong}");
        }
        for wrong in [
            "loss=2",
            "loss-burst=2",
            "loss=0.1,loss-burst=0.1",
            "loss=0.9,loss-burst=1",
            "loss=x",
            "loss=NaN",
            "rate=10",
            "delay=5",
            "buffer=9kB",
            "capture=/does/not/exist",
        ] {
            let spec: PortSpec = format!("null:,{wrong}").parse().unwrap();
            let error = open(&spec).map(|_| ()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("port null:,{wrong}: ")), "{error}");
        }
    }
}
