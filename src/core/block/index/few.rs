//! The members of a small block, at most three of them without an allocation.

use std::ops::Deref;

/// Slots in any order; 16 bytes.
#[derive(Debug)]
pub(super) enum FewMembers {
    /// The number of members, and their slots.
    Inline(u8, [u32; FewMembers::INLINE]),
    // A vector takes 24 bytes.
    #[expect(clippy::box_collection, reason = "most blocks are small")]
    Listed(Box<Vec<u32>>),
}

impl FewMembers {
    const INLINE: usize = 3;

    /// Adds a member.
    pub(super) fn push(&mut self, slot: u32) {
        match self {
            Self::Inline(len, slots) if usize::from(*len) < Self::INLINE => {
                slots[usize::from(*len)] = slot;
                *len += 1;
            }
            Self::Inline(_, slots) => {
                let all = slots.iter().copied().chain([slot]).collect();
                *self = Self::Listed(Box::new(all));
            }
            Self::Listed(slots) => slots.push(slot),
        }
    }

    /// Removes a member; returns whether it was one. Memory is given back when less than a quarter is used.
    pub(super) fn remove(&mut self, slot: u32) -> bool {
        let Some(at) = self.iter().position(|member| *member == slot) else { return false };
        match self {
            Self::Inline(len, slots) => {
                *len -= 1;
                slots[at] = slots[usize::from(*len)];
            }
            Self::Listed(slots) => {
                slots.swap_remove(at);
                if slots.len() < Self::INLINE || slots.len() * 4 < slots.capacity() {
                    *self = self.iter().copied().collect();
                }
            }
        }
        true
    }

    /// Removes the members for which `stays` returns false.
    pub(super) fn retain(&mut self, stays: impl FnMut(&u32) -> bool) {
        let mut stays = stays;
        *self = self.iter().copied().filter(|slot| stays(slot)).collect();
    }
}

impl Default for FewMembers {
    fn default() -> Self {
        Self::Inline(0, [0; Self::INLINE])
    }
}

impl FromIterator<u32> for FewMembers {
    fn from_iter<I: IntoIterator<Item = u32>>(slots: I) -> Self {
        let mut members = Self::default();
        slots.into_iter().for_each(|slot| members.push(slot));
        members
    }
}

impl Deref for FewMembers {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        match self {
            Self::Inline(len, slots) => &slots[..usize::from(*len)],
            Self::Listed(slots) => slots,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::hash::mix;

    /// Compared with a set, while it grows, shrinks and grows again.
    #[test]
    fn few_members_are_a_set() {
        assert_eq!(size_of::<FewMembers>(), 16);
        let (mut members, mut set) = (FewMembers::default(), BTreeSet::new());
        for step in 0..3000_u64 {
            let slot = u32::try_from(mix(step) % 50).unwrap();
            if mix(step ^ 9) % 4 < [3, 1, 2][usize::try_from(step).unwrap() / 1000] {
                if set.insert(slot) {
                    members.push(slot);
                }
            } else {
                assert_eq!(members.remove(slot), set.remove(&slot));
            }
            if step % 100 == 0 {
                members.retain(|member| member % 3 > 0);
                set.retain(|member| member % 3 > 0);
            }
            let mut all = members.to_vec();
            all.sort_unstable();
            assert!(all.into_iter().eq(set.iter().copied()));
            assert!(matches!(members, FewMembers::Inline(..)) || members.len() >= FewMembers::INLINE);
        }
    }
}
