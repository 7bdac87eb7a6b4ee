//! Schemas of what requests and answers contain. A test compares them with answers of the server.
use serde_json::Value;
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, ObjectBuilder, OneOfBuilder, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr, Schema};

type AnySchema = RefOr<Schema>;

/// Returns a reference to a schema.
pub(super) fn of(name: &str) -> AnySchema {
    Ref::from_schema_name(name).into()
}

/// Returns the schema of a list.
pub(super) fn list(of_what: AnySchema) -> AnySchema {
    RefOr::T(ArrayBuilder::new().items(of_what).build().into())
}

/// Returns the schema of a plain value.
pub(super) fn plain(kind: Type, about: &str) -> AnySchema {
    RefOr::T(ObjectBuilder::new().schema_type(kind).description(Some(about)).build().into())
}

pub(super) fn text(about: &str) -> AnySchema {
    plain(Type::String, about)
}

pub(super) fn integer(about: &str) -> AnySchema {
    plain(Type::Integer, about)
}

fn number(about: &str) -> AnySchema {
    plain(Type::Number, about)
}

pub(super) fn truth(about: &str) -> AnySchema {
    plain(Type::Boolean, about)
}

/// Returns the schema of a value that may be null.
fn optional(kind: Type, about: &str) -> AnySchema {
    let kind: SchemaType = [kind, Type::Null].into_iter().collect();
    RefOr::T(ObjectBuilder::new().schema_type(kind).description(Some(about)).build().into())
}

fn or_null(schema: AnySchema) -> AnySchema {
    let null = ObjectBuilder::new().schema_type(Type::Null).build();
    RefOr::T(AnyOfBuilder::new().item(schema).item(null).build().into())
}

fn one_of_texts(about: &str, texts: &[&str]) -> AnySchema {
    let values: Vec<Value> = texts.iter().map(|text| (*text).into()).collect();
    let schema = ObjectBuilder::new().schema_type(Type::String).description(Some(about)).enum_values(Some(values));
    RefOr::T(schema.build().into())
}

