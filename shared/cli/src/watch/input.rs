//! Keys as the terminal reports them.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use premath_view::live::Key;

/// What a person did at the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// A key of the view.
    Key(Key),
    /// Paint it all again: the terminal has another size, or that was asked for.
    Repaint,
}

/// Reads an event of the terminal; `None` where it means nothing.
pub(super) fn typed(event: &Event) -> Option<Typed> {
    match event {
        Event::Resize(..) => Some(Typed::Repaint),
        Event::Key(key) if key.kind != KeyEventKind::Release => of_key(key),
        _ => None,
    }
}

fn of_key(key: &KeyEvent) -> Option<Typed> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return Some(Typed::Key(match key.code {
            KeyCode::Char('l') => return Some(Typed::Repaint),
            KeyCode::Char('f' | 'd') => Key::PageDown,
            KeyCode::Char('b' | 'u') => Key::PageUp,
            KeyCode::Char('h') => Key::Backspace,
            _ => return None,
        }));
    }
    if key.modifiers.contains(KeyModifiers::ALT) {
        return None;
    }
    Some(Typed::Key(match key.code {
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Tab | KeyCode::BackTab => Key::Tab,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_with_its_modifiers() {
        let key = |code, modifiers| typed(&Event::Key(KeyEvent::new(code, modifiers)));
        let none = KeyModifiers::NONE;
        for (code, modifiers, expected) in [
            (KeyCode::Char('q'), none, Some(Typed::Key(Key::Char('q')))),
            (
                KeyCode::Char('P'),
                KeyModifiers::SHIFT,
                Some(Typed::Key(Key::Char('P'))),
            ),
            (
                KeyCode::Char('l'),
                KeyModifiers::CONTROL,
                Some(Typed::Repaint),
            ),
            (KeyCode::Char('q'), KeyModifiers::CONTROL, None),
            (KeyCode::Char('q'), KeyModifiers::ALT, None),
            (KeyCode::F(1), none, None),
        ] {
            assert_eq!(key(code, modifiers), expected, "{code:?} {modifiers:?}");
        }
        assert_eq!(typed(&Event::Resize(80, 24)), Some(Typed::Repaint));
        assert_eq!(typed(&Event::FocusGained), None);
    }
}
