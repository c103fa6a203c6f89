use super::{Kind, Kinds, NewSandbox};
use crate::sandboxes::Transaction;

fn with_preset(preset: &str) -> (Kind, NewSandbox) {
    let wanted = NewSandbox { presets: vec![preset.to_owned()], ..NewSandbox::default() };
    (Kind::of(&wanted).unwrap(), wanted)
}

fn total(kinds: &Kinds) -> usize {
    kinds.shares().map(|(_, _, places)| places).sum()
}

#[test]
fn the_name_makes_no_difference_and_everything_else_does() {
    let plain = Kind::of(&NewSandbox::default());
    let named = NewSandbox { name: Some("n".to_owned()), ..NewSandbox::default() };
    assert_eq!(Kind::of(&named), plain);
    for other in [
        NewSandbox { project: Some("/p".into()), ..NewSandbox::default() },
        NewSandbox { presets: vec!["node".to_owned()], ..NewSandbox::default() },
        NewSandbox { settings: [("a".to_owned(), 1.into())].into(), ..NewSandbox::default() },
        NewSandbox { time_to_live_seconds: Some(1), ..NewSandbox::default() },
        NewSandbox { idle_time_to_live_seconds: Some(1), ..NewSandbox::default() },
        NewSandbox { ask: Some(crate::AskPeople::Never), ..NewSandbox::default() },
    ] {
        assert_ne!(Kind::of(&other), plain, "{other:?}");
    }
    let changes = NewSandbox { transaction: Some(Transaction::Overlay), ..NewSandbox::default() };
    assert_eq!(Kind::of(&changes), None);
}

#[test]
fn a_kind_that_is_asked_for_again_takes_places_of_the_one_that_is_not() {
    let mut kinds = Kinds::new(3);
    let (plain, _) = (Kind::of(&NewSandbox::default()).unwrap(), ());
    let (node, wanted) = with_preset("node");
    kinds.missed(&node, &wanted);
    assert_eq!((kinds.places(&plain), kinds.places(&node)), (3, 0), "once is no habit");
    kinds.missed(&node, &wanted);
    assert_eq!((kinds.places(&plain), kinds.places(&node)), (2, 1));
    kinds.hit(&node);
    kinds.missed(&node, &wanted);
    kinds.missed(&node, &wanted);
    assert_eq!((kinds.places(&plain), kinds.places(&node)), (0, 3));
    kinds.missed(&node, &wanted);
    assert_eq!(total(&kinds), 3, "there are no more");
    let (rust, wanted) = with_preset("rust");
    kinds.missed(&rust, &wanted);
    kinds.missed(&rust, &wanted);
    assert_eq!((kinds.places(&node), kinds.places(&rust)), (2, 1));
}

#[test]
fn a_kind_that_cannot_be_prepared_is_tried_less_and_less_often() {
    let mut kinds = Kinds::new(1);
    let (node, wanted) = with_preset("node");
    let mut tried = Vec::new();
    for request in 1..=100 {
        kinds.missed(&node, &wanted);
        if kinds.places(&node) > 0 {
            tried.push(request);
            kinds.failed(&node);
        }
    }
    assert_eq!(tried, [2, 6, 14, 30, 62]);
    let (rust, wanted) = with_preset("rust");
    kinds.missed(&rust, &wanted);
    kinds.missed(&rust, &wanted);
    assert_eq!(kinds.places(&rust), 1, "the place is free for others");
}

#[test]
fn what_is_asked_for_once_each_is_forgotten() {
    let mut kinds = Kinds::new(2);
    for number in 0..1000 {
        let (kind, wanted) = with_preset(&number.to_string());
        kinds.missed(&kind, &wanted);
    }
    assert_eq!((total(&kinds), kinds.shares().count()), (2, 1));
    assert!(kinds.strangers.len() <= super::MAX_STRANGERS);
}
