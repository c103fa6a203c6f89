use super::{PathText as _, compare};
use proptest::prelude::*;
use std::path::Path;

/// Short texts of few characters: most of them have an odd spelling, and many begin alike.
fn spelling() -> impl Strategy<Value = String> {
    prop_oneof!["[/.a-]{0,6}", "/[/.ab-]{0,12}", "/usr/lib/[/.ab-]{0,6}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]
    #[test]
    fn every_answer_is_that_of_std(one in spelling(), other in spelling(), more in "[/.a-]{0,4}") {
        let longer = format!("{one}{more}");
        for (one, other) in [(&one, &other), (&one, &longer), (&longer, &one)] {
            let (one, other) = (Path::new(one), Path::new(other));
            prop_assert_eq!(compare(one, other), one.cmp(other), "{:?} {:?}", one, other);
            prop_assert_eq!(one.is_in(other), one.starts_with(other), "{:?} {:?}", one, other);
            prop_assert_eq!(one.is_same(other), one == other, "{:?} {:?}", one, other);
        }
    }
}

#[test]
fn all_short_spellings_are_compared_as_std_does() {
    let letters = ["/", ".", "a", "-"];
    let mut spellings = vec![String::new()];
    let mut last = spellings.clone();
    for _ in 0..5 {
        last = last
            .iter()
            .flat_map(|start| letters.map(|letter| format!("{start}{letter}")))
            .collect();
        spellings.extend(last.iter().cloned());
    }
    for one in spellings.iter().map(Path::new) {
        for other in spellings.iter().map(Path::new) {
            assert_eq!(compare(one, other), one.cmp(other), "{one:?} {other:?}");
            assert_eq!(one.is_in(other), one.starts_with(other), "{one:?} {other:?}");
        }
    }
}
