//! Parses and prints the text syntax of `ovs-ofctl`: flow entries, matches, actions, groups and meters in both
//! directions, and whole messages as `ovs-ofctl ofp-print` shows them.
//!
//! Spellings are Open vSwitch's, and tests compare with it. Where Open vSwitch has none, weir has its own:
//! `push_pbb`, `pop_pbb`, `copy_ttl_in`, `copy_ttl_out`, `experimenter(NUMBER,HEX)`, `raw_CLASS_NUMBER=HEX` for
//! fields that weir does not know, `stat_trigger(...)`, and `property(TYPE,HEX)` for properties of groups and
//! buckets. Port numbers are those of OpenFlow 1.3: 65534 is an ordinary port, and the local port is `local`.
mod action;
mod action_text;
mod encap;
mod error;
mod field_value;
mod flow;
mod group;
mod instruction;
mod match_text;
mod matching;
mod meter;
mod nicira;
mod nicira_parse;
mod number;
mod port_names;
mod print;
mod raw;
mod scan;

pub use error::ParseError;
pub use flow::{DEFAULT_PRIORITY, format_flow, parse_flow};
pub use group::parse_group;
pub use meter::{parse_meter, parse_meter_id};
pub use port_names::PortNames;
pub use print::error::name as error_name;
pub use print::flow::format_stats;
pub use print::group::{format_group, format_group_stats};
pub use print::meter::{config as format_meter, stats as format_meter_stats};
pub use print::{PrintDetail, print_bytes, print_bytes_line, print_message};

use crate::model::{Action, Instruction, Match, Version};

/// Maximum length in bytes of a text to parse: twice what the longest message needs.
pub const MAX_TEXT: usize = 1 << 20;

/// Parses a match, such as `tcp,in_port=1,nw_dst=10.0.0.0/8,tp_dst=80`.
///
/// # Errors
/// The position of the first error, what was found there and what was expected.
pub fn parse_match(text: &str) -> Result<Match, ParseError> {
    check_length(text)?;
    let mut scanner = scan::KeyValueScanner::new(text, 0);
    let mut items = Vec::new();
    while let Some(item) = scanner.next()? {
        items.push(item);
    }
    matching::build(&items)
}

/// Prints a match in the order and spelling of `ovs-ofctl`; returns an empty text for a match of every packet.
pub fn format_match(matching: &Match) -> String {
    match_text::write(matching, Version::V13)
}

/// Parses an action list, such as `push_vlan:0x8100,set_field:4197->vlan_vid,output:2`; `drop` is the empty list.
///
/// # Errors
/// The position of the first error, what was found there and what was expected.
pub fn parse_actions(text: &str) -> Result<Vec<Action>, ParseError> {
    check_length(text)?;
    action::parse_actions(text, 0)
}

/// Prints an action list; `drop` if it is empty. `version` selects spellings: `strip_vlan` in 1.0 is `pop_vlan` in
/// 1.3.
pub fn format_actions(actions: &[Action], version: Version) -> String {
    action_text::write_actions(actions, version)
}

/// Parses actions and instructions, such as `output:2,goto_table:3`. Actions outside an instruction become one
/// apply-actions. Returns the instructions in the order of their execution.
///
/// # Errors
/// The position of the first error, what was found there and what was expected.
pub fn parse_instructions(text: &str) -> Result<Vec<Instruction>, ParseError> {
    check_length(text)?;
    instruction::parse_instructions(text, 0)
}

/// Prints instructions in the order of their execution; `drop` if they do nothing.
pub fn format_instructions(instructions: &[Instruction], version: Version) -> String {
    action_text::write_instructions(instructions, version)
}

fn check_length(text: &str) -> Result<(), ParseError> {
    if text.len() <= MAX_TEXT {
        return Ok(());
    }
    Err(ParseError::new(0, text, format!("at most {MAX_TEXT} bytes of text")))
}
