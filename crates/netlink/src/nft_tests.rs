use super::*;

#[test]
fn masks_are_as_long_as_their_prefix() {
    assert_eq!(mask(4, 8), [255, 0, 0, 0]);
    assert_eq!(mask(4, 32), [255; 4]);
    assert_eq!(mask(4, 0), [0; 4]);
    assert_eq!(mask(16, 0), [0; 16]);
    assert_eq!(mask(16, 128), [255; 16]);
    assert_eq!(mask(16, 10)[..3], [255, 192, 0]);
}
