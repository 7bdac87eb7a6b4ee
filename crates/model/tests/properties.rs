//! Checks properties that hold for all parameters: answers are never NaN or negative, losses are shares, more packets
//! mean more delay.
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use weir_model::registry::{ModelOutcome, find};
use weir_model::station::{SteadyState, mg1, mg1k, mm1, mm1k};
use weir_model::{Distribution, Law, ModelError};

fn law() -> impl Strategy<Value = Law> {
    let mean = || (-9.0f64..3.0).prop_map(|exponent| 10f64.powf(exponent));
    prop_oneof![
        mean().prop_map(Law::constant),
        mean().prop_map(Law::exponential),
        (mean(), 0.0f64..20.0).prop_map(|(mean, scv)| Law::gamma(mean, scv)),
        (mean(), 0.0f64..=1.0, 0.01f64..100.0).prop_map(|(mean, p, ratio)| Law::hyperexponential(
            p,
            mean,
            mean * ratio
        )),
        (mean(), 0.0f64..0.99).prop_map(|(high, part)| Law::uniform(high * part, high)),
        (mean(), 0.0f64..=1.0).prop_map(|(mean, p)| Law::lattice(&[mean, 3.0 * mean], &[p, 1.0 - p])),
    ]
    .prop_map(Result::unwrap)
}

fn quantiles_rise(delay: &Distribution) -> Result<(), TestCaseError> {
    let shares = [0.01, 0.3, 0.5, 0.9, 0.99, 0.9999];
    let rising = delay.quantiles(shares).unwrap();
    prop_assert!(rising.iter().all(|quantile| quantile.is_finite() && *quantile >= 0.0), "{rising:?}");
    prop_assert!(rising.is_sorted(), "{rising:?}");
    for (p, together) in shares.into_iter().zip(rising) {
        let alone = delay.quantile(p).unwrap();
        // The tolerance is the precision of inversions near jumps and bends.
        prop_assert!((alone - together).abs() <= 0.02 * together, "{p}: {alone} alone, {together} with others");
    }
    Ok(())
}

fn holds(state: &SteadyState) -> Result<(), TestCaseError> {
    for value in [state.sojourn_s, state.waiting_s, state.number, state.utilisation, state.loss, state.sojourn.sd()] {
        prop_assert!(value.is_finite() && value >= 0.0, "{state:?}");
    }
    prop_assert!(state.loss <= 1.0 && state.utilisation <= 1.0 + 1e-12, "{state:?}");
    prop_assert!((state.sojourn.mean() / state.sojourn_s - 1.0).abs() < 1e-6, "{state:?}");
    quantiles_rise(&state.sojourn)
}

/// Returns the answer, or none for an error that the parameters justify; other errors fail the test.
fn answered(name: &str, given: &Value) -> Result<Option<ModelOutcome>, TestCaseError> {
    let given: Map<String, Value> = given.as_object().cloned().unwrap_or_default();
    match find(name).unwrap().evaluate(&given) {
        Ok(outcome) => {
            for metric in &outcome.metrics {
                prop_assert!(metric.value.is_finite() && metric.value >= 0.0, "{name} {given:?}: {metric:?}");
                let is_share = ["loss", "f", "rho"].iter().any(|share| metric.name.starts_with(share));
                prop_assert!(!is_share || metric.value <= 1.0 + 1e-9, "{name} {given:?}: {metric:?}");
            }
            Ok(Some(outcome))
        }
        Err(error @ (ModelError::Domain { .. } | ModelError::NoConvergence { .. })) => {
            prop_assert!(false, "{name} {given:?}: {error}");
            Ok(None)
        }
        Err(ModelError::Unstable { rho, .. }) => {
            prop_assert!(rho >= 1.0, "{name} {given:?}: refused at {rho}");
            Ok(None)
        }
    }
}

