//! Cells: pieces of memory of a few sizes, without gaps between them.
//!
//! A cell takes a multiple of 32 bytes, its *class*. The cells of a class lie one after another in pages of
//! 16 KiB, and pages one after another in chunks of 1 MiB. What is freed is filled by the last of its kind,
//! a cell by the last cell of its class, a page by the last page; so memory is given back as it is freed, in
//! any order. A cell ends with the number of its owner, which learns of each move.
//!
//! An allocator does not move, so it keeps sizes that few buckets have now: 40 % of the bytes of tables that
//! grow (November 2026, `docs/measured/memory.md`).

use super::bits::{WORD, index};

/// Words by which the sizes of cells differ. Less is unused with smaller steps, and a bucket that grows is
/// copied more often.
const STEP: usize = 4;

/// Bits at the end of a cell for the number of its owner, half a word.
pub(super) const OWNER: usize = u32::BITS as usize;

/// The greatest class of cells in pages, inclusive: 2 KiB, several times a bucket of uniform hashes.
const GREATEST: u8 = 64;

/// The class of a larger cell. It has an allocation of its own.
const LARGE: u8 = u8::MAX;

/// Steps of a page.
const PAGE: u32 = 512;

/// Pages of a chunk.
const CHUNK: u32 = 64;

/// Where a cell is. Class 0 is no cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CellPlace {
    /// In steps from the beginning of the first chunk; of a large one, its number.
    pub(super) at: u32,
    pub(super) class: u8,
}

/// Cells of all classes.
#[derive(Debug)]
pub(super) struct CellArena {
    /// Pages one after another. All chunks but the last are full.
    chunks: Vec<Vec<u64>>,
    /// By page: its class, and which page of the class it is.
    pages: Vec<(u8, usize)>,
    classes: Vec<CellClass>,
    large: Vec<Vec<u64>>,
    free_large: Vec<u32>,
}

/// The cells of one size.
#[derive(Clone, Debug, Default)]
struct CellClass {
    /// Its pages. All but the last are full.
    pages: Vec<u32>,
    cells: usize,
}

impl Default for CellArena {
    fn default() -> Self {
        let classes = vec![CellClass::default(); usize::from(GREATEST) + 1];
        Self { chunks: Vec::new(), pages: Vec::new(), classes, large: Vec::new(), free_large: Vec::new() }
    }
}

impl CellArena {
    /// The class of cells that hold `bits` bits.
    fn class(bits: usize) -> u8 {
        match bits {
            0 => 0,
            _ => u8::try_from(words(bits).div_ceil(STEP)).unwrap_or(LARGE).min(GREATEST + 1),
        }
    }

    /// Adds a cell that holds `bits` bits or a few more, all zero or left by a cell before.
    pub(super) fn add(&mut self, bits: usize, owner: u32) -> CellPlace {
        let class = match Self::class(bits) {
            0 => return CellPlace::default(),
            class if class > GREATEST => LARGE,
            class => class,
        };
        let place = if class == LARGE { self.add_large(words(bits)) } else { self.add_in_page(class) };
        let last = self.cell_mut(place).last_mut().expect("a cell has words");
        *last = u64::from(owner) << OWNER | *last & u64::from(u32::MAX);
        place
    }

    fn add_large(&mut self, words: usize) -> CellPlace {
        let cell = vec![0; words + words / 8];
        let at = if let Some(free) = self.free_large.pop() {
            self.large[free as usize] = cell;
            free
        } else {
            self.large.push(cell);
            number(self.large.len() - 1)
        };
        CellPlace { at, class: LARGE }
    }

    fn add_in_page(&mut self, class: u8) -> CellPlace {
        let of_class = &mut self.classes[usize::from(class)];
        let nth = of_class.cells;
        of_class.cells += 1;
        if nth == of_class.pages.len() * cells_of_page(class) {
            let page = number(self.pages.len() * PAGE as usize) / PAGE;
            self.pages.push((class, of_class.pages.len()));
            of_class.pages.push(page);
            if page.is_multiple_of(CHUNK) {
                // The reserved memory is used as pages are added.
                self.chunks.push(Vec::with_capacity((CHUNK * PAGE) as usize * STEP));
            }
            let chunk = self.chunks.last_mut().expect("a chunk was added for its first page");
            chunk.resize(chunk.len() + PAGE as usize * STEP, 0);
        }
        self.nth(class, nth)
    }

    /// Frees a cell. Calls `moved` with the owner and the new place of each cell that is moved.
    pub(super) fn free(&mut self, place: CellPlace, mut moved: impl FnMut(u32, CellPlace)) {
        let CellPlace { at, class } = place;
        if class == 0 {
            return;
        }
        if class == LARGE {
            self.large[at as usize] = Vec::new();
            return self.free_large.push(at);
        }
        self.classes[usize::from(class)].cells -= 1;
        let last_nth = self.classes[usize::from(class)].cells;
        let last = self.nth(class, last_nth);
        if last != place {
            self.copy(last.at, at, u32::from(class));
            moved(self.owner(place), place);
        }
        let of_class = &mut self.classes[usize::from(class)];
        if last_nth.is_multiple_of(cells_of_page(class))
            && let Some(page) = of_class.pages.pop()
        {
            self.free_page(page, moved);
        }
    }

