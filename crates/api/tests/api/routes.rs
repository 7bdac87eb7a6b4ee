//! Each route, with what it answers and refuses.
use crate::network::{SWITCHES, ServedNetwork};
use serde_json::json;

const WEB: &str = r#"{"kind": "host-to-host", "from": ["10.0.0.1"], "to": ["10.0.0.2"], "traffic": "tcp,tp_dst=80",
    "constraints": {"bandwidth": "10Mbit/s", "delay": {"most": "5ms", "percentile": 99}, "protected": true}}"#;

#[test]
fn the_network_is_shown() {
    let served = ServedNetwork::start();
    let owner = served.owner();
    let (status, state) = served.ask(&owner, "GET /api/v1/network", None);
    assert_eq!((status, state["switches"].as_array().unwrap().len() as u64), (200, SWITCHES));
    assert_eq!(state["switches"][0]["dpid"], "0000000000000001");
    for (path, field) in [
        ("/api/v1/switches", "switches"),
        ("/api/v1/links", "links"),
        ("/api/v1/hosts", "hosts"),
        ("/api/v1/intents", "intents"),
        ("/api/v1/counters", "counters"),
    ] {
        assert_eq!(served.ask(&owner, &format!("GET {path}"), None), (200, state[field].clone()), "{path}");
    }
    assert_eq!(
        state["hosts"][0],
        json!({"mac": "02:00:00:00:00:01", "at": "1:3", "ips": ["10.0.0.1"], "name": "alice", "seen_s": 0.5})
    );
    assert_eq!(served.ask(&owner, "GET /api/v1/health", None), (200, json!({"status": "ok"})));
}

#[test]
fn the_topology_is_node_link_json() {
    let served = ServedNetwork::start();
    let (status, graph) = served.ask(&served.owner(), "GET /api/v1/topology", None);
    assert_eq!(status, 200);
    assert_eq!((graph["nodes"].as_array().unwrap().len(), graph["edges"].as_array().unwrap().len()), (4, 4));
    assert_eq!((&graph["nodes"][2]["dpid"], &graph["edges"][0]["ports"]), (&json!(3), &json!([1, 2])));
}

#[test]
fn an_intent_is_added_changed_and_removed() {
    let served = ServedNetwork::start();
    let owner = served.owner();
    let (status, added) = served.ask(&owner, "PUT /api/v1/intents/web%2F1", Some(WEB));
    assert_eq!((status, &added["key"], &added["state"]), (201, &json!("web/1"), &json!("installed")));
    assert_eq!(added["constraints"]["delay"], json!({"most": "5ms", "percentile": 99.0}));
    assert_eq!(served.ask(&owner, "PUT /api/v1/intents/web%2F1", Some(WEB)), (200, added.clone()), "idempotent");
    assert_eq!(served.ask(&owner, "GET /api/v1/intents/web%2F1", None), (200, added.clone()));
    assert_eq!(served.ask(&owner, "GET /api/v1/intents", None), (200, json!([added])));
    // What was shown can be asked for.
    let again = json!({"key": "web/1", "kind": added["kind"], "from": added["from"], "to": added["to"],
        "traffic": added["traffic"], "constraints": added["constraints"]});
    assert_eq!(served.ask(&owner, "PUT /api/v1/intents/web%2F1", Some(&again.to_string())), (200, added));
    assert_eq!(served.ask(&owner, "DELETE /api/v1/intents/web%2F1", None).0, 204);
    for request in ["GET /api/v1/intents/web%2F1", "DELETE /api/v1/intents/web%2F1"] {
        let (status, problem) = served.ask(&owner, request, None);
        assert_eq!((status, &problem["detail"]), (404, &json!("there is no intent with the key `web/1`")));
    }
}

#[test]
fn a_delay_is_a_percentile_or_the_worst_case() {
    let served = ServedNetwork::start();
    let body = WEB.replace("\"percentile\": 99", "\"worst-case\": null");
    let (status, added) = served.ask(&served.owner(), "PUT /api/v1/intents/w", Some(&body));
    assert_eq!((status, &added["constraints"]["delay"]), (201, &json!({"most": "5ms", "worst-case": null})));
}

