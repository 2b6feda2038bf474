use alloc::vec::Vec;

use super::Bounds;

#[test]
fn a_walk_over_bounds_that_lead_backwards_ends() {
    let bounds = |lower: &[u8], upper: &[u8]| Bounds {
        lower: lower.to_vec(),
        upper: upper.to_vec(),
        has_upper: true,
    };
    // Node `b` says that `a` begins behind it, and that the other way round.
    let leaves = [bounds(b"a", b"b"), bounds(b"b", b"a")];
    let (mut key, mut passed) = (Vec::from(*b"a"), 0);
    for leaf in leaves.iter().cycle().take(10) {
        if leaf.pass(&mut key).is_none() {
            break;
        }
        passed += 1;
    }
    assert_eq!((passed, &key[..]), (1, &b"b"[..]));
    let last = Bounds { lower: key.clone(), ..Bounds::default() };
    assert_eq!(last.pass(&mut key), Some(false));
}
