//! Settings of the application.
use std::time::Duration;

/// Settings of the application, for all its routers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualRouterSettings {
    /// Time after which a neighbour that was not heard of is asked again. One that does not answer is forgotten. At
    /// least a second; 300 s unless set.
    pub neighbour_age: Duration,
    /// Time between two comparisons of what a switch has with what it should have. At least a second; 60 s unless set.
    pub check_interval: Duration,
    /// Most errors of ICMP of a router in a second (RFC 1812, 4.3.2.8); 100 unless set.
    pub errors_per_second: u32,
    /// Most neighbours of a router that are learned; 4096 unless set.
    pub max_neighbours: usize,
}

impl Default for VirtualRouterSettings {
    fn default() -> Self {
        VirtualRouterSettings {
            neighbour_age: Duration::from_secs(300),
            check_interval: Duration::from_secs(60),
            errors_per_second: 100,
            max_neighbours: 4096,
        }
    }
}
