//! The binomial tree that collective calls run along: any rank may be its root, no rank has more than log2(size) children.

/// A rank's place in the tree over `size` ranks, counted from the root, which is 0. The ranks below child `c` of rank `v`
/// are `c` up to the next child: in the order of children, all of `v`'s own come in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    place: usize,
    size: usize,
}

impl Node {
    pub(super) fn new(place: usize, size: usize) -> Self {
        Self { place, size }
    }

    pub(super) fn parent(self) -> Option<usize> {
        (self.place != 0).then(|| self.place & (self.place - 1))
    }

    /// How many levels are below.
    pub(super) fn height(self) -> u32 {
        let whole = if self.place == 0 { self.size } else { 1 << self.place.trailing_zeros() };
        whole.min(self.size - self.place).ilog2()
    }

    /// In ascending order.
    pub(super) fn children(self) -> impl DoubleEndedIterator<Item = usize> + Clone {
        let span = if self.place == 0 { usize::BITS } else { self.place.trailing_zeros() };
        let steps = (0..span).take_while(move |step| self.place + (1 << step) < self.size);
        let count = steps.count() as u32;
        (0..count).map(move |step| self.place + (1 << step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_hangs_below_the_root_once_and_in_order() {
        for size in 1..70 {
            let mut seen = Vec::new();
            visit(0, size, &mut seen);
            assert_eq!(seen, (0..size).collect::<Vec<_>>(), "of {size}");
        }
    }

    /// The height of the tree below.
    fn visit(place: usize, size: usize, seen: &mut Vec<usize>) -> u32 {
        seen.push(place);
        let mut height = 0;
        for child in Node::new(place, size).children() {
            assert_eq!(Node::new(child, size).parent(), Some(place));
            height = height.max(visit(child, size, seen) + 1);
        }
        assert_eq!(Node::new(place, size).height(), height);
        height
    }
}
