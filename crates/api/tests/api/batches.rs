//! Many intents in one request.
use crate::network::{READ, ServedNetwork};
use serde_json::{Value, json};

fn intent(key: &str, to: &str) -> Value {
    json!({"key": key, "kind": "host-to-host", "from": ["10.0.0.1"], "to": [to]})
}

#[test]
fn each_intent_of_an_array_has_its_own_answer_in_order() {
    let served = ServedNetwork::start();
    let owner = served.owner();
    let mut greedy = intent("greedy", "10.0.0.3");
    greedy["constraints"] = json!({"bandwidth": "2Gbit/s"});
    let all = json!([intent("a", "10.0.0.2"), {"key": "wrong", "kind": "none"}, greedy, intent("b", "nowhere"), 7]);
    let (status, answers) = served.ask(&owner, "POST /api/v1/intents?wait=2s", Some(&all.to_string()));
    assert_eq!((status, answers.as_array().unwrap().len()), (200, 5), "{answers}");
    assert_eq!(answers[0], json!({"key": "a", "state": "installed", "reason": ""}));
    assert_eq!((&answers[1]["key"], &answers[1]["problem"]["status"]), (&json!("wrong"), &json!(400)));
    assert!(answers[1]["problem"]["detail"].as_str().unwrap().contains("unknown variant `none`"), "{answers}");
    assert_eq!((&answers[2]["key"], &answers[2]["problem"]["status"]), (&json!("greedy"), &json!(409)));
    assert_eq!(answers[3], json!({"key": "b", "state": "failed", "reason": "no host is called nowhere"}));
    assert_eq!((&answers[4]["key"], &answers[4]["problem"]["status"]), (&Value::Null, &json!(400)));
    let keys = |intents: Value| intents.as_array().unwrap().iter().map(|one| one["key"].clone()).collect::<Vec<_>>();
    assert_eq!(keys(served.ask(&owner, "GET /api/v1/intents", None).1), ["a", "b"]);
    let quick = served.ask(&owner, "POST /api/v1/intents", Some(&json!([intent("c", "10.0.0.4")]).to_string())).1;
    assert_eq!(quick, json!([{"key": "c", "state": "compiling", "reason": ""}]), "without waiting");
    assert_eq!(served.ask(&owner, "POST /api/v1/intents", Some("[]")), (200, json!([])));
}

#[test]
fn an_array_that_is_malformed_is_refused_whole() {
    let served = ServedNetwork::start();
    let owner = served.owner();
    let begun = json!([intent("a", "10.0.0.2")]).to_string();
    for (body, said) in [
        (begun.trim_end_matches(']'), "EOF while parsing"),
        (&intent("a", "10.0.0.2").to_string(), "expected an array of intents"),
        (&format!("{begun} x"), "trailing characters"),
    ] {
        let (status, problem) = served.ask(&owner, "POST /api/v1/intents", Some(body));
        assert_eq!(status, 400, "{body}");
        assert!(problem["detail"].as_str().unwrap().contains(said), "{problem}");
    }
    assert_eq!(served.ask(&owner, "GET /api/v1/intents", None).1, json!([]));
    // Larger than what other requests may have.
    let many: Vec<_> = (0..3000).map(|number| intent(&format!("{number:0100}"), "10.0.0.2")).collect();
    let many = json!(many).to_string();
    assert!(many.len() > 300_000);
    let (status, answers) = served.ask(&owner, "POST /api/v1/intents", Some(&many));
    assert_eq!((status, answers.as_array().map(Vec::len)), (200, Some(3000)));
    let wrong = served.ask(&owner, "POST /api/v1/intents?wait=1h", Some("[]"));
    assert_eq!(
        (wrong.0, &wrong.1["detail"]),
        (400, &json!("wait: found `1h`, expected a time of at most 15s, such as 5s"))
    );
}

#[test]
fn several_are_removed_by_their_keys_or_all() {
    let served = ServedNetwork::start();
    let owner = served.owner();
    let all: Vec<_> = ["a", "b", "c", "d"].map(|key| intent(key, "10.0.0.2")).into();
    served.ask(&owner, "POST /api/v1/intents", Some(&json!(all).to_string()));
    let (status, answers) = served.ask(&owner, "DELETE /api/v1/intents?wait=1s", Some(r#"["b", "x"]"#));
    assert_eq!((status, &answers[0]), (200, &json!({"key": "b", "state": "withdrawn", "reason": ""})));
    assert_eq!((&answers[1]["key"], &answers[1]["problem"]["status"]), (&json!("x"), &json!(404)));
    let both = served.ask(&owner, "DELETE /api/v1/intents?all=true", Some("[]"));
    assert_eq!((both.0, &both.1["detail"]), (400, &json!("found all=true and a body, expected one of them")));
    let (status, problem) = served.ask(&owner, "DELETE /api/v1/intents", None);
    assert_eq!(status, 415, "nothing says that all are meant");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("or all=true")), "{problem}");
    let reader = served.holder(READ);
    assert_eq!(served.ask(&reader, "DELETE /api/v1/intents?all=true", None).0, 403);
    let (status, answers) = served.ask(&owner, "DELETE /api/v1/intents?all=true", None);
    assert_eq!((status, answers.as_array().map(Vec::len)), (200, Some(3)));
    assert_eq!(served.ask(&owner, "GET /api/v1/intents", None).1, json!([]));
}
