//! The shapes a decoder knows, the frequent ones first, and when to learn more.

use super::lesson::Lesson;
use super::shape::{Bounds, Shape};
use super::simd::{Lanes, Text};

/// More are not worth trying one after the other.
const ROOM: usize = 24;
/// A shape that fitted fewer lines than this before it had to go was not worth learning.
const WORTHWHILE: u32 = 16;
/// The longest pause between lessons, in lines, in a log whose every line is different.
const LONGEST_PAUSE: u32 = 4096;
/// So many lines without a shape may follow each other before lines are skipped, and so many are skipped at most.
const FEW_MISSES: u32 = 16;
const MOST_SKIPPED: u32 = 64;
/// At this score all are halved, so that what is frequent now comes first soon.
const HIGHEST_SCORE: u32 = 1024;

/// So many lines of a shape are followed side by side.
pub(super) const SIDE_BY_SIDE: usize = 4;
/// Where few of such lines fit, so many of them are followed one by one, before that is tried again.
const ONE_BY_ONE: u32 = 256;

/// Shapes in the order in which to try them.
#[derive(Default)]
pub(super) struct Repertoire {
    known: Vec<Known>,
    learned: usize,
    editions: u32,
    /// Lines to let pass before the next lesson, and how many that were the last time.
    pause: u32,
    last_pause: u32,
    /// Lines in a row that no shape fitted, and lines to let pass before shapes are tried again.
    misses: u32,
    skipped: u32,
}

pub(super) struct Known {
    pub shape: Shape,
    /// What the shape is made from.
    lesson: Lesson,
    pub id: usize,
    /// Changes whenever the shape does; no two shapes have the same.
    pub edition: u32,
    score: u32,
    /// The numbers of lines that seem to have the shape.
    waiting: [u32; SIDE_BY_SIDE],
    waiting_count: usize,
    /// Lines still to be followed one by one.
    one_by_one: u32,
}

impl Known {
    /// Lets a line wait that begins as the shape does. Returns whether there are enough now.
    #[inline(always)]
    fn wait(&mut self, number: u32) -> bool {
        if self.one_by_one > 0 {
            self.one_by_one -= 1;
            return false;
        }
        self.waiting[self.waiting_count] = number;
        self.waiting_count += 1;
        self.waiting_count == SIDE_BY_SIDE
    }

    /// The lines that wait, the first of them again in free places, and how many there are.
    #[inline(always)]
    pub fn take_waiting(&mut self) -> ([u32; SIDE_BY_SIDE], usize) {
        let count = std::mem::take(&mut self.waiting_count);
        let mut numbers = self.waiting;
        let first = numbers[0];
        numbers.iter_mut().skip(count).for_each(|number| *number = first);
        (numbers, count)
    }

    /// Notes how many of the lines that seemed to have the shape have it.
    #[inline(always)]
    pub fn note_fitting(&mut self, count: u32) {
        if count < SIDE_BY_SIDE as u32 / 2 {
            self.one_by_one = ONE_BY_ONE;
        }
    }
}

impl Repertoire {
    pub fn shapes(&self) -> &[Known] {
        &self.known
    }

    /// Whether a line is to be tried on all shapes: where many lines in a row had none, fewer and fewer are.
    pub fn is_worth_trying(&mut self) -> bool {
        let due = self.skipped == 0;
        self.skipped = self.skipped.saturating_sub(1);
        due
    }

    pub fn note_hit(&mut self) {
        self.misses = 0;
    }

    pub fn note_miss(&mut self) {
        self.misses += 1;
        self.skipped = if self.misses < FEW_MISSES { 0 } else { self.misses.min(MOST_SKIPPED) };
    }

    /// The edition of the shape at the position; none has 0.
    #[inline(always)]
    pub fn edition(&self, position: usize) -> u32 {
        self.known.get(position).map_or(0, |known| known.edition)
    }

    pub fn shapes_mut(&mut self) -> &mut [Known] {
        &mut self.known
    }

    /// Lets the line wait for others of its shape, judged by how it begins. Returns the shape's position if there are
    /// enough of them now.
    #[inline(always)]
    pub fn wait<L: Lanes>(&mut self, lanes: L, text: Text<'_>, start: u32, number: u32) -> Option<usize> {
        let window = text.window(start);
        let begins = |known: &Known| {
            known.shape.steps.first().is_some_and(|step| step.mask & !lanes.equal(window, &step.head) == 0)
        };
        let position = self.known.iter().position(begins)?;
        self.known[position].wait(number).then_some(position)
    }

    /// Lets the shape at the position learn from a line that fitted.
    #[cold]
    pub fn broaden(&mut self, position: usize, text: &[u8], bounds: Bounds<'_>) {
        if self.known[position].lesson.broaden(text, bounds) {
            self.renew(position);
        }
    }

    fn renew(&mut self, position: usize) {
        self.editions += 1;
        let known = &mut self.known[position];
        known.shape = known.lesson.shape();
        known.edition = self.editions;
    }

    /// Notes that the shape at the position has fitted.
    #[inline(always)]
    pub fn fitted(&mut self, position: usize) {
        self.known[position].score += 1;
    }

    /// Moves what fits often to the front; positions change.
    pub fn sort(&mut self) {
        for position in 1..self.known.len() {
            if self.known[position].score > self.known[position - 1].score {
                self.known.swap(position, position - 1);
            }
        }
        if self.known.iter().any(|known| known.score >= HIGHEST_SCORE) {
            self.known.iter_mut().for_each(|known| known.score /= 2);
        }
    }

    /// Whether the shape of a line that fits none is to be learned.
    pub fn wants_lesson(&mut self) -> bool {
        let due = self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        due
    }

    /// Lets a shape that has the keys of the lesson learn from it. Returns whether there is one.
    pub fn merge(&mut self, lesson: &Lesson) -> bool {
        for position in 0..self.known.len() {
            if let Some(is_new) = self.known[position].lesson.merge(lesson) {
                if is_new {
                    self.renew(position);
                } else {
                    self.rest();
                }
                return true;
            }
        }
        false
    }

    /// Takes in the shape of a lesson, if need be for the one that fitted least.
    pub fn learn(&mut self, lesson: Lesson, shape: Shape) {
        self.editions += 1;
        self.known.push(Known {
            shape,
            lesson,
            id: self.learned,
            edition: self.editions,
            score: 0,
            waiting: [0; SIDE_BY_SIDE],
            waiting_count: 0,
            one_by_one: 0,
        });
        self.learned += 1;
        if self.known.len() > ROOM {
            let gone = self.known.swap_remove(ROOM - 1);
            if gone.score < WORTHWHILE {
                return self.rest();
            }
        }
        self.last_pause = 0;
        self.misses = 0;
    }

    /// Puts off the next lesson, each time for longer, since the last was of no use.
    pub fn rest(&mut self) {
        self.last_pause = (2 * self.last_pause + 1).min(LONGEST_PAUSE);
        self.pause = self.last_pause;
    }
}
