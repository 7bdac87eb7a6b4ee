//! Fits curves that do not fall.

/// Returns the rising curve nearest to points (place, value, weight): neighbours that fall are pooled (Ayer and others
/// 1955).
pub(super) fn rising(points: &[(f64, f64, f64)]) -> Vec<(f64, f64)> {
    let mut pools: Vec<(Vec<f64>, f64, f64)> = Vec::new();
    for (place, value, weight) in points {
        pools.push((vec![*place], *value, *weight));
        while let [.., before, last] = pools.as_slice()
            && before.1 >= last.1
        {
            let weight = before.2 + last.2;
            let value = (before.1 * before.2 + last.1 * last.2) / weight;
            let places = [before.0.as_slice(), last.0.as_slice()].concat();
            pools.truncate(pools.len() - 2);
            pools.push((places, value, weight));
        }
    }
    pools.into_iter().flat_map(|(places, value, _)| places.into_iter().map(move |place| (place, value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_that_fall_are_flat() {
        assert_eq!(
            rising(&[(1.0, 1.0, 1.0), (2.0, 4.0, 1.0), (3.0, 2.0, 1.0), (4.0, 5.0, 1.0)]),
            [(1.0, 1.0), (2.0, 3.0), (3.0, 3.0), (4.0, 5.0)]
        );
    }
}