proptest! {
    #[test]
    fn queues_without_limit_are_answered_up_to_saturation(law in law(), rho in 1e-6f64..0.999) {
        let state = mg1(rho / law.mean(), &law).unwrap();
        holds(&state)?;
        prop_assert!((state.utilisation - rho).abs() < 1e-9);
    }

    #[test]
    fn queues_with_a_limit_are_answered_at_any_load(law in law(), offered in 1e-3f64..20.0, places in 1usize..80) {
        let state = mg1k(offered / law.mean(), &law, places).unwrap();
        holds(&state)?;
        prop_assert!(state.number <= places as f64 + 1e-9);
        // The packets served are those not lost.
        prop_assert!((state.utilisation - offered * (1.0 - state.loss)).abs() < 1e-9 * offered.max(1.0), "{state:?}");
    }

    #[test]
    fn more_places_lose_less_and_keep_longer(law in law(), offered in 0.1f64..3.0, places in 1usize..40) {
        let at = |places| mg1k(offered / law.mean(), &law, places).unwrap();
        let (fewer, more) = (at(places), at(places + 1));
        prop_assert!(more.loss <= fewer.loss * (1.0 + 1e-9) + 1e-15 && more.sojourn_s >= fewer.sojourn_s * (1.0 - 1e-9));
    }

    #[test]
    fn exponential_service_is_the_special_case(rate in 1e-3f64..1e6, rho in 0.01f64..0.98, places in 1usize..60) {
        let law = Law::exponential(rho / rate).unwrap();
        let (general, plain) = (mg1(rate, &law).unwrap(), mm1(rate, rate / rho).unwrap());
        prop_assert!((general.sojourn_s / plain.sojourn_s - 1.0).abs() < 1e-9);
        let (general, plain) = (mg1k(rate, &law, places).unwrap(), mm1k(rate, rate / rho, places).unwrap());
        prop_assert!((general.sojourn_s / plain.sojourn_s - 1.0).abs() < 1e-9);
        prop_assert!((general.loss / plain.loss - 1.0).abs() < 1e-6, "{} {}", general.loss, plain.loss);
        let p95 = |state: &SteadyState| state.sojourn.quantile(0.95).unwrap();
        prop_assert!((p95(&general) / p95(&plain) - 1.0).abs() < 1e-5);
    }

    #[test]
    fn switch_models_answer_or_name_the_station(
        lam in 1.0f64..2000.0, p in 0.0f64..=1.0, mu_s in 10.0f64..1e6, mu_c in 1.0f64..5000.0, places in 1usize..100,
    ) {
        let mahmood = answered("mahmood", &json!({"lam": lam, "p": p, "mu_s": mu_s, "mu_c": mu_c}))?;
        let given = json!({"lam": lam, "p": p, "mu_s": mu_s, "mu_c": mu_c, "S": places});
        let jarschel = answered("jarschel", &given)?;
        if let (Some(open), Some(limited)) = (mahmood, jarschel) {
            // A controller that loses packets delays the others less.
            let t_ctrl = |outcome: &ModelOutcome| outcome.get("T_ctrl").unwrap_or(0.0);
            prop_assert!(t_ctrl(&limited) <= t_ctrl(&open) * (1.0 + 1e-9));
        }
        if p < 1.0 {
            let mut given = given;
            given["variant"] = json!("geometric");
            answered("jarschel", &given)?;
        }
        answered("base_mm1k", &json!({"lam": lam, "p": p, "s_switch": 1.0 / mu_s, "s_path": 1.0 / mu_c, "K": places}))?;
    }

    #[test]
    fn sums_and_mixtures_of_delays_have_the_moments_of_their_parts(a in law(), b in law(), p in 0.0f64..=1.0) {
        let (a, b) = (Distribution::law(&a), Distribution::law(&b));
        let sum = Distribution::sum([&a, &b]);
        prop_assert!((sum.mean() / (a.mean() + b.mean()) - 1.0).abs() < 1e-12);
        // A small variance keeps as many digits as the mean leaves.
        let sd = (a.variance() + b.variance()).sqrt();
        prop_assert!((sum.sd() - sd).abs() <= 1e-9 * (sd + sum.mean()), "{} {sd}", sum.sd());
        quantiles_rise(&sum)?;
        let mixture = Distribution::mixture(&[(p, a.clone()), (1.0 - p, b.clone())]).unwrap();
        let mean = p * a.mean() + (1.0 - p) * b.mean();
        prop_assert!((mixture.mean() / mean - 1.0).abs() < 1e-12);
        quantiles_rise(&mixture)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn processes_with_levels_answer_or_name_the_station(
        lam in 1.0f64..3000.0, p in 0.0f64..=1.0, mu in prop::array::uniform3(1.0f64..3000.0), waiting in prop::array::uniform2(0usize..5),
    ) {
        let [mu_l, mu_h, mu_c] = mu;
        let [low, high] = waiting;
        let given = json!({"lam": lam, "p": p, "mu_l": mu_l, "mu_h": mu_h, "mu_c": mu_c, "KL": low, "KH": high});
        answered("goto", &given)?;
        answered("mmpp2_m1", &json!({"r0": lam, "r1": 0.1 * mu_c, "q01": p + 0.01, "q10": mu_h, "mu": mu_l}))?;
    }

    #[test]
    fn networks_of_switches_answer_or_name_the_station(
        lam in prop::array::uniform3(0.0f64..500.0), p in prop::array::uniform3(0.0f64..=1.0), leak in 0.01f64..0.9, mu_c in 1.0f64..2000.0,
    ) {
        prop_assume!(lam.iter().sum::<f64>() > 0.0);
        let on = 1.0 - leak;
        let routing = json!([[0.0, on, 0.0], [0.0, 0.0, on], [on / 2.0, on / 2.0, 0.0]]);
        let given = json!({"lam": lam, "R": routing, "p": p, "mu": [900, 800, 700], "mu_c": mu_c, "paths": [[0, 1, 2], [1]]});
        answered("mahmood_multi", &given)?;
    }
}
