//! Models a switch and its controller as one queue: the base models.
use crate::ModelError;
use crate::check::{positive, share};

/// Way to combine the service times of both paths into one service rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceAveraging {
    /// Mean service time over both paths.
    Time,
    /// Mean service rate over both paths, as in Ansell (2017, equation 7.2). It gives microseconds where packets take
    /// milliseconds, and is only for comparison.
    Rate,
}

/// Returns the service rate per second of a switch and its controller as one server, for [`mm1`](crate::station::mm1)
/// or [`mm1k`](crate::station::mm1k). A share `p` of the packets takes `path_s`, the sum of packet-in, controller and
/// packet-out; the others take `switch_s`, in seconds.
///
/// # Errors
/// `DOMAIN` for a share outside 0 to 1 and times that are not above 0.
pub fn base_service_rate(p: f64, switch_s: f64, path_s: f64, combine: ServiceAveraging) -> Result<f64, ModelError> {
    let p = share("p", p)?;
    let (switch, path) = (positive("s_switch", switch_s)?, positive("s_path", path_s)?);
    Ok(match combine {
        ServiceAveraging::Time => 1.0 / ((1.0 - p) * switch + p * path),
        ServiceAveraging::Rate => (1.0 - p) / switch + p / path,
    })
}
