//! Negotiates the OpenFlow version (OpenFlow 1.3.5, 6.3.1 and 7.5.1).
use crate::model::{Hello, Version};

/// Returns the hello to send and the version of its header, the highest in `own`. `own` lists the supported versions,
/// highest first. Without a version above 1.0 the hello has no bitmap, because 1.0 has no hello elements.
pub(super) fn hello(own: &[Version]) -> (Version, Hello) {
    let highest = own[0];
    let versions = sends_bitmap(own).then(|| own.iter().map(|version| *version as u8).collect());
    (highest, Hello { versions })
}

/// Returns the version to use after the peer's hello: the highest in both bitmaps, or, if one side sent none, the
/// lower of the two header versions. Returns `None` if that version is not supported by both sides.
pub(super) fn agree(own: &[Version], header_version: u8, hello: &Hello) -> Option<Version> {
    match &hello.versions {
        Some(theirs) if sends_bitmap(own) => own.iter().copied().find(|version| theirs.contains(&(*version as u8))),
        theirs => {
            let lower = Version::from_number(header_version.min(own[0] as u8))?;
            let spoken = theirs.as_ref().is_none_or(|theirs| theirs.contains(&(lower as u8)));
            (own.contains(&lower) && spoken).then_some(lower)
        }
    }
}

/// Returns the version for answering a message of version `number` before a version is agreed on: the highest
/// supported version up to `number`, otherwise the lowest supported version.
pub(super) fn answer_version(own: &[Version], number: u8) -> Version {
    let known = own.iter().copied().find(|version| *version as u8 <= number);
    known.unwrap_or(own[own.len() - 1])
}

/// Returns a readable explanation why no version was agreed on; it names the versions of both sides.
pub(super) fn disagreement(own: &[Version], header_version: u8, hello: &Hello) -> String {
    let names = |numbers: &[u8]| numbers.iter().map(|number| name(*number)).collect::<Vec<_>>().join(", ");
    let own: Vec<u8> = own.iter().map(|version| *version as u8).collect();
    let theirs = match &hello.versions {
        Some(versions) if versions.is_empty() => "none".to_owned(),
        Some(versions) => names(versions),
        None => format!("up to {}", name(header_version)),
    };
    format!("no common OpenFlow version: this end speaks {}, the other {theirs}", names(&own))
}

fn name(number: u8) -> String {
    match number {
        1..=6 => format!("1.{}", number - 1),
        _ => format!("version number {number:#04x}"),
    }
}

fn sends_bitmap(own: &[Version]) -> bool {
    own[0] > Version::V10
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Version; 2] = [Version::V13, Version::V10];

    fn bitmap(versions: &[u8]) -> Hello {
        Hello { versions: Some(versions.to_vec()) }
    }

    #[test]
    fn versions_agree_as_the_specification_says() {
        use Version::{V10, V13};
        let none = Hello::default();
        let cases: [(&[Version], u8, Hello, Option<Version>); 14] = [
            (&BOTH, 4, bitmap(&[1, 4]), Some(V13)),
            (&BOTH, 6, bitmap(&[1, 4, 6]), Some(V13)),
            (&BOTH, 6, bitmap(&[1, 6]), Some(V10)),
            (&BOTH, 6, bitmap(&[5, 6]), None),
            (&BOTH, 4, bitmap(&[]), None),
            (&BOTH, 1, none.clone(), Some(V10)),
            (&BOTH, 4, none.clone(), Some(V13)),
            (&BOTH, 6, none.clone(), Some(V13)),
            (&BOTH, 3, none.clone(), None),
            (&BOTH, 0, none.clone(), None),
            (&[V13], 1, none.clone(), None),
            (&[V10], 4, bitmap(&[1, 4]), Some(V10)),
            (&[V10], 4, bitmap(&[4]), None),
            (&[V10], 4, none, Some(V10)),
        ];
        for (own, header, hello, expected) in cases {
            assert_eq!(agree(own, header, &hello), expected, "{own:?} {header} {hello:?}");
        }
    }

    #[test]
    fn hellos_and_answers_fit_the_versions_spoken() {
        assert_eq!(hello(&BOTH), (Version::V13, bitmap(&[4, 1])));
        assert_eq!(hello(&[Version::V10]), (Version::V10, Hello::default()));
        assert_eq!(answer_version(&BOTH, 6), Version::V13);
        assert_eq!(answer_version(&BOTH, 3), Version::V10);
        assert_eq!(answer_version(&[Version::V13], 1), Version::V13);
    }

    #[test]
    fn a_disagreement_names_both_ends() {
        let text = disagreement(&BOTH, 3, &Hello::default());
        assert_eq!(text, "no common OpenFlow version: this end speaks 1.3, 1.0, the other up to 1.2");
        let text = disagreement(&[Version::V13], 9, &bitmap(&[5, 9]));
        assert_eq!(text, "no common OpenFlow version: this end speaks 1.3, the other 1.4, version number 0x09");
    }
}
