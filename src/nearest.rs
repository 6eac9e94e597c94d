//! The known word nearest to one that was typed, so that an error can say what was probably meant.

use std::cmp::Reverse;

/// The candidate with the fewest edits to `word`, if it is near enough to be a likely slip of the pen, or continues it.
///
/// Case does not count, and `_` and `-` are the same. Of equally near candidates the one with the same beginning wins.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = folded(word);
    let allowed = (word.len() / 3).max(1);
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let letters = folded(candidate);
            let edits = edits(&word, &letters);
            let slip = edits <= allowed && edits < letters.len();
            let cut_short = word.len() >= SHORTEST_STEM && letters.starts_with(&word);
            let same = word.iter().zip(&letters).take_while(|(a, b)| a == b);
            (slip || cut_short).then_some(((edits, Reverse(same.count())), candidate))
        })
        .min_by_key(|(rank, _)| *rank)
        .map(|(_, candidate)| candidate)
}

/// Fewer letters begin too many words to say which was meant.
const SHORTEST_STEM: usize = 3;

/// `; did you mean NEAREST?`, or nothing where no candidate is near: made to follow the statement of what is unknown.
pub fn suggestion<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, candidates) {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None => String::new(),
    }
}

fn folded(word: &str) -> Vec<char> {
    word.chars().flat_map(char::to_lowercase).map(|c| if c == '_' { '-' } else { c }).collect()
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn edits(a: &[char], b: &[char]) -> usize {
    // A swap looks two rows back, so three rows of the table are alive at once.
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &to) in b.iter().enumerate() {
            let mut cost = (last[j] + usize::from(from != to)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && from == b[j - 1] && a[i - 1] == to {
                cost = cost.min(before_last[j - 1] + 1);
            }
            row.push(cost);
        }
        before_last = last;
        last = row;
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [&str; 5] = ["input-bucket", "output-bucket", "model", "hour", "tenant"];

    #[test]
    fn a_slip_of_the_pen_names_the_word_that_was_meant() {
        for (typed, meant) in [
            ("input-buckt", "input-bucket"),
            ("Input_Bucket", "input-bucket"),
            ("ouput-bucket", "output-bucket"),
            ("modle", "model"),
            ("huor", "hour"),
        ] {
            assert_eq!(nearest(typed, WORDS), Some(meant), "{typed}");
        }
    }

    #[test]
    fn a_word_cut_short_names_the_whole() {
        assert_eq!(nearest("ttft", ["total_latency_ms", "ttft_ms"]), Some("ttft_ms"));
        assert_eq!(nearest("in", WORDS), None);
    }

    #[test]
    fn of_equally_near_words_the_one_that_begins_alike_wins() {
        assert_eq!(nearest("dsc", ["asc", "desc"]), Some("desc"));
    }

    #[test]
    fn a_word_unlike_all_others_has_no_nearest() {
        for typed in ["", "x", "zzzzzz", "continent"] {
            assert_eq!(nearest(typed, WORDS), None, "{typed}");
        }
    }

    #[test]
    fn edits_count_insertion_deletion_replacement_and_swap() {
        let count = |a: &str, b: &str| edits(&folded(a), &folded(b));
        assert_eq!(count("", "abc"), 3);
        assert_eq!(count("abc", ""), 3);
        assert_eq!(count("kitten", "sitting"), 3);
        assert_eq!(count("abcd", "abdc"), 1);
    }
}
