//! Refuses networks in which floods would go round for ever, before anything starts.
use crate::NetworkError;
use weir_scenario::Scenario;

/// Refuses loops of links if no controller breaks them, and switches flood ([`Scenario::flood_loop`]).
///
/// # Errors
/// A link closes a loop.
pub fn refuse_loops(scenario: &Scenario) -> Result<(), NetworkError> {
    scenario.flood_loop().map_or(Ok(()), |problem| Err(NetworkError::Scenario(problem)))
}
