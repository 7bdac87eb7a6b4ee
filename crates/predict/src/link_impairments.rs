//! Models links that lose packets or vary their delay.
use weir_model::{Law, ModelError, Warning};
use weir_scenario::{JitterLaw, LinkSpec, Scenario, TrafficKind};

/// Part of a normal delay that is random, in standard deviations; the rest is constant. It is large enough that a
/// gamma law is almost normal.
const DRAWN_DEVIATIONS: f64 = 20.0;

/// Returns the constant part of a link's delay in seconds, and the law of the random part.
pub(crate) fn delay(spec: &LinkSpec) -> Result<(f64, Option<Law>), ModelError> {
    let delay = spec.delay.as_secs_f64();
    let Some(jitter) = spec.jitter else { return Ok((delay, None)) };
    let size = jitter.size.as_secs_f64();
    Ok(match jitter.law {
        JitterLaw::Uniform => ((delay - size).max(0.0), Some(Law::uniform(0.0, 2.0 * size)?)),
        JitterLaw::Normal => {
            let drawn = (DRAWN_DEVIATIONS * size).min(delay);
            (delay - drawn, Some(Law::gamma(drawn, (size / drawn).powi(2))?))
        }
        // Two exponentials with the mean and variance of the Pareto law.
        JitterLaw::Pareto => (delay, Some(Law::balanced(size, 3.0)?)),
    })
}

/// Returns warnings about effects of loss and jitter that the formulas do not include.
pub(crate) fn warnings(scenario: &Scenario) -> Vec<Warning> {
    let access = scenario.hosts.iter().map(|host| host.link);
    let links: Vec<LinkSpec> = access.chain(scenario.links.iter().map(|link| link.spec)).collect();
    let has_tcp = scenario.traffic.iter().any(|item| matches!(item.kind, TrafficKind::Tcp { .. }));
    let mut found = Vec::new();
    if has_tcp && links.iter().any(|link| link.loss.is_some()) {
        let text = "links lose packets: TCP is answered as if it did not slow down for that, and is slower";
        found.push(Warning::new("TCP_LOSS", text.to_owned()));
    }
    if links.iter().any(|link| link.jitter.is_some_and(|jitter| !jitter.reorder)) {
        let text = "links with jitter keep the order: packets that come within the jitter of each other are later than answered";
        found.push(Warning::new("JITTER_ORDER", text.to_owned()));
    }
    found
}
