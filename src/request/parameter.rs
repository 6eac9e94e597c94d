//! Values for the named parameters of a query: `--param name=value`.

use super::Mistake;

/// A parameter and its value as typed; the query's header says which type it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    pub value: String,
}

impl Parameter {
    /// Reads `name=value`. The value may be empty and may hold further `=`.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok(Parameter { name: name.trim().to_owned(), value: value.to_owned() })
            }
            _ => Err(Mistake::NotAParameter { text: text.to_owned() }),
        }
    }

    /// All of `--param`, each name at most once.
    pub fn parse_all(texts: &[String]) -> Result<Vec<Self>, Mistake> {
        let mut parameters: Vec<Parameter> = Vec::with_capacity(texts.len());
        for text in texts {
            let parameter = Parameter::parse(text)?;
            if parameters.iter().any(|other| other.name == parameter.name) {
                return Err(Mistake::ParameterTwice { name: parameter.name });
            }
            parameters.push(parameter);
        }
        Ok(parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_split_at_the_first_equals_sign() {
        let parameter = Parameter::parse("where=a=b").unwrap();
        assert_eq!((parameter.name.as_str(), parameter.value.as_str()), ("where", "a=b"));
        assert_eq!(Parameter::parse("empty=").unwrap().value, "");
    }

    #[test]
    fn a_parameter_without_name_and_one_given_twice_are_mistakes() {
        for text in ["", "a", "=1"] {
            assert!(matches!(Parameter::parse(text), Err(Mistake::NotAParameter { .. })));
        }
        let twice = ["a=1".to_owned(), "a=2".to_owned()];
        let mistake = Parameter::parse_all(&twice).unwrap_err();
        assert!(matches!(mistake, Mistake::ParameterTwice { .. }));
    }
}