#[test]
fn intents_that_are_wrong_are_refused_with_a_reason() {
    let served = ServedNetwork::start();
    for (body, status, said) in [
        ("{", 400, "EOF"),
        ("[]", 400, "found no JSON object"),
        ("{}", 400, "missing field `kind`"),
        (&WEB.replace("host-to-host", "all-to-all"), 400, "unknown variant `all-to-all`"),
        (&WEB.replace("\"traffic\"", "\"trafic\""), 400, "unknown field `trafic`"),
        (&WEB.replace("10Mbit/s", "10"), 400, "Mbit/s"),
        (&WEB.replace('{', "{\"key\": \"other\", "), 400, "key: found \"other\" in the body, expected `a`"),
        (&WEB.replace("10Mbit/s", "10Gbit/s"), 409, "no way has so much bandwidth left"),
    ] {
        let (found, problem) = served.ask(&served.owner(), "PUT /api/v1/intents/a", Some(body));
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(found == status && detail.contains(said), "{body}: {problem}");
    }
    assert_eq!(served.ask(&served.owner(), "GET /api/v1/intents", None), (200, json!([])), "nothing half done");
}

#[test]
fn ways_are_returned() {
    let served = ServedNetwork::start();
    let ask = |query: &str| served.ask(&served.owner(), &format!("GET /api/v1/paths?{query}"), None);
    let (status, ways) = ask("from=10.0.0.1&to=alice&most=1");
    assert_eq!((status, ways.as_array().unwrap().len(), &ways[0]["ports"][1]), (200, 1, &json!("1:1")));
    assert_eq!(ask("from=10.0.0.1&to=alice").1.as_array().unwrap().len(), 2);
    for (query, status, said) in [
        ("from=nobody&to=alice", 404, "no host is called nobody"),
        ("to=alice", 400, "the parameters are not as expected: missing field `from`"),
        ("from=a&to=b&most=0", 400, "most: found 0, expected 1 to 64"),
        ("from=a&to=b&most=x", 400, "most"),
        ("from=a&to=b&less=1", 400, "unknown field `less`"),
    ] {
        let (found, problem) = ask(query);
        assert!(found == status && problem["detail"].as_str().unwrap().contains(said), "{query}: {problem}");
    }
}

#[test]
fn a_case_is_thought_through() {
    let served = ServedNetwork::start();
    let ask = |body: &str| served.ask(&served.owner(), "POST /api/v1/what-if", Some(body));
    served.ask(&served.owner(), "PUT /api/v1/intents/a", Some(WEB));
    for case in [
        r#"{"case": "link-fails", "at": "1:1"}"#.to_owned(),
        r#"{"case": "switch-fails", "dpid": "2"}"#.to_owned(),
        format!(r#"{{"case": "intent", "intent": {}}}"#, WEB.replacen('{', "{\"key\": \"b\", ", 1)),
    ] {
        let (status, effect) = ask(&case);
        assert_eq!((status, &effect["cut_off"]), (200, &json!(["02:00:00:00:00:03"])), "{case}: {effect}");
        assert_eq!((&effect["overloaded"], &effect["intents"][0]["key"]), (&json!(["2:1"]), &json!("a")));
    }
    for (case, said) in [
        (r#"{"case": "switch-fails", "dpid": "ff"}"#, "there is no switch ff"),
        (r#"{"case": "link-fails", "at": "1"}"#, "expected DPID:PORT"),
        (r#"{"case": "flood"}"#, "unknown variant `flood`"),
    ] {
        let (status, problem) = ask(case);
        assert!(status == 400 && problem["detail"].as_str().unwrap().contains(said), "{problem}");
    }
}

#[test]
fn what_is_not_there_is_told() {
    let served = ServedNetwork::start();
    let owner = served.owner();
    let (status, problem) = served.ask(&owner, "GET /api/v1/swiches", None);
    assert_eq!((status, &problem["title"]), (404, &json!("Not Found")));
    assert!(problem["detail"].as_str().unwrap().contains("`/api/v1/swiches`"), "{problem}");
    assert_eq!(served.ask(&owner, "DELETE /api/v1/network", None).0, 405);
    assert_eq!(served.ask(&owner, "GET /api/v1/intents/%ff", None).0, 400, "not UTF-8");
    served.network.break_down("the controller stops");
    let (status, problem) = served.ask(&owner, "GET /api/v1/network", None);
    assert_eq!((status, &problem["detail"]), (503, &json!("the controller stops")));
    assert_eq!(served.ask(&owner, "GET /api/v1/health", None).0, 503);
}
