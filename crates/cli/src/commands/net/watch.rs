//! `weir net watch`: prints events as they happen.
use super::OutputForm;
use super::connection::{NetClient, explained};
use anyhow::Context as _;
use serde_json::json;
use weir_api::client::StreamedEvent;
use weir_routing::state::EventRecord;
use weir_terminal::output::print_line;

#[derive(clap::Args)]
pub(super) struct NetWatchArgs {
    /// Begin after the event with this number, 0 for all that the controller keeps [default: new events only]
    #[arg(long, value_name = "N")]
    after: Option<u64>,
    /// End after N events [default: at Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

/// Columns of CSV.
const HEADER: &str = "number,time_s,kind,text,alarm";

pub(super) fn run(client: &NetClient, args: &NetWatchArgs, form: OutputForm) -> anyhow::Result<()> {
    if form.csv && !print_line(HEADER)? {
        return Ok(());
    }
    client.runtime.block_on(async {
        let mut events = client.client().events(args.after).await.map_err(explained)?;
        let mut left = args.count;
        while left != Some(0) {
            let next = tokio::select! {
                next = events.next() => next.map_err(explained)?,
                stopped = tokio::signal::ctrl_c() => return stopped.context("cannot wait for Ctrl-C"),
            };
            let Some(event) = next else { anyhow::bail!("the controller ended the stream; it stops, or is restarted") };
            left = left.map(|left| left - u64::from(matches!(event, StreamedEvent::Event(_))));
            if let Some(line) = line(&event, form)
                && !print_line(&line)?
            {
                break;
            }
        }
        Ok(())
    })
}

/// Returns the line of an event; `None` if the form has none for it.
fn line(event: &StreamedEvent, form: OutputForm) -> Option<String> {
    match event {
        StreamedEvent::Event(event) if form.json => Some(json!(event).to_string()),
        StreamedEvent::Event(event) if form.csv => Some(csv_line(event)),
        StreamedEvent::Event(EventRecord { time_s, kind, text, alarm, .. }) => {
            let mark = if *alarm { "!" } else { " " };
            Some(format!("{time_s:10.3} s {mark} {kind}: {text}"))
        }
        StreamedEvent::Lost(lost) if form.json => Some(json!({"lost": lost}).to_string()),
        StreamedEvent::Restarted if form.json => Some(json!({"restarted": true}).to_string()),
        _ if form.csv => None,
        StreamedEvent::Lost(lost) => Some(format!("({lost} events are no longer kept)")),
        StreamedEvent::Restarted => Some("(the controller was started anew; its events follow)".to_owned()),
    }
}

fn csv_line(event: &EventRecord) -> String {
    use crate::commands::csv::quoted;
    let EventRecord { number, time_s, kind, text, alarm } = event;
    format!("{number},{time_s},{},{},{alarm}", quoted(kind), quoted(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_a_line() {
        let event =
            EventRecord { number: 7, time_s: 1.5, kind: "link-down".into(), text: "1:1, 2:2".into(), alarm: true };
        let shown = |json, csv| line(&StreamedEvent::Event(event.clone()), OutputForm { json, csv }).unwrap();
        assert_eq!(shown(false, false), "     1.500 s ! link-down: 1:1, 2:2");
        assert_eq!(shown(false, true), "7,1.5,link-down,\"1:1, 2:2\",true");
        assert!(shown(true, false).contains("\"number\":7"));
        let plain = OutputForm { json: false, csv: false };
        assert_eq!(line(&StreamedEvent::Lost(3), plain).as_deref(), Some("(3 events are no longer kept)"));
        assert_eq!(line(&StreamedEvent::Restarted, OutputForm { json: false, csv: true }), None);
    }
}
