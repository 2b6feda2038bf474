use device::Page;
use store::EntryShape;

use super::Root;
use crate::path_copying::model::paper_bounds;

#[test]
fn a_root_record_says_what_it_was_made_of_and_is_of_no_other_length() {
    let mut nodes = [0; 16];
    nodes[..3].copy_from_slice(&[900, 30, 1]);
    for longest_key in [None, Some(48)] {
        let shape = EntryShape::fixed(4, 4);
        let root =
            Root { shape, page: Page(77), bounds: paper_bounds(), nodes, height: 3, longest_key };
        let record = root.encode("mu-star");
        assert_eq!(Root::decode(&record, "mu-star").unwrap(), root);
        assert!(Root::decode(&record, "mu").is_err());
        assert!(Root::decode(&[&record[..], &[0]].concat(), "mu-star").is_err());
        assert!(Root::decode(&record[..record.len() - 1], "mu-star").is_err());
    }
}
