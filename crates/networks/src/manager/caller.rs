//! Says on whose behalf a request is made.

/// User or operator who makes a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// Operator of the service, with access to the networks of all users.
    Operator,
    /// User of this name, with access to own networks.
    User(String),
}

impl Caller {
    /// Returns true if networks of this owner are shown to the caller.
    pub fn may_see(&self, owner: &str) -> bool {
        match self {
            Caller::Operator => true,
            Caller::User(name) => name == owner,
        }
    }

    pub(super) fn is_operator(&self) -> bool {
        *self == Caller::Operator
    }
}
