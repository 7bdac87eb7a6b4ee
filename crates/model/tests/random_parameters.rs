//! Checks that models of switches and control paths answer any parameters with valid numbers or with a reason.
use proptest::prelude::*;
use serde_json::{Value, json};
use weir_model::ModelError;
use weir_model::registry::{ModelOutcome, find};

/// Draws rates and times from tiny to huge, and invalid values.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => (-7.0..5.0f64).prop_map(|power| 10f64.powf(power)),
        1 => prop::sample::select(vec![0.0, -1.0, 1e-300, 1e300, 1.0]),
    ]
}

fn share() -> impl Strategy<Value = f64> {
    prop_oneof![8 => 0.0..1.0f64, 1 => prop::sample::select(vec![0.0, 1.0, 1.5, 1e-12])]
}

fn places() -> impl Strategy<Value = Value> {
    prop_oneof![Just(Value::Null), (0..60u32).prop_map(Value::from)]
}

fn law() -> impl Strategy<Value = Value> {
    prop_oneof![
        number().prop_map(|value| json!(["det", value])),
        number().prop_map(|mean| json!(["exp", mean])),
        (number(), 0.05..4.0f64).prop_map(|(mean, scv)| json!(["gamma", mean, scv])),
        (share(), number(), number()).prop_map(|(p, first, second)| json!(["h2", p, first, second])),
    ]
}

fn ask(name: &str, given: &Value) -> Result<ModelOutcome, ModelError> {
    find(name).unwrap().evaluate(given.as_object().unwrap())
}

/// Checks an answer. The registry refuses invalid results as NO_CONVERGENCE: only parameters near the limits of
/// floating point may cause that.
fn is_answer(name: &str, given: &Value) -> Result<(), TestCaseError> {
    match ask(name, given) {
        Ok(outcome) => {
            prop_assert!(!outcome.metrics.is_empty());
            for metric in &outcome.metrics {
                prop_assert!(metric.value.is_finite(), "{name} {given}: {} is {}", metric.name, metric.value);
                let is_share = metric.name == "loss" || metric.name == "f" || metric.name.starts_with("p_");
                prop_assert!(
                    !is_share || (0.0..=1.0).contains(&metric.value),
                    "{name} {given}: {} is {}",
                    metric.name,
                    metric.value
                );
            }
        }
        Err(error) => prop_assert!(["DOMAIN", "UNSTABLE", "NO_CONVERGENCE"].contains(&error.kind())),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn control_paths(
        (lam, p, dp) in (number(), share(), law()),
        (idle, cap, scv, write) in (number(), number(), 0.0..3.0f64, prop::option::of(number())),
        (ain, ctl, aout) in (law(), law(), law()),
        (shared, first, second) in (any::<bool>(), places(), places()),
    ) {
        is_answer("lcs", &json!({"lam": lam, "p": p, "dp": dp, "D0": idle, "cap": cap, "scv": scv, "K": first, "B": write}))?;
        is_answer("sdn4q", &json!({
            "lam": lam, "p": p, "dp": dp, "ain": ain, "ctl": ctl, "aout": aout, "shared": shared, "K_agent": first, "K_ctl": second
        }))?;
    }

    #[test]
    fn mechanisms(
        (lam, time, other, length) in (number(), number(), number(), number()),
        (p, count, stages) in (share(), 0..300u32, 0..9u32),
    ) {
        is_answer("interference", &json!({"lam": lam, "sd": time, "lam_b": other, "B": length, "x": time, "p": p}))?;
        is_answer("tcp_bulk", &json!({"share": lam, "rtt": time, "buffer": other, "duration": length, "window": 100 * count}))?;
        is_answer("udp_burst", &json!({"phi": lam, "N": count, "r": other, "D": time}))?;
        is_answer("udp_burst", &json!({"phi": lam, "N": count, "r": other, "D": time, "kind": "det"}))?;
        is_answer("udp_burst", &json!({"phi": lam, "N": count, "r": other, "mu_c": length}))?;
        is_answer("batch_stage", &json!({"lam": lam, "B": count, "theta": time}))?;
        is_answer("poll_rtt", &json!({"F": other, "tau": time, "stages": stages, "base": length}))?;
        is_answer("tick", &json!({"lam": lam, "delta": time, "m": stages}))?;
    }

    #[test]
    fn changes_of_tables(
        (e, s, q, most) in (0..1_000_000u64, 0..100_000u64, 0..200u32, 0..200u32),
        (per_entry, shift, write, search) in (number(), number(), number(), number()),
        speedup in prop::array::uniform3(-2.0..2.0f64),
    ) {
        is_answer("flow_add", &json!({"e": e, "s": s, "q": q, "P": per_entry, "R": speedup, "Q": most, "S": shift, "W": write}))?;
        let table = json!({"e": e, "m": s, "P": per_entry, "R": speedup, "Q": most, "M": search, "W": write});
        is_answer("flow_mod", &json!({"tables": [table, table], "q": q}))?;
        is_answer("flow_del", &json!({"tables": [{"m": s, "M": search, "W": write}]}))?;
        is_answer("fwd_delay", &json!({"beta": write, "ga": search, "ge": -shift, "gb": per_entry, "dlevel": -1, "de": s, "db": 64}))?;
    }

    #[test]
    fn fits(points in prop::collection::vec((number(), number(), number()), 0..12)) {
        let column = |of: fn(&(f64, f64, f64)) -> f64| points.iter().map(of).collect::<Vec<_>>();
        let (x, y, z) = (column(|point| point.0), column(|point| point.1), column(|point| point.2));
        is_answer("fit_line", &json!({"x": x, "y": y}))?;
        is_answer("ipt_levels", &json!({"ipt": x, "mean": y, "sd": z}))?;
        is_answer("mape", &json!({"actual": x, "forecast": y}))?;
        if let Some((measured, modelled, _)) = points.first() {
            is_answer("scaled_difference", &json!({"measured": measured, "modelled": modelled}))?;
        }
    }

    /// In a model's usual range every evaluation converges, and more traffic never means less delay.
    #[test]
    fn delays_grow_with_traffic(
        (p, load, scv) in (0.05..1.0f64, 0.05..0.9f64, 0.1..2.0f64),
        (rest, write) in (0.0..2.0f64, prop::option::of(0.0001..0.002f64)),
    ) {
        let at = |load: f64| {
            let rate = load * 70.0 / p;
            let paths = [
                ("lcs", json!({"lam": rate, "p": p, "dp": ["det", 1e-5], "D0": (1.0 + rest) / 70.0, "cap": 70, "scv": scv, "B": write})),
                ("sdn4q", json!({
                    "lam": rate, "p": p, "dp": ["det", 1e-5], "ain": ["gamma", 0.006, scv], "ctl": ["gamma", 1.0 / 70.0, scv], "aout": ["gamma", 0.006, scv]
                })),
            ];
            paths.map(|(name, given)| ask(name, &given))
        };
        for (less, more) in at(load).into_iter().zip(at(load * 1.05)) {
            let (less, more) = (less.unwrap(), more.unwrap());
            for metric in ["T", "T_ctrl", "T_data", "p99"] {
                let (less, more) = (less.get(metric).unwrap(), more.get(metric).unwrap());
                prop_assert!(more > less * (1.0 - 1e-6), "{metric}: {less} and {more}");
            }
            prop_assert!(less.get("p50") <= less.get("p95") && less.get("p95") <= less.get("p99"));
        }
    }
}
