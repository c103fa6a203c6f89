use super::*;

#[test]
fn a_spawner_is_recognised_by_its_words_alone() {
    let stage = SpawnerStage { config: 5, socket: 6, setup: 7, broker: None, groups: vec![9, 10] };
    let words: Vec<OsString> =
        stage.words().into_iter().map(|word| word.into_string().unwrap().into()).collect();
    assert_eq!(SpawnerStage::of_words(&words), Some(stage));
    for other in [
        &["sandbox"][..],
        &["sandbox", "run"],
        &["sandbox", WORD],
        &["sandbox", WORD, "1", "2", "x", "4"],
    ] {
        let words: Vec<OsString> = other.iter().map(OsString::from).collect();
        assert_eq!(SpawnerStage::of_words(&words), None, "{other:?}");
    }
}
