//! Paths of the interface, with parameters and answers.
use super::schemas::{integer, list, of, text, truth};
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItem, PathItemBuilder, Paths,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::{ContentBuilder, PathsBuilder, RefOr, Required, ResponseBuilder, Schema, SecurityRequirement};

/// Name of the way in which clients show who they are.
pub(super) const TOKEN: &str = "token";

const JSON: &str = "application/json";

/// Returns all paths.
pub(super) fn all() -> Paths {
    let intents = [
        read("State of an intent", of("IntentStatus")).parameter(key()),
        operation("Add an intent, or change the one with this key; needs the role operate")
            .parameter(key())
            .request_body(Some(body("Intent")))
            .response("200", answer("The intent was there", of("IntentStatus")))
            .response("201", answer("The intent is new", of("IntentStatus"))),
        operation("Remove an intent; needs the role operate").parameter(key()).response("204", empty("Removed")),
    ];
    let [one, put, delete] = intents.map(failing);
    let one = PathItemBuilder::new()
        .operation(HttpMethod::Get, one)
        .operation(HttpMethod::Put, put)
        .operation(HttpMethod::Delete, delete);
    let gets = [
        ("/network", read("State of the whole network", of("Network"))),
        ("/switches", read("Switches", list(of("Switch")))),
        ("/links", read("Links between switches", list(of("Link")))),
        ("/hosts", read("Hosts", list(of("Host")))),
        ("/counters", read("Counters", of("Counters"))),
        ("/topology", read("The network as a graph", of("Topology"))),
        (
            "/paths",
            read("Ways between two ends, the best first", list(of("Path")))
                .parameter(query("from", Required::True, text("Host or port (DPID:PORT)")))
                .parameter(query("to", Required::True, text("Host or port (DPID:PORT)")))
                .parameter(query("most", Required::False, integer("Most ways, from 1 to 64; 3 by default"))),
        ),
        (
            "/events",
            read("Events, the oldest first", list(of("Event")))
                .parameter(query("after", Required::False, integer("Number of the last event already known")))
                .parameter(query("most", Required::False, integer("Most events, from 1 to 1000"))),
        ),
        ("/events/stream", stream()),
        ("/health", read("Whether the network answers; needs no token", of("Health"))),
        ("/openapi.json", operation("This description; needs no token").response("200", empty("OpenAPI 3.1"))),
    ];
    let posts = [
        (
            "/what-if",
            operation("Effect of an intent or of a failure, before it happens")
                .request_body(Some(body("WhatIf")))
                .response("200", answer("The effect", of("WhatIfAnswer"))),
        ),
        (
            "/tokens/reload",
            operation("Read the file with tokens again; needs the role admin")
                .response("200", answer("They were read", of("TokenCount"))),
        ),
    ];
    let item = |method, operation| PathItemBuilder::new().operation(method, failing(operation)).build();
    let paths = PathsBuilder::new().path("/api/v1/intents/{key}", one.build()).path("/api/v1/intents", many());
    let paths = gets
        .into_iter()
        .fold(paths, |paths, (path, operation)| paths.path(format!("/api/v1{path}"), item(HttpMethod::Get, operation)));
    let paths = posts.into_iter().fold(paths, |paths, (path, operation)| {
        paths.path(format!("/api/v1{path}"), item(HttpMethod::Post, operation))
    });
    paths.build()
}

/// Returns the operations on many intents.
fn many() -> PathItem {
    let wait = || query("wait", Required::False, text("Longest time to wait until all are decided, at most 15s"));
    let answers = |about: &str| answer(about, list(of("IntentAnswer")));
    let set = operation("Add or change many intents, each by itself; needs the role operate")
        .parameter(wait())
        .request_body(Some(body_of(list(of("Intent")), Required::True)))
        .response("200", answers("An answer for each, in the order of the request"));
    let remove = operation("Remove the intents whose keys are in the body, or all; needs the role operate")
        .parameter(query("all", Required::False, truth("True to remove all, without a body")))
        .parameter(wait())
        .request_body(Some(body_of(list(text("Key of an intent")), Required::False)))
        .response("200", answers("An answer for each, in the order of the request or of the keys"));
    PathItemBuilder::new()
        .operation(HttpMethod::Get, failing(read("Intents with their states", list(of("IntentStatus")))))
        .operation(HttpMethod::Post, failing(set))
        .operation(HttpMethod::Delete, failing(remove))
        .build()
}

fn operation(summary: &str) -> OperationBuilder {
    let none: [String; 0] = [];
    OperationBuilder::new().summary(Some(summary)).security(SecurityRequirement::new(TOKEN, none))
}

fn read(summary: &str, schema: RefOr<Schema>) -> OperationBuilder {
    operation(summary).response("200", answer(summary, schema))
}

fn stream() -> OperationBuilder {
    let about = "Events as they happen (Server-Sent Events). The data is an Event; `event: lost` says how many are no \
                 longer kept, `event: restarted` that numbers begin anew";
    let content = ContentBuilder::new().schema(Some(text("text/event-stream"))).build();
    let header = ParameterBuilder::new().name("Last-Event-ID").parameter_in(ParameterIn::Header);
    let header = header.required(Required::False).schema(Some(integer("Number of the last event already known")));
    operation(about)
        .parameter(query("after", Required::False, integer("Number of the last event already known")))
        .parameter(header.build())
        .response("200", ResponseBuilder::new().description("The stream").content("text/event-stream", content).build())
}

/// Adds the answer of errors.
fn failing(operation: OperationBuilder) -> OperationBuilder {
    let content = ContentBuilder::new().schema(Some(of("Problem"))).build();
    let problem = ResponseBuilder::new().description("Error").content(crate::problem::PROBLEM_TYPE, content);
    operation.response("default", problem.build())
}

fn answer(about: &str, schema: RefOr<Schema>) -> utoipa::openapi::Response {
    let content = ContentBuilder::new().schema(Some(schema)).build();
    ResponseBuilder::new().description(about).content(JSON, content).build()
}

fn empty(about: &str) -> utoipa::openapi::Response {
    ResponseBuilder::new().description(about).build()
}

fn body(schema: &str) -> utoipa::openapi::request_body::RequestBody {
    body_of(of(schema), Required::True)
}

fn body_of(schema: RefOr<Schema>, required: Required) -> utoipa::openapi::request_body::RequestBody {
    let content = ContentBuilder::new().schema(Some(schema)).build();
    RequestBodyBuilder::new().content(JSON, content).required(Some(required)).build()
}

fn query(name: &str, required: Required, schema: RefOr<Schema>) -> utoipa::openapi::path::Parameter {
    let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Query).required(required);
    parameter.schema(Some(schema)).build()
}

fn key() -> utoipa::openapi::path::Parameter {
    let parameter = ParameterBuilder::new().name("key").parameter_in(ParameterIn::Path).required(Required::True);
    parameter.schema(Some(text("Key of the intent"))).build()
}
