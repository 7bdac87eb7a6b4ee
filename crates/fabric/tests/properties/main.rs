//! What holds whatever happens: random switches, disciplines, arrivals and reconfigurations.
mod ceiling;
mod fairness;
mod model;
mod runs;

use model::{Model, Op, fabric_configs, switch_configs};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// What came in is what went out, was dropped or is queued, packet by packet and in every counter; each queue keeps its order; an
    /// output with packets serves one or says when; buffers hold what they are given and no guarantee is broken.
    #[test]
    fn nothing_is_lost_or_made_up(
        fabric in fabric_configs(),
        configs in proptest::collection::vec(switch_configs(), 4),
        ops in proptest::collection::vec(any::<Op>(), 1..400),
    ) {
        let mut model = Model::new(fabric);
        for config in configs.iter().take(2) {
            model.add(config);
        }
        for op in ops {
            model.apply(op, &configs);
        }
        model.drain();
        model.check_counters();
    }
}
