use super::{Invocation, Kind, Kinds};

fn kind(word: &str) -> Kind {
    Kind(word.to_owned())
}

fn create() -> Invocation {
    Invocation::new(["create"])
}

/// All places are for `plain`.
fn kinds(places: usize) -> Kinds {
    let mut kinds = Kinds::new(places);
    kinds.begin_with(kind("plain"), create());
    kinds
}

fn total(kinds: &Kinds) -> usize {
    kinds.shares().map(|(_, _, places)| places).sum()
}

#[test]
fn a_kind_that_is_asked_for_again_takes_places_of_the_one_that_is_not() {
    let mut kinds = kinds(3);
    let (plain, node, rust) = (kind("plain"), kind("node"), kind("rust"));
    kinds.missed(&node, &create());
    assert_eq!((kinds.places(&plain), kinds.places(&node)), (3, 0), "once is no habit");
    kinds.missed(&node, &create());
    assert_eq!((kinds.places(&plain), kinds.places(&node)), (2, 1));
    kinds.hit(&node);
    kinds.missed(&node, &create());
    kinds.missed(&node, &create());
    assert_eq!((kinds.places(&plain), kinds.places(&node)), (0, 3));
    kinds.missed(&node, &create());
    assert_eq!(total(&kinds), 3, "there are no more");
    kinds.missed(&rust, &create());
    kinds.missed(&rust, &create());
    assert_eq!((kinds.places(&node), kinds.places(&rust)), (2, 1));
}

#[test]
fn a_kind_that_cannot_be_prepared_is_tried_less_and_less_often() {
    let mut kinds = kinds(1);
    let (node, rust) = (kind("node"), kind("rust"));
    let mut tried = Vec::new();
    for request in 1..=100 {
        kinds.missed(&node, &create());
        if kinds.places(&node) > 0 {
            tried.push(request);
            kinds.failed(&node);
        }
    }
    assert_eq!(tried, [2, 6, 14, 30, 62]);
    kinds.missed(&rust, &create());
    kinds.missed(&rust, &create());
    assert_eq!(kinds.places(&rust), 1, "the place is free for others");
}

#[test]
fn what_is_asked_for_once_each_is_forgotten() {
    let mut kinds = kinds(2);
    for number in 0..1000 {
        kinds.missed(&kind(&number.to_string()), &create());
    }
    assert_eq!((total(&kinds), kinds.shares().count()), (2, 1));
    assert!(kinds.strangers.len() <= super::MAX_STRANGERS);
}
