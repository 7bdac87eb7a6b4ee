//! Events as a list and as a stream.
use crate::network::{READ, ServedNetwork};
use weir_api::client::{ApiClientError, EventStream, StreamedEvent};

impl ServedNetwork {
    fn listen(&self, after: Option<u64>) -> EventStream {
        self.wait(self.holder(READ).events(after)).unwrap()
    }

    /// Waits for events, and returns their numbers.
    fn numbers(&self, stream: &mut EventStream, count: usize) -> Vec<u64> {
        let number = |event| match event {
            StreamedEvent::Event(event) => event.number,
            other => panic!("expected an event, found {other:?}"),
        };
        (0..count).map(|_| number(self.wait(stream.next()).unwrap().expect("an event"))).collect()
    }
}

#[test]
fn events_are_listed_after_a_number() {
    let served = ServedNetwork::start();
    for number in 1..=5 {
        served.network.tell("host-moved", &format!("event {number}"));
    }
    let numbers = |query: &str| {
        let (status, events) = served.ask(&served.owner(), &format!("GET /api/v1/events{query}"), None);
        assert_eq!(status, 200);
        events.as_array().unwrap().iter().map(|event| event["number"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(""), [1, 2, 3, 4, 5]);
    assert_eq!(numbers("?after=2&most=2"), [3, 4]);
    assert_eq!(numbers("?after=5"), [0; 0]);
    assert_eq!(served.ask(&served.owner(), "GET /api/v1/events?most=1001", None).0, 400);
}

#[test]
fn a_stream_goes_on_after_the_last_event_that_is_known() {
    let served = ServedNetwork::start();
    served.network.tell("link-down", "one");
    served.network.tell("link-up", "two");
    let mut stream = served.listen(Some(1));
    assert_eq!(served.numbers(&mut stream, 1), [2]);
    served.network.tell("link-down", "three");
    served.network.tell("link-up", "four");
    assert_eq!(served.numbers(&mut stream, 2), [3, 4]);
    drop(stream);
    served.network.tell("link-down", "five");
    let mut stream = served.listen(Some(4));
    assert_eq!(served.numbers(&mut stream, 1), [5]);
    let mut all = served.listen(Some(0));
    assert_eq!(served.numbers(&mut all, 5), [1, 2, 3, 4, 5]);
}

#[test]
fn what_happened_while_there_were_no_listeners_is_no_restart() {
    let served = ServedNetwork::start();
    served.network.tell("link-down", "1");
    let mut stream = served.listen(Some(0));
    assert_eq!(served.numbers(&mut stream, 1), [1]);
    drop(stream);
    for number in 2..=9 {
        served.network.tell("link-up", &number.to_string());
    }
    let mut stream = served.listen(Some(8));
    assert_eq!(served.numbers(&mut stream, 1), [9]);
}

#[test]
fn last_event_id_counts_more_than_the_address() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let served = ServedNetwork::start();
    for text in ["one", "two", "three"] {
        served.network.tell("link-up", text);
    }
    let mut socket = std::net::TcpStream::connect(served.place()).unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    let request = |id: &str| {
        format!(
            "GET /api/v1/events/stream?after=0 HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer {READ}\r\n\
             Last-Event-ID: {id}\r\n\r\n"
        )
    };
    socket.write_all(request("2").as_bytes()).unwrap();
    let lines = BufReader::new(socket).lines().map(|line| line.unwrap());
    let first = lines.into_iter().find(|line| line.starts_with("id:"));
    assert_eq!(first.as_deref(), Some("id: 3"));
    let mut socket = std::net::TcpStream::connect(served.place()).unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    socket.write_all(request("x").as_bytes()).unwrap();
    let status = BufReader::new(socket).lines().next().unwrap().unwrap();
    assert_eq!(status, "HTTP/1.1 400 Bad Request");
}

#[test]
fn without_a_number_a_stream_has_new_events_only() {
    let served = ServedNetwork::start();
    served.network.tell("link-down", "old");
    let mut stream = served.listen(None);
    let mut other = served.listen(Some(0));
    assert_eq!(served.numbers(&mut other, 1), [1], "events were asked for");
    served.network.tell("link-up", "new");
    assert_eq!(served.numbers(&mut stream, 1), [2]);
    assert_eq!(served.numbers(&mut other, 1), [2]);
}

#[test]
fn a_network_is_asked_once_for_each_event_however_many_listen() {
    let served = ServedNetwork::start();
    let mut streams: Vec<_> = (0..8).map(|_| served.listen(None)).collect();
    served.network.tell("link-down", "all listeners follow the feed when they have it");
    for stream in &mut streams {
        assert_eq!(served.numbers(stream, 1), [1]);
    }
    let before = served.network.asked_for_events();
    for number in 2..=20 {
        served.network.tell("link-up", "x");
        for stream in &mut streams {
            assert_eq!(served.numbers(stream, 1), [number]);
        }
    }
    // The network wakes the server; nothing asks again and again whether there is something new.
    assert_eq!(served.network.asked_for_events() - before, 19);
}

#[test]
fn a_network_that_does_not_answer_for_a_while_loses_no_event() {
    let served = ServedNetwork::start();
    let mut stream = served.listen(None);
    served.network.tell("link-up", "x");
    assert_eq!(served.numbers(&mut stream, 1), [1]);
    served.network.break_down("busy");
    served.network.tell("link-up", "y");
    // The feed has asked in vain when an answer says so.
    let broken = served.ask(&served.holder(READ), "GET /api/v1/events", None);
    assert_eq!(broken.0, 503);
    served.network.repair();
    assert_eq!(served.numbers(&mut stream, 1), [2]);
}

#[test]
fn lost_events_and_restarts_are_told() {
    let served = ServedNetwork::start();
    for number in 0..80 {
        served.network.tell("link-up", &format!("{number}"));
    }
    let mut stream = served.listen(Some(10));
    assert_eq!(served.wait(stream.next()).unwrap(), Some(StreamedEvent::Lost(20)));
    assert_eq!(served.numbers(&mut stream, 1), [31]);
    let mut ahead = served.listen(Some(1000));
    assert_eq!(served.wait(ahead.next()).unwrap(), Some(StreamedEvent::Restarted));
    assert_eq!(served.numbers(&mut ahead, 1), [31]);
}

#[test]
fn listeners_have_a_greatest_number_and_end_with_the_server() {
    let served = ServedNetwork::start();
    let mut streams: Vec<_> = (0..32).map(|_| served.listen(None)).collect();
    let Err(ApiClientError::Refused(problem)) = served.wait(served.holder(READ).events(None)) else {
        panic!("expected a refusal")
    };
    assert_eq!((problem.status, problem.retry_after_s), (503, Some(15)), "{problem:?}");
    streams.pop();
    // The server notices that a listener is gone when it looks for its next event.
    served.network.tell("link-up", "x");
    let mut tries = 0;
    while served.wait(served.holder(READ).events(None)).is_err() {
        tries += 1;
        assert!(tries < 10_000, "the place was not freed");
    }
    let mut last = streams.pop().unwrap();
    served.numbers(&mut last, 1);
    let ServedNetwork { server, runtime, .. } = served;
    drop(server);
    let ended = runtime.block_on(async { tokio::time::timeout(std::time::Duration::from_secs(30), last.next()).await });
    assert!(ended.expect("an end").is_err(), "a stream that is cut is an error");
}
