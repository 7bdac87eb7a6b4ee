//! Reads and writes laws in JSON and TOML.
use super::{Law, LawShape};
use crate::ModelError;
use crate::check::domain;
use serde::{Deserialize, Serialize};

/// Written form of a law: a list that starts with its name, or a table.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum LawForm {
    List(Vec<LawListItem>),
    Named(NamedLaw),
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum LawListItem {
    Number(f64),
    Text(String),
    Numbers(Vec<f64>),
    Laws(Vec<Law>),
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "law", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum NamedLaw {
    #[serde(alias = "det")]
    Constant {
        value: f64,
    },
    #[serde(alias = "exp")]
    Exponential {
        mean: f64,
    },
    Gamma {
        mean: f64,
        scv: f64,
    },
    #[serde(alias = "h2")]
    Hyperexponential {
        p: f64,
        first: f64,
        second: f64,
    },
    Uniform {
        low: f64,
        high: f64,
    },
    #[serde(alias = "empirical")]
    Lattice {
        values: Vec<f64>,
        probabilities: Vec<f64>,
    },
    Mixture {
        weights: Vec<f64>,
        laws: Vec<Law>,
    },
}

const LISTS: &str = "[\"det\", value], [\"exp\", mean], [\"gamma\", mean, scv], [\"h2\", p, mean_1, mean_2], \
                     [\"uniform\", low, high], [\"lattice\", [values], [probabilities]] or [\"mixture\", [weights], [laws]]";

impl TryFrom<LawForm> for Law {
    type Error = ModelError;

    fn try_from(form: LawForm) -> Result<Law, ModelError> {
        match form {
            LawForm::List(items) => of_list(&items),
            LawForm::Named(named) => of_named(named),
        }
    }
}

fn of_list(items: &[LawListItem]) -> Result<Law, ModelError> {
    use LawListItem::{Laws, Number, Numbers, Text};
    let Some((Text(name), rest)) = items.split_first() else {
        return Err(domain("law", "a list without a name first", LISTS));
    };
    match (name.as_str(), rest) {
        ("det" | "constant", [Number(value)]) => Law::constant(*value),
        ("exp" | "exponential", [Number(mean)]) => Law::exponential(*mean),
        ("gamma", [Number(mean), Number(scv)]) => Law::gamma(*mean, *scv),
        ("h2" | "hyperexponential", [Number(p), Number(first), Number(second)]) => {
            Law::hyperexponential(*p, *first, *second)
        }
        ("uniform", [Number(low), Number(high)]) => Law::uniform(*low, *high),
        ("lattice" | "empirical", [Numbers(values), Numbers(probabilities)]) => Law::lattice(values, probabilities),
        ("mixture", [Numbers(weights), Laws(laws)]) => mixture(weights, laws),
        (name, rest) => Err(domain("law", format!("`{name}` with {} values", rest.len()), LISTS)),
    }
}

fn of_named(named: NamedLaw) -> Result<Law, ModelError> {
    match named {
        NamedLaw::Constant { value } => Law::constant(value),
        NamedLaw::Exponential { mean } => Law::exponential(mean),
        NamedLaw::Gamma { mean, scv } => Law::gamma(mean, scv),
        NamedLaw::Hyperexponential { p, first, second } => Law::hyperexponential(p, first, second),
        NamedLaw::Uniform { low, high } => Law::uniform(low, high),
        NamedLaw::Lattice { values, probabilities } => Law::lattice(&values, &probabilities),
        NamedLaw::Mixture { weights, laws } => mixture(&weights, &laws),
    }
}

fn mixture(weights: &[f64], laws: &[Law]) -> Result<Law, ModelError> {
    if weights.len() != laws.len() {
        return Err(domain("mixture: number of weights", weights.len(), format!("as many as laws, {}", laws.len())));
    }
    Law::mixture(weights.iter().copied().zip(laws.iter().cloned()))
}

impl From<Law> for LawForm {
    fn from(law: Law) -> LawForm {
        LawForm::List(match law.parts.as_slice() {
            [part] => of_shape(&part.shape),
            parts if parts.iter().all(|part| matches!(part.shape, LawShape::Constant(_))) => vec![
                LawListItem::Text("lattice".into()),
                LawListItem::Numbers(parts.iter().map(|part| part.shape.moment(1)).collect()),
                LawListItem::Numbers(parts.iter().map(|part| part.weight).collect()),
            ],
            parts => vec![
                LawListItem::Text("mixture".into()),
                LawListItem::Numbers(parts.iter().map(|part| part.weight).collect()),
                LawListItem::Laws(parts.iter().map(|part| Law::of(part.shape)).collect()),
            ],
        })
    }
}

fn of_shape(shape: &LawShape) -> Vec<LawListItem> {
    let (name, values) = match *shape {
        LawShape::Constant(value) => ("det", vec![value]),
        LawShape::Exponential(mean) => ("exp", vec![mean]),
        LawShape::Gamma { mean, scv } => ("gamma", vec![mean, scv]),
        LawShape::Uniform { low, high } => ("uniform", vec![low, high]),
    };
    std::iter::once(LawListItem::Text(name.into())).chain(values.into_iter().map(LawListItem::Number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_the_list_is_written() {
        for (text, same) in [
            (r#"["det",1]"#, r#"{"law":"constant","value":1}"#),
            (r#"["exp",0.5]"#, r#"{"law":"exp","mean":0.5}"#),
            (r#"["gamma",0.001,0.4]"#, r#"{"law":"gamma","mean":0.001,"scv":0.4}"#),
            (r#"["h2",0.9,0.001,0.01]"#, r#"{"law":"hyperexponential","p":0.9,"first":0.001,"second":0.01}"#),
            (r#"["uniform",0,2]"#, r#"{"law":"uniform","low":0,"high":2}"#),
            (r#"["lattice",[1,2],[0.25,0.75]]"#, r#"{"law":"lattice","values":[1,2],"probabilities":[0.25,0.75]}"#),
            (
                r#"["mixture",[0.5,0.5],[["det",1],["gamma",2,3]]]"#,
                r#"{"law":"mixture","weights":[0.5,0.5],"laws":[["det",1],{"law":"gamma","mean":2,"scv":3}]}"#,
            ),
        ] {
            let law: Law = serde_json::from_str(text).unwrap();
            assert_eq!(law, serde_json::from_str(same).unwrap());
            let written = serde_json::to_string(&law).unwrap();
            assert_eq!(law, serde_json::from_str(&written).unwrap(), "{written}");
        }
    }

    #[test]
    fn what_is_no_law_is_named() {
        for text in ["[]", "[1]", r#"["gamma",1]"#, r#"["weibull",1,2]"#, r#"["exp",-1]"#, r#"["lattice",[1],[0.5]]"#] {
            assert!(serde_json::from_str::<Law>(text).is_err(), "{text}");
        }
        let error = serde_json::from_str::<Law>(r#"["weibull",1,2]"#).unwrap_err().to_string();
        assert!(error.contains("weibull") && error.contains("gamma"), "{error}");
    }
}
