//! A trait of one's own may be anybody's.

trait MutationKind {
    const NAME: &'static str;
}

#[derive(Debug)]
enum Delete {}

impl MutationKind for Delete {
    const NAME: &'static str = "delete";
}

fn main() {
    let _ = Delete::NAME;
}
