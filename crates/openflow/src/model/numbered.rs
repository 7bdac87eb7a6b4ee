//! Declares the enums of numbers in messages that stand for one of several named cases: commands, types, classes.

/// Declares an enum with the number of each case. Every other number becomes the case `Unknown`, which keeps it, so
/// that encoding reproduces the bytes decoded, and the switch can refuse the number with the right error code.
///
/// An enum that JSON shows as its number has the attribute `#[serde(into = "...")]`; without it, JSON shows the name.
macro_rules! numbered_enum {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident: $number:ty {
            $($(#[$doc:meta])* $case:ident = $value:literal,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $case,)*
            /// A number that stands for no case.
            Unknown($number),
        }

        impl $name {
            /// Every case that has a name, in the order of their numbers.
            pub const NAMED: &[$name] = &[$($name::$case,)*];

            /// Returns the case for a number in a message.
            pub const fn from_number(number: $number) -> $name {
                match number {
                    $($value => $name::$case,)*
                    other => $name::Unknown(other),
                }
            }

            /// Returns the number in messages.
            pub const fn number(self) -> $number {
                match self {
                    $($name::$case => $value,)*
                    $name::Unknown(number) => number,
                }
            }
        }

        impl From<$name> for $number {
            fn from(value: $name) -> $number {
                value.number()
            }
        }

        impl From<$number> for $name {
            fn from(number: $number) -> $name {
                $name::from_number(number)
            }
        }
    };
}

pub(super) use numbered_enum;

#[cfg(test)]
mod tests {
    use crate::model::group::{GroupCommand, GroupKind};
    use crate::model::role::Role;
    use serde_json::json;

    #[test]
    fn every_number_comes_back() {
        for number in 0..=u8::MAX {
            assert_eq!(GroupKind::from_number(number).number(), number);
            let is_named = GroupKind::NAMED.iter().any(|kind| kind.number() == number);
            assert_eq!(GroupKind::from_number(number) == GroupKind::Unknown(number), !is_named, "{number}");
        }
        assert_eq!(GroupCommand::from_number(4), GroupCommand::Unknown(4));
    }

    #[test]
    fn json_shows_a_number_or_a_name() {
        assert_eq!(json!([GroupCommand::RemoveBucket, GroupCommand::Unknown(9)]), json!([5, 9]));
        assert_eq!(json!([Role::Master, Role::Unknown(9)]), json!(["Master", {"Unknown": 9}]));
    }
}
