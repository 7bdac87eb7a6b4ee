//! Combines the phases' results of a traffic item into its answer.
use crate::answer::{FlowPrediction, PredictedDelay, PredictionStatus, PredictionValidity};
use crate::traffic_item::{DeliveryResult, PhaseResult};
use weir_model::{Distribution, ModelError};

/// Combines the phases' results, weighted by their packets.
pub(crate) fn combine_phases(answer: &mut FlowPrediction, fared: &[PhaseResult]) -> Result<(), ModelError> {
    let (mut data, mut control) = (Vec::new(), Vec::new());
    let (mut sent, mut arrived, mut asking) = (0.0, 0.0, 0.0);
    let seconds: f64 = fared.iter().map(|one| one.seconds).sum();
    for one in fared {
        let packets = one.rate * one.seconds;
        let share = one.control.as_ref().map_or(0.0, |(share, _)| *share);
        sent += packets;
        asking += packets * share;
        for (weight, outcome, into) in std::iter::once((1.0 - share, Some(&one.data), &mut data)).chain([(
            share,
            one.control.as_ref().map(|(_, outcome)| outcome),
            &mut control,
        )]) {
            let Some(outcome) = outcome.filter(|_| weight > 0.0) else { continue };
            for doubt in outcome.doubts.iter().filter(|_| outcome.delay.is_ok()) {
                answer.validity = PredictionValidity::Approximate;
                answer.notes.push(format!("approximate: {doubt}"));
            }
            arrived += packets * weight * outcome.arrives;
            match &outcome.delay {
                Ok(delay) => into.push((packets * weight * outcome.arrives, delay.clone())),
                Err((place, offered)) if !place.is_empty() => {
                    answer.status = PredictionStatus::Unstable;
                    answer.notes.push(format!("utilisation {offered:.3} at {place}: no steady state"));
                }
                Err(_) => {}
            }
        }
        answer.notes.extend(one.notes.iter().cloned());
    }
    answer.notes.dedup();
    answer.bottleneck = bottleneck(fared);
    if let Some(goodput) =
        fared.iter().map(|one| Some(one.goodput_bps? * one.seconds)).sum::<Option<f64>>().filter(|_| seconds > 0.0)
    {
        answer.goodput_bps = Some(goodput / seconds);
        answer.packets_per_s = sent / seconds;
        answer.loss = Some(0.0);
        return Ok(());
    }
    // Without a steady state, packets that are sent but do not arrive are not lost: they wait ever longer.
    answer.asks = (asking > 0.0).then(|| asking / sent);
    let steady = answer.status == PredictionStatus::Ok && sent > 0.0;
    answer.loss = steady.then(|| (1.0 - arrived / sent).clamp(0.0, 1.0));
    let both = !control.is_empty();
    let data_only = mixed(&data)?;
    let control_only = mixed(&control)?;
    if both || answer.status == PredictionStatus::Unstable {
        answer.data = data_only.as_ref().map(PredictedDelay::of).transpose()?;
        answer.control = control_only.as_ref().map(PredictedDelay::of).transpose()?;
    }
    if answer.status == PredictionStatus::Ok {
        data.extend(control);
        answer.distribution = mixed(&data)?;
        answer.delay = answer.distribution.as_ref().map(PredictedDelay::of).transpose()?;
    }
    Ok(())
}

fn bottleneck(fared: &[PhaseResult]) -> Option<String> {
    let outcomes =
        fared.iter().flat_map(|one| std::iter::once(&one.data).chain(one.control.as_ref().map(|(_, outcome)| outcome)));
    let outcomes: Vec<&DeliveryResult> = outcomes.collect();
    let unstable = outcomes
        .iter()
        .find_map(|one| one.delay.as_ref().err().map(|(place, _)| place.clone()).filter(|place| !place.is_empty()));
    let longest = || outcomes.iter().filter_map(|one| one.longest.as_ref()).max_by(|a, b| a.1.total_cmp(&b.1));
    unstable.or_else(|| longest().map(|(name, _)| name.clone()))
}

fn mixed(parts: &[(f64, Distribution)]) -> Result<Option<Distribution>, ModelError> {
    let sum: f64 = parts.iter().map(|(weight, _)| weight).sum();
    if sum <= 0.0 {
        return Ok(None);
    }
    let shares: Vec<(f64, Distribution)> =
        parts.iter().map(|(weight, delay)| ((weight / sum).min(1.0), delay.clone())).collect();
    Distribution::mixture(&shares).map(Some)
}
