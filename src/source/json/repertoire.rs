//! The shapes a decoder knows, the frequent ones first, and when to learn more.

use super::lesson::Lesson;
use super::record::Span;
use super::shape::Shape;

/// More are not worth trying one after the other.
const ROOM: usize = 24;
/// A shape that fitted fewer lines than this before it had to go was not worth learning.
const WORTHWHILE: u32 = 16;
/// The longest pause between lessons, in lines, in a log whose every line is different.
const LONGEST_PAUSE: u32 = 4096;
/// At this score all are halved, so that what is frequent now comes first soon.
const HIGHEST_SCORE: u32 = 1024;

/// Shapes in the order in which to try them.
#[derive(Default)]
pub(super) struct Repertoire {
    known: Vec<Known>,
    learned: usize,
    /// Lines to let pass before the next lesson, and how many that were the last time.
    pause: u32,
    last_pause: u32,
}

pub(super) struct Known {
    pub shape: Shape,
    /// What the shape is made from.
    lesson: Lesson,
    pub id: usize,
    score: u32,
}

impl Repertoire {
    pub fn shapes(&self) -> &[Known] {
        &self.known
    }

    /// Lets the shape at the position learn from values of a line that fitted, each with its step.
    #[cold]
    pub fn broaden(&mut self, position: usize, text: &[u8], values: &[(u32, Span)]) {
        let Known { shape, lesson, .. } = &mut self.known[position];
        let broadened = values.iter().filter(|(step, span)| lesson.broaden(*step, span.of(text)));
        if broadened.count() > 0 {
            *shape = lesson.shape();
        }
    }

    /// Notes that the shape at the position has fitted.
    #[inline(always)]
    pub fn fitted(&mut self, position: usize) {
        self.known[position].score += 1;
        if position > 0 && self.known[position].score > self.known[position - 1].score {
            self.known.swap(position, position - 1);
        } else if self.known[position].score >= HIGHEST_SCORE {
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
        for known in &mut self.known {
            if let Some(is_new) = known.lesson.merge(lesson) {
                if is_new {
                    known.shape = known.lesson.shape();
                }
                return true;
            }
        }
        false
    }

    /// Takes in the shape of a lesson, if need be for the one that fitted least.
    pub fn learn(&mut self, lesson: Lesson, shape: Shape) {
        self.known.push(Known { shape, lesson, id: self.learned, score: 0 });
        self.learned += 1;
        if self.known.len() > ROOM {
            let gone = self.known.swap_remove(ROOM - 1);
            if gone.score < WORTHWHILE {
                return self.rest();
            }
        }
        self.last_pause = 0;
    }

    /// Puts off the next lesson, each time for longer, since the last was of no use.
    pub fn rest(&mut self) {
        self.last_pause = (2 * self.last_pause + 1).min(LONGEST_PAUSE);
        self.pause = self.last_pause;
    }
}
