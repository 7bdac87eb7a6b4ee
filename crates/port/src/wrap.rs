//! Options that every kind of port takes, and the wrappers they stand for.
//!
//! - `rate=100Mbit/s`, `delay=5ms`, `buffer=64kB`: a link in both directions ([`crate::shaper`]);
//! - `loss=0.01`, `corrupt=0.01`, `duplicate=0.01`, `seed=1`: faults in both directions ([`crate::fault`]);
//! - `capture=FILE`: everything that passes, in a pcap file ([`crate::tracer`]);
//! - `queue=1:min=10Mbit/s:max=20Mbit/s`, once for each queue: queues that share the rate ([`crate::queues`]).
//!
//! Seen from the switch, the queues come first, then the capture, the link, the faults, the port.
use crate::fault::{Faults, Faulty};
use crate::queues::{self, QueueConfig};
use crate::shaper::{Link, Shape};
use crate::spec::Options;
use crate::tracer::Tracer;
use crate::{Port, PortError, pcap};
use std::path::Path;
use std::time::Duration;
use weir_units::Span;

/// The names of these options.
pub(crate) const OPTIONS: [&str; 9] =
    ["rate", "delay", "buffer", "loss", "corrupt", "duplicate", "seed", "capture", QUEUE];
/// The option that may be given several times.
pub(crate) const QUEUE: &str = "queue";

/// Puts the wrappers that `options` ask for around `port`.
pub(crate) fn wrap(mut port: Box<dyn Port>, options: &Options) -> Result<Box<dyn Port>, PortError> {
    let faults = faults(options)?;
    if faults != Faults::default() {
        let seed = options.get("seed", "a number")?.unwrap_or(1);
        port = Box::new(Faulty::new(port, faults, seed));
    }
    let shape = shape(options)?;
    if !shape.is_none() {
        port = Box::new(Link::new(port, shape, shape));
    }
    if let Some(file) = options.text("capture") {
        let capture =
            pcap::Writer::create(Path::new(file)).map_err(|error| pcap::cannot("write", file, error, options))?;
        port = Box::new(Tracer::new(port, capture));
    }
    queue(port, options)
}

/// Puts the queues that `options` ask for in front of `port`; without any, the port is as it was.
fn queue(port: Box<dyn Port>, options: &Options) -> Result<Box<dyn Port>, PortError> {
    let wrong = |problem: String| options.error(format!("option queue: {problem}"));
    let configs = options.texts(QUEUE).map(|text| text.parse::<QueueConfig>().map_err(wrong));
    let configs: Vec<QueueConfig> = configs.collect::<Result<_, _>>()?;
    if let Some(twice) = configs.iter().enumerate().find(|(at, c)| configs[..*at].iter().any(|other| other.id == c.id))
    {
        return Err(wrong(format!("queue {} is given twice", twice.1.id)));
    }
    queues::queued(port, configs).map_err(wrong)
}

fn shape(options: &Options) -> Result<Shape, PortError> {
    let rate = options.get("rate", "a rate such as 100Mbit/s")?;
    let delay = options.get::<Span>("delay", "a time such as 5ms")?.map_or(Duration::ZERO, |span| span.0);
    let buffer = options.get("buffer", "a size such as 64kB")?;
    if buffer.is_some() && rate.is_none() {
        return Err(options.error("option buffer is for a limited rate: add rate=..."));
    }
    Ok(Shape { rate, delay, buffer })
}

fn faults(options: &Options) -> Result<Faults, PortError> {
    let probability = |name| -> Result<f64, PortError> {
        let expected = "a probability from 0 to 1";
        let value = options.get(name, expected)?.unwrap_or(0.0);
        if (0.0..=1.0).contains(&value) {
            Ok(value)
        } else {
            Err(options.error(format!("option {name}: found `{value}`, expected {expected}")))
        }
    };
    Ok(Faults { loss: probability("loss")?, corrupt: probability("corrupt")?, duplicate: probability("duplicate")? })
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
    fn wrong_values_are_refused() {
        for wrong in ["loss=2", "loss=x", "loss=NaN", "rate=10", "delay=5", "buffer=9kB", "capture=/does/not/exist"] {
            let spec: PortSpec = format!("null:,{wrong}").parse().unwrap();
            let error = open(&spec).map(|_| ()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("port null:,{wrong}: ")), "{error}");
        }
    }
}
