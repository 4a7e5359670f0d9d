//! The neighbours of a vertex in a small component: 24 bytes, and an allocation if there are more than
//! [`INLINE`].

use super::tours::Vertex;

/// Most neighbours that are stored in place.
const INLINE: usize = 5;

/// A set of vertices, in any order.
#[derive(Clone, Debug)]
pub(super) enum Neighbours {
    /// The number of neighbours, and the neighbours followed by zeros.
    Few(u8, [Vertex; INLINE]),
    Many(Box<[Vertex]>),
}

impl Default for Neighbours {
    fn default() -> Self {
        Self::Few(0, [0; INLINE])
    }
}

impl Neighbours {
    pub(super) fn get(&self) -> &[Vertex] {
        match self {
            Self::Few(len, all) => &all[..usize::from(*len)],
            Self::Many(all) => all,
        }
    }

    /// Adds a vertex that is not in the set.
    pub(super) fn insert(&mut self, vertex: Vertex) {
        match self {
            Self::Few(len, all) if usize::from(*len) < INLINE => {
                all[usize::from(*len)] = vertex;
                *len += 1;
            }
            _ => *self = Self::Many([self.get(), &[vertex]].concat().into()),
        }
    }

    /// Removes a vertex.
    ///
    /// # Panics
    /// If it is not in the set.
    pub(super) fn remove(&mut self, vertex: Vertex) {
        let at = self.get().iter().position(|other| *other == vertex);
        let at = at.expect("only a present pair is removed");
        match self {
            Self::Few(len, all) => {
                *len -= 1;
                all[at] = all[usize::from(*len)];
            }
            Self::Many(all) => {
                let mut left = std::mem::take(all).into_vec();
                left.swap_remove(at);
                *self = left.into_iter().collect();
            }
        }
    }
}

impl FromIterator<Vertex> for Neighbours {
    fn from_iter<I: IntoIterator<Item = Vertex>>(vertices: I) -> Self {
        let vertices: Vec<Vertex> = vertices.into_iter().collect();
        let mut all = [0; INLINE];
        match all.get_mut(..vertices.len()) {
            Some(first) => {
                first.copy_from_slice(&vertices);
                Self::Few(u8::try_from(vertices.len()).expect("at most INLINE"), all)
            }
            None => Self::Many(vertices.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertices_are_inserted_and_removed_at_any_size() {
        let mut set = Neighbours::default();
        for vertex in 0..20 {
            assert_eq!(set.get().len(), vertex as usize);
            set.insert(vertex);
        }
        for vertex in (0..20).rev().map(|n| n * 7 % 20) {
            set.remove(vertex);
            assert!(!set.get().contains(&vertex));
            assert_eq!(matches!(set, Neighbours::Few(..)), set.get().len() <= INLINE);
        }
        assert!(set.get().is_empty());
        assert_eq!(size_of::<Neighbours>(), 24);
    }
}
