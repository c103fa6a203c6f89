use super::*;

fn text(owner: u32, host: u32) -> Vec<String> {
    lines(owner, host)
        .iter()
        .map(|line| format!("{} {} {}", line.inside, line.outside, line.count))
        .collect()
}

#[test]
fn the_owner_becomes_the_host_id_and_the_rest_stays() {
    assert_eq!(text(0, 1_900_000_000), ["0 1900000000 1", "1 1 65535"]);
    assert_eq!(text(1000, 1_900_000_000), ["1000 1900000000 1", "0 0 1000", "1001 1001 64535"]);
}

#[test]
fn no_id_is_mapped_twice_where_the_host_id_is_an_ordinary_one() {
    assert_eq!(text(0, 60_000), ["0 60000 1", "1 1 59999", "60001 60001 5535"]);
    assert_eq!(text(65_535, 60_000), ["65535 60000 1", "0 0 60000", "60001 60001 5534"]);
    assert_eq!(text(7, 7), ["7 7 1", "0 0 7", "8 8 65528"]);
}
