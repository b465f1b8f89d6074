//! Groups whose threads run one after the other.

use warpwire_device::coop::{Group, Team};

/// How many threads a group has, and in how many teams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Teams; a grid's blocks.
    pub teams: u32,
    /// Threads of each.
    pub team_size: u32,
}

impl Shape {
    /// One team.
    #[must_use]
    pub const fn flat(size: u32) -> Self {
        Self { teams: 1, team_size: size }
    }

    /// A grid.
    #[must_use]
    pub const fn grid(teams: u32, team_size: u32) -> Self {
        Self { teams, team_size }
    }

    /// Threads of the whole group.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.teams * self.team_size
    }

    /// Every thread of the group, in order. A primitive that does not sync may be called with one after the other: none of
    /// them waits for another.
    pub fn members(self) -> impl Iterator<Item = Member> {
        (0..self.size()).map(move |rank| Member { rank, shape: self })
    }
}

/// One thread of a group that does not exist.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    rank: u32,
    shape: Shape,
}

impl Member {
    /// Thread `rank` of a group of this shape.
    #[must_use]
    pub const fn new(rank: u32, shape: Shape) -> Self {
        Self { rank, shape }
    }
}

impl Group for Member {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.shape.size()
    }

    fn team(&self) -> Team {
        let Shape { teams, team_size } = self.shape;
        Team { rank: self.rank % team_size, size: team_size, index: self.rank / team_size, teams }
    }
}
