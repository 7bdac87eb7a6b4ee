//! Draws random profiles of switches with two or three levels of tables, which are hidden from the profiler in
//! virtual time.
use crate::ExperimentError;
use weir_profile::Profile;
use weir_traffic::RandomStream;

/// Eviction policies that take effect when an entry is added to a full level. (Ordered by packets, a new entry always
/// has the fewest, so evicting the entry with the fewest equals no policy.)
const POLICIES: [&str; 8] = [
    "",
    "{ attribute = \"modified\", evicts = \"lowest\" }",
    "{ attribute = \"priority\", evicts = \"lowest\" }",
    "{ attribute = \"priority\", evicts = \"highest\" }",
    "{ attribute = \"used\", evicts = \"highest\" }",
    "{ attribute = \"traffic\", evicts = \"highest\" }",
    "{ attribute = \"priority\", evicts = \"lowest\" }, { attribute = \"modified\", evicts = \"lowest\" }",
    "{ attribute = \"priority\", evicts = \"highest\" }, { attribute = \"used\", evicts = \"highest\" }",
];

/// Draws profile `number` of a seed.
pub(super) fn profile(seed: u64, number: u32) -> Result<Profile, ExperimentError> {
    let mut random = RandomStream::new(seed, number.into(), 0);
    // Deletion costs are drawn from a separate stream, so that all other values equal those of earlier records.
    let mut deleting = RandomStream::new(seed, number.into(), 1);
    // A separate stream draws the time at which changes take effect, for every fourth profile.
    let mut effect = RandomStream::new(seed, number.into(), 2);
    let effect = if number % 4 == 1 { format!("effect = {}\n", us(&mut effect, 500.0, 8000.0)) } else { String::new() };
    let text = effect + &text(&mut random, &mut deleting, number);
    Profile::parse(&text, &format!("hidden {number}"))
        .map_err(|error| ExperimentError::Case(format!("{error}\n{text}")))
}

/// Draws a time between two numbers of microseconds.
fn us(random: &mut RandomStream, from: f64, to: f64) -> String {
    format!("\"{:.3}us\"", between(random, from, to))
}

fn between(random: &mut RandomStream, from: f64, to: f64) -> f64 {
    from + (to - from) * random.unit()
}

fn text(random: &mut RandomStream, deleting: &mut RandomStream, number: u32) -> String {
    let levels = 2 + number % 2;
    let policy = POLICIES[(number as usize / 2) % POLICIES.len()];
    let batching = if number % 4 < 2 {
        format!("batching = {{ timeout = {}, most = {} }}\n", us(random, 500.0, 5000.0), 4 + random.below(20))
    } else {
        String::new()
    };
    let mut text = format!(
        "name = \"hidden-{number}\"\ndevice = \"Drawn\"\norigin = \"assumed\"\nsource = \"Drawn\"\n{}{batching}barrier = {{ lag = {} }}\n",
        if policy.is_empty() { String::new() } else { format!("policy = [{policy}]\n") },
        us(random, 300.0, 1500.0)
    );
    let (mut size, mut base) = (40 + random.below(80), between(random, 3.0, 10.0));
    for level in 0..levels {
        let is_last = level + 1 == levels;
        let has_end = !is_last || random.below(2) == 0;
        text += &format!("[[level]]\nname = \"level {}\"\n", level + 1);
        if has_end {
            text += &format!("size = {size}\n");
        }
        text += &costs(random, level == 0, batching.is_empty());
        if number % 3 < 2 {
            // Profiles without this key delete an entry in the time of writing one.
            text += &format!("delete = {}\n", us(deleting, 100.0, 1500.0));
        }
        text += &forward(random, base, level == 0);
        size += random.below(100);
        base *= between(random, 3.0, 8.0);
    }
    text
}

/// Draws delays by matched fields; in the first level they rise in a step with the time between packets.
fn forward(random: &mut RandomStream, base: f64, is_first: bool) -> String {
    let (l2, l3) = (base * between(random, 0.7, 0.9), base * between(random, 0.8, 1.0));
    let (byte, entry) = (between(random, 1.0, 10.0), base * between(random, 0.1, 0.5));
    let stairs = if is_first {
        let (gap, step) = (us(random, 400.0, 6000.0), base * between(random, 0.1, 0.3));
        format!(", gap_levels = [{gap}], per_gap_level = \"{step:.4}us\"")
    } else {
        String::new()
    };
    format!(
        "forward = {{ base_l2 = \"{l2:.4}us\", base_l3 = \"{l3:.4}us\", base_l2l3 = \"{base:.4}us\", per_byte = \"{byte:.3}ns\", \
         per_entry = \"{entry:.4}ns\"{stairs} }}\n"
    )
}

fn overhead(random: &mut RandomStream, from: f64, to: f64, is_alone: bool) -> String {
    // Each further command in a batch makes every command up to a tenth cheaper.
    let step = if is_alone { 0.0 } else { between(random, 0.0, 0.1) };
    format!("{{ per_entry = {}, speedup = [{:.4}, {step:.4}, 0.0] }}", us(random, from, to), 1.0 - step)
}

fn costs(random: &mut RandomStream, is_first: bool, is_alone: bool) -> String {
    let mut both = |name: &str, from: f64, to: f64| {
        let (single, several) = (overhead(random, from, to, is_alone), overhead(random, from, to, is_alone));
        format!("{name} = {{ single = {single}, several = {several} }}\n")
    };
    if !is_first {
        // Tables in software: the cost of adding does not depend on the entries present.
        let modify = both("modify", 2.0, 6.0);
        return modify + &format!("write = {}\n", us(random, 100.0, 400.0));
    }
    let both = both("add", 3.0, 8.0) + &both("modify", 3.0, 8.0);
    let (shift, search, write) = (us(random, 2.0, 9.0), us(random, 100.0, 500.0), us(random, 300.0, 1500.0));
    both + &format!("shift = {shift}\nsearch = {search}\nwrite = {write}\n")
}
