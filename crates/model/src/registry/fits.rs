//! Registers fits of parameters to measurements, and differences between models and measurements.
use super::{ModelArguments, ModelOutcome, RegisteredModel, output, required};
use crate::ModelError;
use crate::check::domain;
use crate::fit::levels::{GapDelaySample, GapLevels};
use crate::fit::line::RegressionLine;
use crate::score::{ModelDeviation, mape};

/// Line, levels and differences.
pub(super) const MODELS: &[RegisteredModel] = &[
    RegisteredModel {
        name: "fit_line",
        title: "The straight line through points",
        assumes: "distances from the line independent and normal, for the interval",
        validity: "exact (ordinary least squares); a slope whose interval spans 0 is not told from 0",
        source: "Montgomery, Peck and Vining, Introduction to Linear Regression Analysis (2012), 2.2",
        parameters: &[required("x", "", "a list of numbers"), required("y", "", "as many")],
        outputs: &[
            output("intercept", "", "where it meets the y axis"),
            output("slope", "", "units of y for each of x"),
            output("slope_low", "", "lower end of what holds the slope 19 times in 20"),
            output("slope_high", "", "upper end"),
            output("r2", "", "share of the variance that it explains"),
            output("residual_sd", "", "standard deviation of the distances from it"),
        ],
        evaluate: line,
    },
    RegisteredModel {
        name: "ipt_levels",
        title: "Stairs of delay over the time between packets",
        assumes: "two samples beside each other are of one level if mean ± standard deviation overlap",
        validity: "as fine as the times between packets that were measured",
        source: "Cheng (2015), 5.3",
        parameters: &[
            required("ipt", "s", "a list of times between packets"),
            required("mean", "", "mean delays"),
            required("sd", "", "their standard deviations"),
        ],
        outputs: &[
            output("levels", "", "how many there are"),
            output("per_level", "", "delay more for each level"),
            output("level<i>", "", "mean delay of a level"),
            output("threshold<i>", "s", "the time between packets from which on the level after it holds"),
        ],
        evaluate: levels,
    },
    RegisteredModel {
        name: "scaled_difference",
        title: "How far a model is from a measurement",
        assumes: "a measured value above 0",
        validity: "1 at most for models that are too low, without bound for those too high: log_ratio treats both alike",
        source: "Ansell, Assessing the Accuracy of Performance Modelling in Software Defined Networks (2017), equation 7.1",
        parameters: &[required("measured", "", "what was measured"), required("modelled", "", "what the model says")],
        outputs: &[
            output("scaled_difference", "", "(measured - modelled) / measured"),
            output("log_ratio", "", "|ln (modelled / measured)|"),
            output("error_rate", "", "|modelled - measured| / measured"),
        ],
        evaluate: |given| {
            let difference = ModelDeviation::of(given.number("measured")?, given.number("modelled")?)?;
            Ok(ModelOutcome::default()
                .with_signed("scaled_difference", "", difference.scaled)
                .with_some("log_ratio", "", difference.log_ratio)
                .with("error_rate", "", difference.error_rate))
        },
    },
    RegisteredModel {
        name: "mape",
        title: "Mean absolute error of forecasts, as a share of what came",
        assumes: "actual values other than 0",
        validity: "exact",
        source: "Hyndman and Koehler, Another look at measures of forecast accuracy (2006)",
        parameters: &[required("actual", "", "a list of what came"), required("forecast", "", "as many forecasts")],
        outputs: &[output("mape", "", "mean of |actual - forecast| / |actual|")],
        evaluate: |given| {
            let value = mape(&numbers(given, "actual")?, &numbers(given, "forecast")?)?;
            Ok(ModelOutcome::default().with("mape", "", value))
        },
    },
];

fn numbers(given: &ModelArguments, name: &str) -> Result<Vec<f64>, ModelError> {
    given.read(name, "a list of numbers")
}

fn line(given: &ModelArguments) -> Result<ModelOutcome, ModelError> {
    let line = RegressionLine::fit(&numbers(given, "x")?, &numbers(given, "y")?)?;
    let mut outcome =
        ModelOutcome::default().with_signed("intercept", "", line.intercept).with_signed("slope", "", line.slope);
    if let Some((low, high)) = line.slope_ci95 {
        outcome = outcome.with_signed("slope_low", "", low).with_signed("slope_high", "", high);
    }
    Ok(outcome.with("r2", "", line.r2).with("residual_sd", "", line.residual_sd))
}

fn levels(given: &ModelArguments) -> Result<ModelOutcome, ModelError> {
    let (gaps, means, sds) = (numbers(given, "ipt")?, numbers(given, "mean")?, numbers(given, "sd")?);
    if gaps.len() != means.len() || gaps.len() != sds.len() {
        let found = format!("{}, {} and {} values", gaps.len(), means.len(), sds.len());
        return Err(domain("ipt, mean, sd", found, "as many of each"));
    }
    let sample = |((gap_s, mean), sd): ((&f64, &f64), &f64)| GapDelaySample { gap_s: *gap_s, mean: *mean, sd: *sd };
    let samples: Vec<GapDelaySample> = gaps.iter().zip(&means).zip(&sds).map(sample).collect();
    let levels = GapLevels::find(&samples)?;
    let mut outcome = ModelOutcome::default().with("levels", "", levels.means.len() as f64).with_signed(
        "per_level",
        "",
        levels.per_level,
    );
    for (at, mean) in levels.means.iter().enumerate() {
        outcome = outcome.with(format!("level{at}"), "", *mean);
    }
    for (at, threshold) in levels.thresholds_s.iter().enumerate() {
        outcome = outcome.with(format!("threshold{at}"), "s", *threshold);
    }
    Ok(outcome)
}
