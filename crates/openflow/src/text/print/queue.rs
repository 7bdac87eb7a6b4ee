//! Prints the messages about queues of ports.
use super::PrintContext;
use super::shape::{counter, duration};
use crate::model::queue::{ALL_QUEUES, QueueConfig, QueueConfigReply, QueueProperty, QueueStats};
use crate::model::{PortNo, Version};
use crate::text::raw;
use std::fmt::Write as _;

pub(super) fn request(port: PortNo, queue: u32) -> String {
    format!(" port={port} queue={}", number(queue))
}

fn number(queue: u32) -> String {
    if queue == ALL_QUEUES { "ALL".into() } else { queue.to_string() }
}

pub(super) fn config(reply: &QueueConfigReply) -> String {
    let mut text = format!(" port={}\n", reply.port);
    for queue in &reply.queues {
        let _ = write!(text, "queue {}:", queue.queue);
        for property in &queue.properties {
            text.push_str(&self::property(property));
        }
        text.push('\n');
    }
    text
}

/// Prints a queue description request of 1.4: the port, and the queue if it is not all.
pub(super) fn desc_request(port: PortNo, queue: u32) -> String {
    match queue {
        ALL_QUEUES => format!(" port={port}"),
        queue => format!(" port={port} queue={queue}"),
    }
}

/// Prints queues of several ports; each port is printed before its first queue.
pub(super) fn descs(queues: &[QueueConfig]) -> String {
    let (mut text, mut port) = (String::new(), None);
    for queue in queues {
        if port.replace(queue.port) != Some(queue.port) {
            let _ = writeln!(text, "{}port={}", if text.is_empty() { " " } else { "" }, queue.port);
        }
        let properties: String = queue.properties.iter().map(property).collect();
        let _ = writeln!(text, "queue {}:{properties}", queue.queue);
    }
    text
}

fn property(property: &QueueProperty) -> String {
    match property {
        QueueProperty::MinRate(rate) => rate_text("min_rate", *rate),
        QueueProperty::MaxRate(rate) => rate_text("max_rate", *rate),
        QueueProperty::Experimenter { id, data } => format!(" experimenter:{id:#x}({})", raw::hex(&data.0)),
        QueueProperty::Unknown { kind, data } => format!(" property:{kind}({})", raw::hex(&data.0)),
    }
}

/// Prints a rate, given in tenths of a percent.
fn rate_text(name: &str, rate: u16) -> String {
    match rate {
        0..=1000 => format!(" {name}:{}.{}%", rate / 10, rate % 10),
        u16::MAX => String::new(),
        _ => format!(" {name}:(disabled)"),
    }
}

pub(super) fn stats(queues: &[QueueStats], show: PrintContext) -> String {
    let mut text = format!(" {} queues\n", queues.len());
    for queue in queues {
        let _ = write!(text, "  port {} queue {}: ", queue.port, number(queue.queue));
        let counters = [("bytes", queue.tx_bytes), ("pkts", queue.tx_packets), ("errors", queue.tx_errors)];
        for (name, value) in counters {
            let _ = write!(text, "{name}={}, ", counter(value));
        }
        let lived = match (queue.duration_sec, queue.duration_nsec) {
            (u32::MAX, _) => "?".into(),
            _ if show.version == Version::V10 => "?".into(),
            (seconds, nanoseconds) => duration(seconds, nanoseconds),
        };
        let _ = writeln!(text, "duration={lived}");
    }
    text
}
