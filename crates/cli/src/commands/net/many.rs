//! `weir net intent add --file` and `remove` of several: many intents in one request.
use super::connection::NetClient;
use super::intent::{NOT_INSTALLED, poll_pauses};
use super::{OutputForm, outcomes, rows};
use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use weir_api::MAX_INTENTS_BODY;
use weir_routing::intents::IntentState;
use weir_terminal::output;
use weir_units::{Clock as _, SystemClock, TimeSpan};

/// Longest wait of one request. The interface accepts no longer one.
const REQUEST_WAIT: Duration = Duration::from_secs(15);
/// Largest file in bytes.
const MAX_FILE: u64 = MAX_INTENTS_BODY as u64;

/// Adds the intents of a file, and waits for them if `wait` says for how long.
///
/// # Errors
/// The file cannot be read, has something other than intents, or the request is refused as a whole.
pub(super) fn add(
    client: &NetClient,
    form: OutputForm,
    file: &Path,
    wait: Option<Duration>,
) -> anyhow::Result<ExitCode> {
    let intents =
        read(file).and_then(|text| intents_of(&text)).with_context(|| format!("--file {}", file.display()))?;
    let clock = SystemClock::start();
    let deadline = clock.now() + wait.unwrap_or_default();
    let query = wait.map_or_else(String::new, |wait| format!("?wait={}", TimeSpan(wait.min(REQUEST_WAIT))));
    let mut answers = client.send("POST", &format!("/intents{query}"), Some(&intents))?;
    for pause in poll_pauses() {
        if wait.is_none() || clock.now() >= deadline || !refresh(client, &mut answers)? {
            break;
        }
        client.pause(pause);
    }
    print(form, &answers)?;
    let (all, installed, refused) = counts(&answers);
    let failed = if wait.is_some() { installed < all } else { refused > 0 };
    Ok(if failed { ExitCode::from(NOT_INSTALLED) } else { ExitCode::SUCCESS })
}

/// Removes intents; all if no keys are given.
///
/// # Errors
/// The request is refused as a whole.
pub(super) fn remove(client: &NetClient, form: OutputForm, keys: Option<&[String]>) -> anyhow::Result<ExitCode> {
    let answers = match keys {
        Some(keys) => client.send("DELETE", "/intents", Some(&json!(keys)))?,
        None => client.send("DELETE", "/intents?all=true", None)?,
    };
    print(form, &answers)?;
    let (.., refused) = counts(&answers);
    Ok(if refused > 0 { ExitCode::from(NOT_INSTALLED) } else { ExitCode::SUCCESS })
}

fn read(file: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin().lock().take(MAX_FILE + 1).read_to_string(&mut text)?;
    } else {
        std::fs::File::open(file)?.take(MAX_FILE + 1).read_to_string(&mut text)?;
    }
    // The interface closes the connection of a request that is too long, so that its answer may not be seen.
    ensure!(
        text.len() as u64 <= MAX_FILE,
        "found more than {MAX_FILE} bytes, the most of one request; divide the file"
    );
    Ok(text)
}

/// Returns the intents of a text as an array.
fn intents_of(text: &str) -> anyhow::Result<Value> {
    let expected = "expected an intent or an array of intents";
    let value: Value = serde_json::from_str(text).with_context(|| format!("found no JSON, {expected}"))?;
    match value {
        Value::Array(_) => Ok(value),
        Value::Object(_) => Ok(json!([value])),
        other => bail!("found {other}, {expected}"),
    }
}

/// Asks again for the states of intents that are not decided. Returns true if there were some.
fn refresh(client: &NetClient, answers: &mut Value) -> anyhow::Result<bool> {
    let is_open = |answer: &Value| serde_json::from_value(answer["state"].clone()).is_ok_and(IntentState::is_undecided);
    if !answers.as_array().into_iter().flatten().any(is_open) {
        return Ok(false);
    }
    let all = client.get("/intents")?;
    let by_key = |status: &Value| Some((status["key"].as_str()?.to_owned(), status.clone()));
    let states: HashMap<String, Value> = all.as_array().into_iter().flatten().filter_map(by_key).collect();
    for answer in answers.as_array_mut().into_iter().flatten().filter(|answer| is_open(answer)) {
        match answer["key"].as_str().and_then(|key| states.get(key)) {
            Some(status) => (answer["state"], answer["reason"]) = (status["state"].clone(), status["reason"].clone()),
            None => (answer["state"], answer["reason"]) = (json!(IntentState::Withdrawn), json!("it was removed")),
        }
    }
    Ok(true)
}

/// Returns the number of answers, of installed intents and of refused ones.
fn counts(answers: &Value) -> (usize, usize, usize) {
    let all = answers.as_array().map_or(&[][..], Vec::as_slice);
    let count = |is: fn(&&Value) -> bool| all.iter().filter(is).count();
    (all.len(), count(|answer| answer["state"] == "installed"), count(|answer| answer.get("problem").is_some()))
}

fn print(form: OutputForm, answers: &Value) -> anyhow::Result<()> {
    output::print(&match (form.json, form.csv) {
        (true, _) => format!("{answers:#}\n"),
        (_, true) => rows::outcomes(answers),
        _ => outcomes::outcomes(answers),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_intent_or_several() {
        assert_eq!(intents_of(r#"{"key":"a"}"#).unwrap(), json!([{"key": "a"}]));
        assert_eq!(intents_of(r#"[{"key":"a"},{}]"#).unwrap(), json!([{"key": "a"}, {}]));
        assert_eq!(intents_of("7").unwrap_err().to_string(), "found 7, expected an intent or an array of intents");
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("long.json");
        std::fs::write(&long, vec![b' '; MAX_INTENTS_BODY + 1]).unwrap();
        assert!(read(&long).unwrap_err().to_string().contains("divide the file"));
        assert!(format!("{:#}", intents_of("key = 1").unwrap_err()).starts_with("found no JSON, expected an intent"));
    }

    #[test]
    fn answers_are_counted_and_shown() {
        let answers = json!([
            {"key": "a", "state": "installed", "reason": ""},
            {"key": "b", "state": "failed", "reason": "to: no host `h9` is known"},
            {"key": "c", "problem": {"status": 400, "title": "Bad Request", "detail": "`from`: found 0 ends"}},
            {"key": "d", "state": "installed", "reason": ""},
        ]);
        assert_eq!(counts(&answers), (4, 2, 1));
        let text = outcomes::outcomes(&answers);
        assert!(text.starts_with("4 intents: 2 installed, 1 failed, 1 refused\n"), "{text}");
        assert!(text.contains("no host `h9` is known") && text.contains("found 0 ends"), "{text}");
        let csv = rows::outcomes(&answers);
        assert_eq!(csv.lines().next(), Some("key,state,reason,problem"));
        assert_eq!(csv.lines().count(), 5, "{csv}");
    }
}
