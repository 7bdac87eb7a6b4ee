//! Formats cases and differences as text.
use crate::compare::{StepAnswerPart, StepDifference};
use crate::kinds::{self, DeviatingSwitch};
use crate::{CaseStep, DifferentialCase, StepAnswer};
use std::fmt::Write as _;
use weir_openflow::model::FlowCommand;
use weir_openflow::{Body, Version, text};

/// Formats a case with a line for each step.
pub fn case(case: &DifferentialCase) -> String {
    let mut all = format!("seed {}, OpenFlow {}\n", case.seed, case.version.name());
    for (number, step) in case.steps.iter().enumerate() {
        let _ = writeln!(all, "{number:3} {}", self::step(step, case.version));
    }
    all
}

/// Formats a step, in the syntax of `ovs-ofctl` where there is one.
pub fn step(step: &CaseStep, version: Version) -> String {
    match step {
        CaseStep::Message(body) => message(body, version),
        CaseStep::Frame { port, bytes } => format!("frame in_port={port} {}", hex(bytes)),
        CaseStep::Pause => format!("pause {} ms", crate::case::PAUSE_MS),
    }
}

fn message(body: &Body, version: Version) -> String {
    match body {
        Body::FlowMod(flow) => {
            let command = match flow.command {
                FlowCommand::Add => "add-flow",
                FlowCommand::Modify => "mod-flows",
                FlowCommand::ModifyStrict => "--strict mod-flows",
                FlowCommand::Delete => "del-flows",
                FlowCommand::DeleteStrict => "--strict del-flows",
            };
            let mut line = format!("{command} '{}'", text::format_flow(flow, version));
            if flow.cookie_mask != 0 {
                let _ = write!(line, " cookie_mask={:#x}", flow.cookie_mask);
            }
            if let Some(buffer) = flow.buffer_id {
                let _ = write!(line, " buffer={}", buffer.0);
            }
            line
        }
        body => format!("{body:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Formats both answers in the part in which they differ.
pub fn difference(difference: &StepDifference) -> String {
    let StepDifference { step, part, ours, theirs, told } = difference;
    if *part == StepAnswerPart::Told {
        return format!("step {step}, notices\n  only weir: {:?}\n  only Open vSwitch: {:?}\n", told.0, told.1);
    }
    format!("step {step}, {part:?}\n  weir: {}\n  Open vSwitch: {}\n", side(*part, ours), side(*part, theirs))
}

fn side(part: StepAnswerPart, answer: &StepAnswer) -> String {
    match part {
        StepAnswerPart::Replies => format!("{:?}", answer.replies),
        StepAnswerPart::Told | StepAnswerPart::Ended => String::new(),
        StepAnswerPart::PacketsIn => format!("{:?}", answer.packets_in),
        StepAnswerPart::Frames => {
            let frames = answer.frames.iter().map(|(port, bytes)| format!("\n    port {port}: {}", hex(bytes)));
            frames.collect()
        }
    }
}

/// Formats the table of known kinds for `docs/differences.md`.
pub fn kinds() -> String {
    let mut all = String::from("| kind | whose | clause | what |\n|---|---|---|---|\n");
    for kind in kinds::all() {
        let whose = match kind.whose {
            DeviatingSwitch::Theirs => "Open vSwitch's",
            DeviatingSwitch::Free => "left to the switch",
            DeviatingSwitch::Ours => "weir's",
        };
        let _ = writeln!(all, "| `{}` | {whose} | {} | {} |", kind.name, kind.clause, kind.why);
    }
    all
}
