//! Delay percentiles of a line by its load, for packets of one length and of two, with and without a limited buffer.
//!
//! `cargo run -p weir-model --example percentile -- [RATE_IN_MBIT_PER_S]`
use weir_model::station::{SteadyState, mg1, mg1k};
use weir_model::{Law, ModelError};

/// Mean length of the packets in bytes.
const MEAN_BYTES: f64 = 500.0;
/// Places of the limited buffer, including the packet that is being sent.
const PLACES: usize = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mbit_per_s: f64 = std::env::args().nth(1).as_deref().unwrap_or("100").parse()?;
    let byte_s = 8.0 / (mbit_per_s * 1e6);
    // A law of lengths in bytes becomes one of times: so many seconds for each byte.
    let equal = Law::constant(MEAN_BYTES)?.scaled(byte_s)?;
    let two = Law::lattice(&[64.0, 1500.0], &[0.696, 0.304])?.scaled(byte_s)?;
    println!("A line of {mbit_per_s} Mbit/s, Poisson arrivals, times from arrival to the last bit in microseconds\n");
    println!("load  packets                          mean     50 %     99 %   99.9 %     lost");
    for load in [0.5, 0.8, 0.95] {
        let rate = |law: &Law| load / law.mean();
        row(load, "500 bytes", &mg1(rate(&equal), &equal)?)?;
        row(load, "64 or 1500 bytes", &mg1(rate(&two), &two)?)?;
        row(load, "64 or 1500 bytes, 20 places", &mg1k(rate(&two), &two, PLACES)?)?;
    }
    // Formulas say where they do not hold.
    println!(
        "\nload 1.1: {}",
        mg1(1.1 / equal.mean(), &equal).map_or_else(|error| error.to_string(), |_| "answered".into())
    );
    Ok(())
}

fn row(load: f64, packets: &str, queue: &SteadyState) -> Result<(), ModelError> {
    let [p50, p99, p999] = queue.sojourn.quantiles([0.5, 0.99, 0.999])?.map(|delay_s| delay_s * 1e6);
    let (mean, lost) = (queue.sojourn_s * 1e6, queue.loss * 100.0);
    println!("{load:.2}  {packets:<28} {mean:8.1} {p50:8.1} {p99:8.1} {p999:8.1}  {lost:6.3}%");
    Ok(())
}
