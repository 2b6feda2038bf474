use super::{Division, HEIGHT_MOST, Pages, Share};
use store::EntryShape;

fn pages(page_bytes: u32, division: Division) -> Pages {
    Pages::new(page_bytes, EntryShape::fixed(4, 4), division).unwrap()
}

#[test]
fn mu_halves_the_area_at_every_level_and_its_root_has_what_its_children_have() {
    let pages = pages(4096, Division::Halves);
    let area = pages.area();
    for height in 2..=HEIGHT_MOST {
        let layout = pages.layout(Share::HALF, height);
        for level in 0..height - 1 {
            let part = layout.part(area, level).unwrap();
            assert_eq!(part.bytes, area >> (level + 1), "height {height} level {level}");
        }
        let root = layout.part(area, height - 1).unwrap();
        let child = layout.part(area, height - 2).unwrap();
        // What the halvings round off is the root's.
        assert!((child.bytes..=child.bytes + u32::from(height)).contains(&root.bytes));
        assert_eq!((root.offset, root.bytes), (0, child.offset));
    }
}

#[test]
fn mu_nodes_below_the_root_keep_their_size_when_the_height_changes() {
    let pages = pages(2048, Division::Halves);
    for level in 0..6 {
        let lower = pages.layout(Share::HALF, level + 2).part(pages.area(), level);
        let higher = pages.layout(Share::HALF, level + 3).part(pages.area(), level);
        assert_eq!(lower, higher);
    }
}

#[test]
fn the_generalised_layout_gives_the_leaf_its_share_and_divides_the_rest_evenly() {
    let pages = pages(4096, Division::Even);
    let area = pages.area();
    for share in [0.5, 0.625, 0.81, 0.9] {
        let share = Share::from_ratio(share).unwrap();
        for height in 2..=HEIGHT_MOST {
            let layout = pages.layout(share, height);
            let leaf = layout.part(area, 0).unwrap();
            assert_eq!(leaf.bytes, share.of(area));
            let inner = (area - leaf.bytes) / (u32::from(height) - 1);
            let mut start = leaf.offset;
            assert_eq!(start + leaf.bytes, area);
            for level in 1..height {
                let part = layout.part(area, level).unwrap();
                assert_eq!(part.offset + part.bytes, start);
                start = part.offset;
                let spread = inner..inner + u32::from(height);
                assert!(spread.contains(&part.bytes), "{part:?}");
            }
            assert_eq!(start, 0);
        }
    }
}

#[test]
fn a_lone_leaf_has_the_whole_area() {
    for division in [Division::Halves, Division::Even] {
        let pages = pages(2048, division);
        let part = pages.lone_leaf().part(pages.area(), 0).unwrap();
        assert_eq!((part.offset, part.bytes), (0, pages.area()));
        assert_eq!(pages.lone_leaf().part(pages.area(), 1), None);
    }
}

#[test]
fn the_leaf_share_of_a_half_makes_mu_star_of_height_two_the_same_as_mu() {
    let (mu, star) = (pages(4096, Division::Halves), pages(4096, Division::Even));
    for level in 0..2 {
        let mu = mu.layout(Share::HALF, 2).part(mu.area(), level);
        assert_eq!(mu, star.layout(Share::HALF, 2).part(star.area(), level));
    }
}

#[test]
fn delta_of_the_paper_is_two_entries_of_a_leaf() {
    let pages = pages(4096, Division::Even);
    let delta = Share::from_ratio(1.0 / 256.0).unwrap();
    let mut share = Share::from_ratio(0.9).unwrap();
    let first = pages.capacity(&pages.layout(share, 2), 0);
    for _ in 0..50 {
        share = share.minus(delta).unwrap();
    }
    let last = pages.capacity(&pages.layout(share, 2), 0);
    assert!((98..=100).contains(&(first - last)), "{first} to {last}");
}

#[test]
fn capacities_of_each_level_follow_the_shape_of_the_entries() {
    for (shape, leaf, inner) in [
        (EntryShape::fixed(4, 4), 252, 252),
        (EntryShape::fixed(8, 4), 168, 168),
        (EntryShape::fixed(8, 8), 126, 168),
    ] {
        let pages = Pages::new(4096, shape, Division::Even).unwrap();
        let layout = pages.layout(Share::HALF, 2);
        assert_eq!(pages.capacity(&layout, 0), leaf, "{shape}");
        assert_eq!(pages.capacity(&layout, 1), inner, "{shape}");
        assert_eq!(pages.entries_most(&layout), (leaf * inner) as u64);
        assert_eq!(pages.capacity(&layout, 2), 0);
    }
}

#[test]
fn keys_of_variable_length_are_bounded_by_the_smallest_inner_node() {
    let pages = Pages::new(4096, EntryShape::VARIABLE, Division::Even).unwrap();
    let layouts = (1..=5).map(|height| pages.layout(Share::HALF, height));
    assert!(layouts.clone().all(|layout| pages.is_feasible(&layout)));
    assert!(!pages.is_feasible(&pages.layout(Share::HALF, 6)));
    let limits = pages.entry_limits(layouts);
    assert!((100..128).contains(&limits.key), "{limits:?}");
    assert!((480..512).contains(&limits.entry), "{limits:?}");
}

#[test]
fn pages_that_hold_no_leaf_are_refused() {
    for bytes in [0, 16, 64, 65_536] {
        assert!(Pages::new(bytes, EntryShape::fixed(8, 8), Division::Even).is_err(), "{bytes}");
    }
    assert!(Pages::new(512, EntryShape::fixed(8, 8), Division::Even).is_ok());
}

#[test]
fn shares_stay_between_nothing_and_all() {
    for wrong in [0.0, -0.5, 1.0, 2.0, f64::NAN, f64::INFINITY] {
        assert_eq!(Share::from_ratio(wrong), None, "{wrong}");
    }
    let (small, half) = (Share::from_ratio(1.0 / 256.0).unwrap(), Share::HALF);
    assert_eq!(half.plus(half), None);
    assert_eq!(small.minus(small), None);
    assert_eq!(small.minus(half), None);
    assert_eq!(half.plus(small).unwrap().minus(small), Some(half));
    assert_eq!(half.rest(), half);
    assert_eq!(Share::from_bits(0), None);
}
