//! The description of the interface against real answers: each has the described fields, and no others.
use crate::network::ServedNetwork;
use serde_json::{Value, json};

/// Returns what differs between a value and its schema (JSON Schema, as far as the description uses it).
fn differences(schema: &Value, value: &Value, schemas: &Value, place: &str, found: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        assert!(schemas[name].is_object(), "no schema {name}");
        return differences(&schemas[name], value, schemas, place, found);
    }
    for group in ["anyOf", "oneOf"] {
        if let Some(each) = schema[group].as_array() {
            let fits = |one: &Value| {
                let mut none = Vec::new();
                differences(one, value, schemas, place, &mut none);
                none.is_empty()
            };
            if !each.iter().any(fits) {
                found.push(format!("{place}: {value} fits none of {group}"));
            }
            return;
        }
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    let fits = |kind: &Value| match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        _ => false,
    };
    if !kinds.iter().any(fits) {
        found.push(format!("{place}: {value} is no {kinds:?}"));
    }
    if let Some(values) = schema["enum"].as_array().filter(|values| !values.contains(value)) {
        found.push(format!("{place}: {value} is none of {values:?}"));
    }
    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
        differences(&schema["items"], item, schemas, &format!("{place}[{number}]"), found);
    }
    let Some(fields) = value.as_object() else { return };
    for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(required) {
            found.push(format!("{place}: no field {required}"));
        }
    }
    for (name, field) in fields {
        let place = format!("{place}.{name}");
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (Value::Null, Value::Null) if schema["properties"].is_null() => {}
            (Value::Null, Value::Null) => found.push(format!("{place}: not described")),
            (Value::Null, any) => differences(any, field, schemas, &place, found),
            (described, _) => differences(described, field, schemas, &place, found),
        }
    }
}

fn check(document: &Value, schema: &Value, value: &Value, place: &str) {
    let mut found = Vec::new();
    differences(schema, value, &document["components"]["schemas"], place, &mut found);
    assert!(found.is_empty(), "{found:#?}");
}

/// Schema of an answer of the description.
fn answer<'a>(document: &'a Value, path: &str, method: &str, status: &str) -> &'a Value {
    let content = &document["paths"][path][method]["responses"][status]["content"];
    let schema = &content["application/json"]["schema"];
    assert!(schema.is_object(), "{method} {path} {status} is not described");
    schema
}

#[test]
fn answers_are_as_described() {
    let served = ServedNetwork::start();
    let owner = served.owner();
    let document = served.ask(&owner, "GET /api/v1/openapi.json", None).1;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"), "{}", document["openapi"]);
    let constraints = json!({"bandwidth": "10Mbit/s", "delay": {"most": "5ms", "worst-case": null},
        "waypoints": ["2"], "avoid": ["3", "4:1"], "priority": 10, "protected": true});
    let intent = json!({"kind": "host-to-host", "from": ["10.0.0.1"], "to": ["10.0.0.2"], "constraints": constraints});
    check(&document, &document["components"]["schemas"]["Intent"], &intent, "intent");
    let (status, added) = served.ask(&owner, "PUT /api/v1/intents/a", Some(&intent.to_string()));
    assert_eq!(status, 201);
    check(&document, answer(&document, "/api/v1/intents/{key}", "put", "201"), &added, "put");
    let gets = document["paths"].as_object().unwrap().iter().filter(|(_, item)| item["get"].is_object());
    let mut asked = 0;
    for (path, item) in gets {
        let content = &item["get"]["responses"]["200"]["content"]["application/json"];
        if content.is_null() {
            continue;
        }
        let full = path.replace("{key}", "a");
        let query = if path.ends_with("/paths") { "?from=a&to=b" } else { "" };
        let (status, value) = served.ask(&owner, &format!("GET {full}{query}"), None);
        assert_eq!(status, 200, "{path}");
        check(&document, &content["schema"], &value, path);
        asked += 1;
    }
    assert_eq!(asked, 11, "routes with JSON");
    let many =
        json!([{"key": "b", "kind": "host-to-host", "from": ["a"], "to": ["nowhere"]}, {"key": "c"}]).to_string();
    let answers = served.ask(&owner, "POST /api/v1/intents?wait=1s", Some(&many)).1;
    check(&document, answer(&document, "/api/v1/intents", "post", "200"), &answers, "post");
    let answers = served.ask(&owner, "DELETE /api/v1/intents", Some(r#"["b", "none"]"#)).1;
    check(&document, answer(&document, "/api/v1/intents", "delete", "200"), &answers, "delete");
    let case = json!({"case": "link-fails", "at": "1:1"});
    check(&document, &document["components"]["schemas"]["WhatIf"], &case, "case");
    let effect = served.ask(&owner, "POST /api/v1/what-if", Some(&case.to_string())).1;
    check(&document, answer(&document, "/api/v1/what-if", "post", "200"), &effect, "what-if");
    let problem = served.ask(&owner, "GET /api/v1/intents/none", None).1;
    check(&document, &document["components"]["schemas"]["Problem"], &problem, "problem");
}

#[test]
fn a_wrong_answer_would_be_noticed() {
    let served = ServedNetwork::start();
    let document = served.ask(&served.owner(), "GET /api/v1/openapi.json", None).1;
    let schema = &document["components"]["schemas"]["Port"];
    for (port, said) in [
        (json!({"number": 1, "name": "a", "up": true}), "no field rate_kbps"),
        (json!({"number": 1, "name": "a", "up": 1, "rate_kbps": 0}), ".up: 1 is no"),
        (json!({"number": 1, "name": "a", "up": true, "rate_kbps": 0, "x": 1}), ".x: not described"),
    ] {
        let mut found = Vec::new();
        differences(schema, &port, &document["components"]["schemas"], "port", &mut found);
        assert!(found.len() == 1 && found[0].contains(said), "{found:?}");
    }
}
