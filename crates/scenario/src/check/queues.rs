//! Checks queues of ports.
use super::{ScenarioResult, SourceFile};
use crate::{LinkSpec, PortQueueSpec, document};
use std::collections::BTreeSet;
use toml::Spanned;
use weir_units::{Bps, ByteSize};

/// Most queues of one port, including its default queue.
const MAX_QUEUES: usize = 256;
/// Highest queue number. In OpenFlow the number above means all queues.
const MAX_NUMBER: u32 = u32::MAX - 1;
const MAX_PRIORITY: u8 = 7;
/// Default buffer of a queue.
const DEFAULT_BUFFER: ByteSize = ByteSize(256_000);
const BUFFER: std::ops::RangeInclusive<u64> = 1514..=64_000_000;

/// Checks the queues of a link's switch ports.
pub(super) fn queues(
    source: &SourceFile<'_>,
    items: Vec<Spanned<document::QueueToml>>,
    link: &LinkSpec,
) -> ScenarioResult<Vec<PortQueueSpec>> {
    let (mut numbers, mut taken, mut queues) = (BTreeSet::new(), 0_u64, Vec::new());
    for item in items {
        let span = item.span();
        let wrong = |problem: String| source.error(span.clone(), format!("queues: {problem}"));
        let queue = queue(source, item.into_inner())?;
        let number = queue.queue;
        if !numbers.insert(number) {
            return Err(wrong(format!("found queue {number} twice, expected each once")));
        }
        if numbers.len() + usize::from(!numbers.contains(&0)) > MAX_QUEUES {
            return Err(wrong(format!("expected at most {MAX_QUEUES} with queue 0, which every port with queues has")));
        }
        if let Some(min) = queue.min {
            let Some(rate) = link.rate else {
                return Err(wrong(format!("queue {number}: found min without the link's rate, expected both")));
            };
            let left = Bps(rate.0 - taken);
            if min > left {
                let problem =
                    format!("queue {number}: min: found {min}, expected at most {left}: what others leave of {rate}");
                return Err(wrong(problem));
            }
            taken += min.0;
        }
        queues.push(queue);
    }
    Ok(queues)
}

fn queue(source: &SourceFile<'_>, item: document::QueueToml) -> ScenarioResult<PortQueueSpec> {
    let number = *item.queue.as_ref();
    if number > MAX_NUMBER {
        let problem = format!("queue: found {number}, expected 0 to {MAX_NUMBER}");
        return Err(source.error(item.queue.span(), problem));
    }
    if let (Some(min), Some(max)) = (&item.min, &item.max)
        && min.as_ref() > max.as_ref()
    {
        let problem = format!("queue {number}: min: found {}, expected at most max, {}", min.as_ref(), max.as_ref());
        return Err(source.error(min.span(), problem));
    }
    if let Some(buffer) = item.buffer.as_ref().filter(|buffer| !BUFFER.contains(&buffer.as_ref().0)) {
        let problem = format!("queue {number}: buffer: found {}, expected 1514B to 64MB", buffer.as_ref());
        return Err(source.error(buffer.span(), problem));
    }
    if let Some(priority) = item.priority.as_ref().filter(|priority| *priority.as_ref() > MAX_PRIORITY) {
        let problem = format!("queue {number}: priority: found {}, expected 0 to {MAX_PRIORITY}", priority.as_ref());
        return Err(source.error(priority.span(), problem));
    }
    Ok(PortQueueSpec {
        queue: number,
        min: item.min.map(Spanned::into_inner),
        max: item.max.map(Spanned::into_inner),
        buffer: item.buffer.map_or(DEFAULT_BUFFER, Spanned::into_inner),
        priority: item.priority.map_or(0, Spanned::into_inner),
    })
}