    /// Frees a page without cells: the last page takes its place.
    fn free_page(&mut self, page: u32, mut moved: impl FnMut(u32, CellPlace)) {
        let (class, nth_page) = self.pages.pop().expect("the freed page is one");
        let last = number(self.pages.len());
        if last != page {
            self.copy(last * PAGE, page * PAGE, PAGE);
            self.pages[page as usize] = (class, nth_page);
            let of_class = &mut self.classes[usize::from(class)];
            of_class.pages[nth_page] = page;
            let first = nth_page * cells_of_page(class);
            let end = of_class.cells.min(first + cells_of_page(class));
            for nth in first..end {
                let place = self.nth(class, nth);
                moved(self.owner(place), place);
            }
        }
        if last.is_multiple_of(CHUNK) {
            self.chunks.pop();
        } else if let Some(chunk) = self.chunks.last_mut() {
            chunk.truncate(chunk.len() - PAGE as usize * STEP);
        }
    }

    /// The words of a cell, of which the owner has the last bits.
    #[inline]
    pub(super) fn cell(&self, CellPlace { at, class }: CellPlace) -> &[u64] {
        match class {
            0 => &[],
            LARGE => &self.large[at as usize],
            _ => &self.chunks[(at / (PAGE * CHUNK)) as usize][in_chunk(at)..][..usize::from(class) * STEP],
        }
    }

    /// The words of a cell, mutable.
    #[inline]
    pub(super) fn cell_mut(&mut self, CellPlace { at, class }: CellPlace) -> &mut [u64] {
        match class {
            0 => &mut [],
            LARGE => &mut self.large[at as usize],
            _ => {
                &mut self.chunks[(at / (PAGE * CHUNK)) as usize][in_chunk(at)..][..usize::from(class) * STEP]
            }
        }
    }

    /// Whether a cell for `bits` bits would be smaller by two classes; of a large one, by half.
    pub(super) fn is_much_larger(&self, place: CellPlace, bits: usize) -> bool {
        match place.class {
            LARGE => bits * 2 < room(self.cell(place)),
            class => Self::class(bits) + 1 < class,
        }
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        let words: usize = self.chunks.iter().chain(&self.large).map(Vec::len).sum();
        words * size_of::<u64>() + self.pages.capacity() * size_of::<(u8, usize)>()
    }

    /// The place of a cell of a class by its number.
    #[inline]
    fn nth(&self, class: u8, nth: usize) -> CellPlace {
        let each = cells_of_page(class);
        let page = self.classes[usize::from(class)].pages[nth / each];
        CellPlace { at: page * PAGE + number(nth % each) * u32::from(class), class }
    }

    fn owner(&self, place: CellPlace) -> u32 {
        self.cell(place).last().map_or(0, |word| number(index(word >> OWNER)))
    }

    /// Copies steps that are in one page to another place in one page.
    fn copy(&mut self, from: u32, to: u32, steps: u32) {
        let ((source, target), len) = ((in_chunk(from), in_chunk(to)), steps as usize * STEP);
        let chunks = [from, to].map(|at| (at / (PAGE * CHUNK)) as usize);
        if chunks[0] == chunks[1] {
            self.chunks[chunks[0]].copy_within(source..source + len, target);
        } else if let Ok([source_chunk, target_chunk]) = self.chunks.get_disjoint_mut(chunks) {
            target_chunk[target..target + len].copy_from_slice(&source_chunk[source..source + len]);
        }
    }
}

#[cfg(test)]
impl CellArena {
    /// All cells, with their owners.
    pub(super) fn all(&self) -> std::collections::BTreeSet<(CellPlace, u32)> {
        let in_pages = (1..=GREATEST).flat_map(|class| {
            let of_class = &self.classes[usize::from(class)];
            assert_eq!(of_class.pages.len(), of_class.cells.div_ceil(cells_of_page(class)));
            (0..of_class.cells).map(move |nth| self.nth(class, nth))
        });
        let large = (0..self.large.len()).map(|at| CellPlace { at: number(at), class: LARGE });
        let large = large.filter(|place| !self.cell(*place).is_empty());
        assert_eq!(self.pages.len(), self.classes.iter().map(|of_class| of_class.pages.len()).sum::<usize>());
        in_pages.chain(large).map(|place| (place, self.owner(place))).collect()
    }
}

/// Cells of a class that a page has room for.
#[inline]
fn cells_of_page(class: u8) -> usize {
    (PAGE / u32::from(class)) as usize
}

/// The word of a chunk at which a place begins.
#[inline]
fn in_chunk(at: u32) -> usize {
    (at % (PAGE * CHUNK)) as usize * STEP
}

/// Bits that a cell holds for its owner.
#[inline]
pub(super) fn room(cell: &[u64]) -> usize {
    (cell.len() * WORD).saturating_sub(OWNER)
}

/// Words of a cell for `bits` bits.
fn words(bits: usize) -> usize {
    (bits + OWNER).div_ceil(WORD)
}

/// A number that is small enough: 2^32 steps are 128 GiB.
#[inline]
fn number(n: usize) -> u32 {
    u32::try_from(n).expect("tables of a worker take less than 128 GiB")
}
