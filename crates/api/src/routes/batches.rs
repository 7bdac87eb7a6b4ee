//! Routes of many intents at a time.
use super::{ApiState, body};
use crate::Problem;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::{StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use weir_routing::intents::{IntentOutcome, IntentSpec, IntentState};
use weir_routing::request::{IntentAnswer, NetworkReply, NetworkRequest};
use weir_units::{Clock as _, TimeSpan};

/// Largest body of a request for many intents, in bytes.
pub const MAX_INTENTS_BODY: usize = 4 << 20;
/// Longest wait for intents, so that the answer arrives before the request's time is over.
const MAX_WAIT: Duration = Duration::from_secs(15);
/// Shortest and longest pause between two questions for what is left, unless an event comes first. A pause is a
/// sixteenth of the wait so far.
const POLL_TIMES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

type Shared = State<Arc<ApiState>>;

/// Parameters of the routes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchQuery {
    wait: Option<String>,
    all: Option<bool>,
}

/// Answer about one of the intents.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum BatchAnswer {
    /// State of the intent.
    Done(IntentOutcome),
    /// Problem of the intent.
    Refused {
        /// Key as it was given; null if there was none.
        key: Option<String>,
        problem: Problem,
    },
}

/// Intent of a request: read, or what is wrong with it.
type ReadIntent = Result<IntentSpec, (Option<String>, Problem)>;

/// Adds or changes the intents of an array, each by itself.
pub(super) async fn set(
    State(state): Shared,
    query: Result<Query<BatchQuery>, QueryRejection>,
    request: Request,
) -> Result<Json<Vec<BatchAnswer>>, Problem> {
    let BatchQuery { wait, all } = body::query(query)?;
    if all.is_some() {
        return Err(Problem::bad_request("all: found it in a request that adds intents, expected none"));
    }
    let wait = wait_of(wait)?;
    let read = read_intents(&body::bytes(request, MAX_INTENTS_BODY).await?)?;
    let (mut answers, mut intents) = (Vec::new(), Vec::new());
    for one in read {
        match one {
            Ok(intent) => {
                answers.push(None);
                intents.push(intent);
            }
            Err((key, problem)) => answers.push(Some(BatchAnswer::Refused { key, problem })),
        }
    }
    let keys: Vec<String> = intents.iter().map(|intent| intent.key.clone()).collect();
    let done = state.change(NetworkRequest::SetIntents { intents }, keys, wait).await?;
    let mut done = done.into_iter();
    Ok(Json(answers.into_iter().filter_map(|refused| refused.or_else(|| done.next())).collect()))
}

/// Removes the intents whose keys an array has, or all.
pub(super) async fn delete(
    State(state): Shared,
    query: Result<Query<BatchQuery>, QueryRejection>,
    request: Request,
) -> Result<Json<Vec<BatchAnswer>>, Problem> {
    let BatchQuery { wait, all } = body::query(query)?;
    let wait = wait_of(wait)?;
    let keys = if all == Some(true) {
        if request.headers().contains_key(header::CONTENT_TYPE) {
            return Err(Problem::bad_request("found all=true and a body, expected one of them"));
        }
        None
    } else {
        if !request.headers().contains_key(header::CONTENT_TYPE) {
            let detail = "found no keys, expected an array of keys (application/json), or all=true";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }
        let keys = body::bytes(request, MAX_INTENTS_BODY).await?;
        Some(serde_json::from_slice::<Vec<String>>(&keys).map_err(|error| body::unexpected(&error))?)
    };
    let named = keys.clone().unwrap_or_default();
    state.change(NetworkRequest::RemoveIntents { keys }, named, wait).await.map(Json)
}

fn wait_of(wait: Option<String>) -> Result<Option<Duration>, Problem> {
    let read = |text: String| match text.parse::<TimeSpan>() {
        Ok(TimeSpan(wait)) if wait <= MAX_WAIT => Ok(wait),
        _ => {
            let most = TimeSpan(MAX_WAIT);
            Err(Problem::bad_request(format!("wait: found `{text}`, expected a time of at most {most}, such as 5s")))
        }
    };
    wait.map(read).transpose()
}

/// Reads an array of intents. What is no array is refused as a whole, a wrong intent by itself.
fn read_intents(text: &[u8]) -> Result<Vec<ReadIntent>, Problem> {
    if let Ok(intents) = serde_json::from_slice::<Vec<IntentSpec>>(text) {
        return Ok(intents.into_iter().map(Ok).collect());
    }
    let Value::Array(values) = serde_json::from_slice(text).map_err(|error| body::unexpected(&error))? else {
        return Err(Problem::bad_request("the body is no array, expected an array of intents"));
    };
    let read = |value: Value| {
        let key = value.get("key").and_then(Value::as_str).map(str::to_owned);
        serde_json::from_value(value)
            .map_err(|error| (key, Problem::bad_request(format!("the intent is not as expected: {error}"))))
    };
    Ok(values.into_iter().map(read).collect())
}

impl ApiState {
    /// Sets or removes intents, and waits until they are decided. `keys` are those of the request, in its order; none
    /// for all.
    async fn change(
        &self,
        request: NetworkRequest,
        keys: Vec<String>,
        wait: Option<Duration>,
    ) -> Result<Vec<BatchAnswer>, Problem> {
        let NetworkReply::Intents { batch, answers } = self.backend.ask(request).await? else {
            return Err(Problem::unexpected_reply());
        };
        let mut keys = keys.into_iter();
        let answer = |answer| match (answer, keys.next()) {
            (IntentAnswer::Done(outcome), _) => BatchAnswer::Done(outcome),
            (IntentAnswer::Error { kind, message }, key) => {
                BatchAnswer::Refused { key, problem: Problem::of_network(kind, message) }
            }
        };
        let mut answers: Vec<BatchAnswer> = answers.into_iter().map(answer).collect();
        if let Some(wait) = wait {
            note_decided(&mut answers, self.wait_for(batch, wait).await?);
        }
        Ok(answers)
    }

    /// Waits until the intents of a batch are decided, or time is over. Returns those that are not installed.
    async fn wait_for(&self, batch: u64, wait: Duration) -> Result<Vec<IntentOutcome>, Problem> {
        let (started, mut news) = (self.clock.now(), self.events.told());
        loop {
            news.mark_unchanged();
            let waited = self.clock.now().since(started);
            let is_over = waited >= wait;
            match self.backend.ask(NetworkRequest::IntentBatch { batch, states: is_over }).await? {
                NetworkReply::IntentBatch { left, others } if left == 0 || is_over => return Ok(others),
                NetworkReply::IntentBatch { .. } => {}
                _ => return Err(Problem::unexpected_reply()),
            }
            let [shortest, longest] = POLL_TIMES;
            let pause = tokio::time::sleep((waited / 16).clamp(shortest, longest));
            // A batch that is decided is an event; a single intent that is gone is none.
            tokio::select! {
                Ok(()) = news.changed() => {}
                () = pause => {}
            }
        }
    }
}

/// Brings answers to the states that intents have now: installed, unless they are among the others.
fn note_decided(answers: &mut [BatchAnswer], others: Vec<IntentOutcome>) {
    let mut others: HashMap<String, IntentOutcome> =
        others.into_iter().map(|outcome| (outcome.key.clone(), outcome)).collect();
    for answer in answers {
        let BatchAnswer::Done(outcome) = answer else { continue };
        match others.remove(&outcome.key) {
            Some(other) => *outcome = other,
            None if outcome.state == IntentState::Withdrawn => {}
            None => (outcome.state, outcome.reason) = (IntentState::Installed, String::new()),
        }
    }
}