/// Fields of an object: name, schema, and whether it is always there.
type Fields = Vec<(&'static str, AnySchema, bool)>;

fn object(about: &str, fields: Fields) -> AnySchema {
    let object = ObjectBuilder::new().schema_type(Type::Object).description(Some(about));
    let object = fields.into_iter().fold(object, |object, (name, schema, required)| {
        let object = object.property(name, schema);
        if required { object.required(name) } else { object }
    });
    RefOr::T(object.build().into())
}

/// Returns an object whose fields are all always there.
fn full(about: &str, fields: Vec<(&'static str, AnySchema)>) -> AnySchema {
    object(about, fields.into_iter().map(|(name, schema)| (name, schema, true)).collect())
}

fn counters() -> AnySchema {
    let schema = ObjectBuilder::new().schema_type(Type::Object).description(Some("Counters by name"));
    RefOr::T(schema.additional_properties(Some(integer("Count"))).build().into())
}

/// Returns all schemas with their names.
pub(super) fn all() -> Vec<(&'static str, AnySchema)> {
    let mut all = network();
    all.extend(intents());
    all.extend(what_if());
    all.push((
        "Problem",
        object(
            "Error (RFC 9457)",
            vec![
                ("status", integer("HTTP status"), true),
                ("title", text("Phrase of the status"), true),
                ("detail", text("What was found, and what is expected"), true),
                ("retry_after_s", integer("Seconds after which the client may try again"), false),
            ],
        ),
    ));
    all
}

fn network() -> Vec<(&'static str, AnySchema)> {
    let at = |about: &str| text(&format!("{about}, as DPID:PORT with the datapath id in hexadecimal"));
    vec![
        (
            "Network",
            full(
                "The whole network",
                vec![
                    ("time_s", number("Seconds since the start of the controller")),
                    ("last_event", integer("Number of the newest event")),
                    ("switches", list(of("Switch"))),
                    ("links", list(of("Link"))),
                    ("hosts", list(of("Host"))),
                    ("intents", list(of("IntentStatus"))),
                    ("counters", counters()),
                ],
            ),
        ),
        (
            "Switch",
            full("A switch", vec![("dpid", text("Datapath id, 16 hexadecimal digits")), ("ports", list(of("Port")))]),
        ),
        (
            "Port",
            full(
                "A port of a switch",
                vec![
                    ("number", integer("Number of the port")),
                    ("name", text("Name of the port")),
                    ("up", truth("True if it has a link and is not switched off")),
                    ("rate_kbps", integer("Rate that it states, in kbit/s; 0 if it states none")),
                ],
            ),
        ),
        (
            "Link",
            full(
                "A link between two switches",
                vec![
                    ("from", at("Lesser end")),
                    ("to", at("Greater end")),
                    ("delay_us", optional(Type::Number, "Time that a packet takes over it, in microseconds")),
                    ("damped", truth("True if it failed again and again, and is used only where no other way is")),
                    ("load_bps", or_null(list(number("Measured load in bit/s, from the lesser end, then back")))),
                    ("reserved_bps", or_null(list(integer("Reserved bandwidth in bit/s, likewise")))),
                    ("indirect", truth("True if it leads through switches of others")),
                    ("blocked", truth("True if it is not used, because it leads where other links lead")),
                ],
            ),
        ),
        (
            "Host",
            full(
                "A host",
                vec![
                    ("mac", text("Ethernet address")),
                    ("at", at("Port to which it is connected")),
                    ("ips", list(text("IP address"))),
                    ("name", optional(Type::String, "Name that it gave itself (DHCP)")),
                    ("seen_s", number("Seconds since the controller saw a packet of it")),
                ],
            ),
        ),
        (
            "Path",
            full(
                "A way through the network",
                vec![
                    ("ports", list(at("Port, in the order of the way: into and out of each switch"))),
                    ("delay_us", optional(Type::Number, "Delay of its links in microseconds")),
                    ("free_bps", optional(Type::Integer, "Bandwidth that intents have left on it, in bit/s")),
                ],
            ),
        ),
        (
            "Event",
            full(
                "An event",
                vec![
                    ("number", integer("Number of the event, from 1 since the start of the controller")),
                    ("time_s", number("Seconds since the start of the controller")),
                    ("kind", text("Kind of the event, such as host-moved")),
                    ("text", text("What happened, in words")),
                    ("alarm", truth("True if the operator should look at it")),
                ],
            ),
        ),
    ]
}

/// Returns the fields of an intent; `required` if an answer has them all.
fn intent_fields(required: bool) -> Fields {
    let ends = "Hosts (Ethernet address, IP address or name) or ports (DPID:PORT)";
    let kinds = ["host-to-host", "point-to-point", "many-to-one", "one-to-many"];
    vec![
        ("key", text("Name of the intent, chosen by the client; as in the path"), required),
        ("kind", one_of_texts("Form of the intent", &kinds), true),
        ("from", list(text(ends)), true),
        ("to", list(text(ends)), true),
        ("traffic", text("Match in the text of ovs-ofctl, such as tcp,tp_dst=80; empty for all packets"), required),
        ("constraints", of("IntentConstraints"), required),
    ]
}

fn intents() -> Vec<(&'static str, AnySchema)> {
    let states = ["submitted", "compiling", "installed", "degraded", "failed", "withdrawn"];
    let mut status = intent_fields(true);
    status.extend([
        ("state", one_of_texts("How far it is carried out", &states), true),
        ("reason", text("Why it is degraded or failed; empty otherwise"), true),
        ("paths", list(of("Path")), true),
        ("expected_delay_us", optional(Type::Number, "Delay that the model expects, in microseconds"), true),
        ("confirmed", integer("Packets that were sent to confirm it and have arrived"), true),
    ]);
    vec![
        ("Intent", object("Packets that the network has to carry, and how", intent_fields(false))),
        ("IntentStatus", object("An intent and its state", status)),
        (
            "IntentAnswer",
            object(
                "Answer to one of many intents: state and reason, or the problem",
                vec![
                    ("key", optional(Type::String, "Key of the intent; null if a malformed one has none"), true),
                    ("state", one_of_texts("How far it is carried out", &states), false),
                    ("reason", text("Why it is degraded or failed; empty otherwise"), false),
                    ("problem", of("Problem"), false),
                ],
            ),
        ),
        (
            "IntentConstraints",
            object(
                "Conditions of an intent",
                vec![
                    ("bandwidth", optional(Type::String, "Bandwidth to reserve, such as 10Mbit/s"), false),
                    ("delay", or_null(of("DelayBound")), false),
                    ("waypoints", list(text("Datapath id in hexadecimal")), false),
                    ("avoid", list(text("Datapath id in hexadecimal, or port of a link (DPID:PORT)")), false),
                    ("priority", integer("Precedence, from 0 to 1000; higher is preferred"), false),
                    ("protected", truth("True if a second way without a common link is kept ready"), false),
                ],
            ),
        ),
        (
            "DelayBound",
            object(
                "Most delay; either `percentile` or `worst-case` says which delay is meant",
                vec![
                    ("most", text("Most time from end to end, such as 5ms"), true),
                    ("percentile", number("Percentile of the model's delays, in percent"), false),
                    ("worst-case", optional(Type::Null, "Longest possible delay: full queues"), false),
                ],
            ),
        ),
    ]
}

fn what_if() -> Vec<(&'static str, AnySchema)> {
    let case = |name: &str, field: &'static str, schema: AnySchema| {
        full("A case", vec![("case", one_of_texts("Name of the case", &[name])), (field, schema)])
    };
    let cases = OneOfBuilder::new()
        .item(case("intent", "intent", of("Intent")))
        .item(case("link-fails", "at", text("End of the link, DPID:PORT")))
        .item(case("switch-fails", "dpid", text("Datapath id in hexadecimal")));
    vec![
        ("WhatIf", RefOr::T(cases.build().into())),
        (
            "WhatIfAnswer",
            full(
                "Effect of a case",
                vec![
                    ("intents", list(of("IntentStatus"))),
                    ("cut_off", list(text("Ethernet address of a host that not all others would reach"))),
                    ("overloaded", list(text("Link whose load would exceed its rate, by its end"))),
                ],
            ),
        ),
        (
            "Topology",
            object(
                "Node-link JSON of the switches, as weir topology, scenario files and networkx read it",
                vec![
                    ("directed", truth("False"), true),
                    ("multigraph", truth("True"), true),
                    ("graph", plain(Type::Object, "About the whole graph"), true),
                    ("nodes", list(plain(Type::Object, "A switch: id, name, dpid")), true),
                    ("edges", list(plain(Type::Object, "A link: source, target, ports, rate_bps, delay_ns")), true),
                ],
            ),
        ),
        ("Health", full("Health of the controller", vec![("status", one_of_texts("Status", &["ok"]))])),
        ("TokenCount", full("Tokens that are valid", vec![("tokens", integer("Number of tokens"))])),
        ("Counters", counters()),
    ]
}
