//! A trait of one's own may be anybody's.

trait Change {
    const NAME: &'static str;
}

#[derive(Debug)]
enum Delete {}

impl Change for Delete {
    const NAME: &'static str = "delete";
}

fn main() {
    let _ = Delete::NAME;
}
