//! The edges of the token buckets. K is 1024, as in the labels.

use super::Mistake;

/// Inner edges in tokens, ascending: a bucket runs from one edge (included) to the next (excluded).
///
/// The first bucket begins at 0, the last is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    pub input: Vec<i64>,
    pub output: Vec<i64>,
    /// Always the default edges: no flag asks for others.
    pub total: Vec<i64>,
}

const K: i64 = 1024;
const PROMPT_EDGES: [i64; 8] = [K, 2 * K, 4 * K, 8 * K, 16 * K, 32 * K, 64 * K, 128 * K];
const ANSWER_EDGES: [i64; 9] = [16, 64, 128, 256, 512, K, 2 * K, 4 * K, 8 * K];

impl Default for Buckets {
    fn default() -> Self {
        Buckets { input: PROMPT_EDGES.to_vec(), output: ANSWER_EDGES.to_vec(), total: PROMPT_EDGES.to_vec() }
    }
}

/// Edges that were typed, as in `500,2000,8000`.
pub fn parse_edges(flag: &'static str, text: &str) -> Result<Vec<i64>, Mistake> {
    let bad = || Mistake::BadBuckets { flag, text: text.to_owned() };
    let mut edges = Vec::new();
    for edge in text.split(',') {
        let Ok(edge) = edge.trim().parse() else {
            return Err(bad());
        };
        edges.push(edge);
    }
    if are_edges(&edges) { Ok(edges) } else { Err(bad()) }
}

/// Whether these can be inner edges: at least one, all above 0, ascending.
pub fn are_edges(edges: &[i64]) -> bool {
    edges.first().is_some_and(|first| *first > 0) && edges.windows(2).all(|pair| pair[0] < pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_whole_numbers_in_ascending_order() {
        let parse = |text| parse_edges("--input-buckets", text);
        assert_eq!(parse("500, 2000,8000").unwrap(), [500, 2000, 8000]);
        assert_eq!(parse("1").unwrap(), [1]);
        for text in ["", "0,5", "-1", "5,5", "8,4", "1.5", "1K", "5,", "99999999999999999999"] {
            let sentence = parse(text).unwrap_err().to_string();
            assert!(sentence.starts_with("--input-buckets "), "{sentence}");
        }
    }

    #[test]
    fn the_default_edges_are_edges() {
        let Buckets { input, output, total } = Buckets::default();
        assert!(are_edges(&input) && are_edges(&output) && are_edges(&total));
        assert_eq!((input[0], input[7]), (1024, 131_072));
    }
}
