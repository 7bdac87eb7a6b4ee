//! Finds names of ports in the texts of flow entries, groups and packets, and replaces them by numbers, as `ovs-ofctl`
//! does.
use crate::model::PortNo;
use std::ops::Range;

/// Texts in front of a port, in matches and in actions.
const PLACES: [&str; 10] = [
    "in_port=",
    "in_phy_port=",
    "out_port=",
    "output:",
    "output=",
    "output(port=",
    "enqueue:",
    "enqueue(",
    "watch_port:",
    "watch_port=",
];
/// Texts in front of a list of actions, in which a port may stand alone.
const LISTS: [&str; 5] = ["actions=", "bucket=", "apply_actions(", "write_actions(", "clone("];
/// Actions without arguments: a port of such a name must be quoted.
const ACTIONS: [&str; 12] = [
    "drop",
    "exit",
    "ct",
    "ct_clear",
    "decap",
    "dec_ttl",
    "dec_mpls_ttl",
    "strip_vlan",
    "pop_vlan",
    "pop_queue",
    "clear_actions",
    "note",
];

/// A word in a text that may be the name of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PortWord {
    /// Place of the word in the text, with its quotes.
    at: Range<usize>,
    /// The word without quotes.
    name: String,
    /// True if nothing but a port can stand there.
    is_port: bool,
}

/// Names of ports in the text of a flow entry, a filter, a group or a packet: `in_port=veth1,actions=output:veth2`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortNames(Vec<PortWord>);

impl PortNames {
    /// Finds the words that may be names of ports. Names that are quoted are never keywords.
    pub fn find(text: &str) -> PortNames {
        PortNames(words(text))
    }

    /// Returns true if the text has none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `text`, in which the names were found, with numbers in their places.
    ///
    /// # Errors
    /// The error of `number` for a word where only a port can stand. A word that may be something else stays.
    pub fn replaced<E>(&self, mut text: String, number: impl Fn(&str) -> Result<PortNo, E>) -> Result<String, E> {
        for word in self.0.iter().rev() {
            match number(&word.name) {
                Ok(port) => text.replace_range(word.at.clone(), &port.to_string()),
                Err(error) if word.is_port => return Err(error),
                // The parser says what is wrong with a word that is neither a port nor an action.
                Err(_) => {}
            }
        }
        Ok(text)
    }
}

/// Returns the words that stand for ports and are neither numbers nor reserved ports such as `LOCAL`.
fn words(text: &str) -> Vec<PortWord> {
    // Keywords are compared in lower case, which must not move the places of other characters.
    let lower = text.to_ascii_lowercase();
    let first_list = LISTS.iter().filter_map(|list| lower.find(list)).min().unwrap_or(text.len());
    let mut found: Vec<PortWord> = Vec::new();
    for (start, _) in text.char_indices() {
        // All places end with one of these.
        let may_begin = start > 0 && matches!(text.as_bytes()[start - 1], b'=' | b':' | b'(' | b',');
        if !may_begin || found.last().is_some_and(|last| start < last.at.end) {
            continue;
        }
        let before = &lower[..start];
        let place =
            PLACES.iter().find(|place| before.ends_with(*place) && begins(&before[..before.len() - place.len()]));
        let is_alone = place.is_none()
            && start > first_list
            && (before.ends_with(',') || LISTS.iter().any(|list| before.ends_with(list)));
        if place.is_some() || is_alone {
            found.extend(word(text, start, place.is_some()));
        }
    }
    found
}

/// Returns true if a keyword may follow: it is not the end of a longer one.
fn begins(before: &str) -> bool {
    !before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns the word at `start`, if it is no number and no keyword. `is_port` is true after the name of an argument;
/// otherwise the word has to be a whole action.
fn word(text: &str, start: usize, is_port: bool) -> Option<PortWord> {
    let rest = &text[start..];
    if let Some(quoted) = rest.strip_prefix('"') {
        let length = quoted.find('"')?;
        return Some(PortWord { at: start..start + length + 2, name: quoted[..length].to_owned(), is_port: true });
    }
    let length = rest.find([',', ':', '(', ')', '[', '=', ' ', '\t', '-']).unwrap_or(rest.len());
    // Names of interfaces may have hyphens, but an arrow ends the word.
    let length = match rest[length..].strip_prefix('-') {
        Some(more) if !more.starts_with('>') => {
            let tail = rest[length..].find([',', ':', '(', ')', '[', '=', ' ', '\t']).unwrap_or(rest.len() - length);
            length + tail
        }
        _ => length,
    };
    let (name, after) = rest.split_at(length);
    // `output:reg0[]` names a field, and an action with arguments is no port.
    let ends =
        if is_port { !after.starts_with(['[', '=']) } else { matches!(after.chars().next(), None | Some(',' | ')')) };
    let is_keyword =
        name.parse::<PortNo>().is_ok() || !is_port && ACTIONS.contains(&name.to_ascii_lowercase().as_str());
    (ends && !name.is_empty() && !is_keyword).then(|| PortWord {
        at: start..start + length,
        name: name.to_owned(),
        is_port,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replaces names by the numbers of four ports.
    fn of(text: &str) -> Result<String, String> {
        let ports = [("veth1", 1), ("s1-eth2", 2), ("drop", 3), ("gre:x", 4)];
        let number = |name: &str| {
            let found = ports.iter().find(|(known, _)| *known == name);
            found.map(|(_, number)| PortNo(*number)).ok_or_else(|| format!("no port {name}"))
        };
        PortNames::find(text).replaced(text.to_owned(), number)
    }

    #[test]
    fn names_become_numbers_where_ports_stand() {
        for (text, expected) in [
            ("in_port=veth1,actions=output:s1-eth2", "in_port=1,actions=output:2"),
            ("priority=5,ip,in_port=veth1 actions=s1-eth2,veth1", "priority=5,ip,in_port=1 actions=2,1"),
            ("in_port=\"gre:x\",actions=\"drop\",output:\"veth1\"", "in_port=4,actions=3,output:1"),
            ("actions=enqueue:veth1:7,set_queue:3,enqueue(s1-eth2,7)", "actions=enqueue:1:7,set_queue:3,enqueue(2,7)"),
            ("actions=output(port=veth1,max_len=64)", "actions=output(port=1,max_len=64)"),
            ("out_port=s1-eth2", "out_port=2"),
            (
                "group_id=1,type=ff,bucket=watch_port:veth1,actions=output:veth1,bucket=watch_port:1,output:s1-eth2",
                "group_id=1,type=ff,bucket=watch_port:1,actions=output:1,bucket=watch_port:1,output:2",
            ),
            (
                "in_port=1,actions=clone(veth1),write_actions(output:veth1)",
                "in_port=1,actions=clone(1),write_actions(output:1)",
            ),
        ] {
            assert_eq!(of(text).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn other_words_stay() {
        for text in [
            "",
            "ip,nw_dst=10.0.0.0/8",
            "in_port=LOCAL,actions=drop",
            "in_port=1,actions=NORMAL,flood,IN_PORT,output:reg0[0..15],output:controller",
            "actions=load:5->NXM_OF_IN_PORT[],move:in_port->reg0,resubmit(,1),resubmit:2",
            "table=0,actions=dec_ttl,set_field:fd00::2->ipv6_dst,output:2,veth9",
        ] {
            assert_eq!(of(text).as_deref(), Ok(text));
        }
        assert_eq!(of("in_port=veth9,actions=drop"), Err("no port veth9".to_owned()));
    }
}
