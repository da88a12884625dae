//! Paths to the fields of a JSON text.

use crate::json::DEPTH_MAX;

/// The most paths of a rule.
pub(crate) const PATHS_MAX: usize = 64;

/// The way to a field: `$.card.number`, `$.items[*].owner`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path(pub(crate) Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The member of this name.
    Member(String),
    /// Every element of an array.
    Each,
}

impl Path {
    /// Reads `$` and one or more of `.name` and `[*]`; `None` if it is anything else. A name has any characters but those that
    /// stand for something else in a path or a list of them, and those that nobody sees.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut rest = text.strip_prefix('$')?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("[*]") {
                steps.push(Step::Each);
                rest = after;
            } else {
                let after = rest.strip_prefix('.')?;
                let (name, after) = after.split_at(after.find(['.', '[']).unwrap_or(after.len()));
                if name.is_empty() || name.contains(is_foreign) {
                    return None;
                }
                steps.push(Step::Member(name.to_owned()));
                rest = after;
            }
        }
        (!steps.is_empty() && steps.len() <= DEPTH_MAX).then_some(Self(steps))
    }
}

/// Whether no name in a path has this character: it would be another path, or a mistake that lets the field through.
fn is_foreign(char: char) -> bool {
    let is_unseen =
        char.is_whitespace() || char.is_control() || matches!(char, '\u{200b}' | '\u{2060}' | '\u{feff}');
    is_unseen || matches!(char, ']' | '"' | '\'' | '*' | ';' | ',')
}

/// Paths by their steps, so that at each place in a text at most one of them is looked at.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    root: Node,
}

/// Where a path's first steps lead to.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// A path ends here.
    pub(crate) is_field: bool,
    /// What lies behind the step to every element.
    pub(crate) each: Option<Box<Node>>,
    /// What lies behind the step to a member, sorted by the names' beginnings, then by the names.
    members: Vec<Member>,
    /// A bit for each length that a member's name has, in bytes; the longest ones share the last one.
    lengths: u64,
}

/// A member that a path leads through.
#[derive(Debug)]
struct Member {
    beginning: u64,
    name: String,
    node: Node,
}

impl Paths {
    pub(crate) fn new(paths: Vec<Path>) -> Self {
        let mut root = Node::default();
        for Path(steps) in paths {
            steps.into_iter().fold(&mut root, Node::behind).is_field = true;
        }
        Self { root }
    }

    /// Where they begin; none without any.
    pub(crate) fn root(&self) -> Option<&Node> {
        if self.is_empty() { None } else { Some(&self.root) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.root.each.is_none() && self.root.members.is_empty()
    }
}

impl Node {
    /// The node behind this step, which is made if there is none.
    fn behind(&mut self, step: Step) -> &mut Self {
        let Step::Member(name) = step else { return self.each.get_or_insert_default() };
        self.lengths |= length_bit(&name);
        let place = match self.place(&name) {
            Ok(place) => place,
            Err(place) => {
                let member = Member { beginning: beginning(&name), name, node: Self::default() };
                self.members.insert(place, member);
                place
            }
        };
        match self.members.get_mut(place) {
            Some(member) => &mut member.node,
            // There is one at the place that was just found or filled.
            None => self.each.get_or_insert_default(),
        }
    }

    /// The node behind the step to a member of this name.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        if self.lengths & length_bit(name) == 0 {
            return None;
        }
        self.members.get(self.place(name).ok()?).map(|member| &member.node)
    }

    /// Where the member of this name is, or would be.
    fn place(&self, name: &str) -> Result<usize, usize> {
        let wanted = beginning(name);
        self.members.binary_search_by(|member| {
            member.beginning.cmp(&wanted).then_with(|| member.name.as_str().cmp(name))
        })
    }
}

/// A name's first eight bytes as a number: names are told apart by it, most of them.
fn beginning(name: &str) -> u64 {
    name.bytes().take(8).fold(0, |number, byte| number << 8 | u64::from(byte))
}

fn length_bit(name: &str) -> u64 {
    1 << name.len().min(63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_dollar_and_steps() {
        for text in ["$.a", "$.a.b", "$[*]", "$.a[*].b", "$.a[*][*]", "$.größe", "$.a-b_c:d"] {
            assert!(Path::parse(text).is_some(), "{text}");
        }
        for text in [
            "", "$", "a", ".a", "$a", "$.", "$.a.", "$..a", "$.a[", "$.a[0]", "$.a[*]b", "$.a b", "$.'a'",
            "$.a]",
        ] {
            assert!(Path::parse(text).is_none(), "{text}");
        }
        assert!(Path::parse(&format!("${}", ".a".repeat(DEPTH_MAX))).is_some());
        assert!(Path::parse(&format!("${}", ".a".repeat(DEPTH_MAX + 1))).is_none());
    }
}
