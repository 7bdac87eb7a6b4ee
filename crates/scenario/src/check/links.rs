//! Checks a link's effects on frames: rate, delay, buffer, jitter and loss.
use super::{ScenarioResult, SourceFile};
use crate::document::LinkEffectsToml;
use crate::{LinkJitter, LinkLoss, LinkSpec};
use std::time::Duration;
use toml::Spanned;
use weir_units::{ByteSize, TimeSpan};

/// Longest link delay; limited because frames under way are kept in memory.
pub(super) const MAX_DELAY: Duration = Duration::from_secs(10);
/// Default buffer of a link with a rate: 100 ms of 10 Mbit/s.
const DEFAULT_BUFFER: ByteSize = crate::defaults::LINK_BUFFER;

/// Checks a link's settings against their limits and fills in the default buffer.
pub(super) fn spec(source: &SourceFile<'_>, line: LinkEffectsToml) -> ScenarioResult<LinkSpec> {
    let delay = span(source, "delay", line.delay.as_ref())?.unwrap_or_default();
    let (jitter, loss) = (jitter(source, &line, delay)?, loss(source, &line)?);
    if let Some(buffer) = &line.buffer {
        if line.rate.is_none() {
            let problem = "buffer: found without rate, expected both: a link without rate needs no buffer";
            return Err(source.error(buffer.span(), problem.into()));
        }
        if buffer.as_ref().0 < 1514 {
            let problem = format!("buffer: found {}, expected at least one frame: 1514B", buffer.as_ref());
            return Err(source.error(buffer.span(), problem));
        }
    }
    let buffer = line.rate.map(|_| line.buffer.map_or(DEFAULT_BUFFER, Spanned::into_inner));
    Ok(LinkSpec { rate: line.rate, delay, buffer, jitter, loss })
}

/// Checks a link's delay or jitter against the limit.
fn span(source: &SourceFile<'_>, what: &str, found: Option<&Spanned<TimeSpan>>) -> ScenarioResult<Option<Duration>> {
    let Some(found) = found else { return Ok(None) };
    if found.as_ref().0 > MAX_DELAY {
        let problem = format!("{what}: found {}, expected at most {}", found.as_ref(), TimeSpan(MAX_DELAY));
        return Err(source.error(found.span(), problem));
    }
    Ok(Some(found.as_ref().0))
}

fn jitter(source: &SourceFile<'_>, line: &LinkEffectsToml, delay: Duration) -> ScenarioResult<Option<LinkJitter>> {
    let Some(written) = &line.jitter else {
        let law = line.jitter_law.as_ref().map(|law| ("jitter_law", law.span()));
        let alone = law.or_else(|| line.reorder.as_ref().map(|reorder| ("reorder", reorder.span())));
        return alone.map_or(Ok(None), |(key, span)| {
            Err(source.error(span, format!("{key}: found without jitter, expected both")))
        });
    };
    let size = span(source, "jitter", Some(written))?.unwrap_or_default();
    let law = line.jitter_law.as_ref().map(|law| *law.as_ref()).unwrap_or_default();
    let reorder = line.reorder.as_ref().is_some_and(|reorder| *reorder.as_ref());
    let jitter = LinkJitter { size, law, reorder };
    jitter.check(delay).map_err(|error| source.error(written.span(), error.to_string()))?;
    Ok((!size.is_zero()).then_some(jitter))
}

fn loss(source: &SourceFile<'_>, line: &LinkEffectsToml) -> ScenarioResult<Option<LinkLoss>> {
    let Some(written) = &line.loss else {
        let alone = line.loss_burst.as_ref().map(Spanned::span);
        let both = "loss_burst: found without loss, expected both";
        return alone.map_or(Ok(None), |span| Err(source.error(span, both.to_owned())));
    };
    let loss = LinkLoss { share: written.as_ref().0, burst: line.loss_burst.as_ref().map(|burst| *burst.as_ref()) };
    loss.check().map_err(|error| source.error(written.span(), error.to_string()))?;
    Ok((loss.share > 0.0).then_some(loss))
}
