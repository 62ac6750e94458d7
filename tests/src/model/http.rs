//! As much of HTTP/1.1 as agents' clients speak to a provider.

use std::io::{self, BufRead, Read, Write};

/// The most bytes of a request.
const LARGEST: u64 = 32 << 20;

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    /// The token in its `Authorization`.
    pub(super) bearer: Option<String>,
    pub(super) body: Vec<u8>,
}

/// Reads a request; `None` where the connection was closed before one.
pub(super) fn read(stream: &mut impl BufRead) -> io::Result<Option<Request>> {
    let first = line(stream)?;
    let mut words = first.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Ok(None);
    };
    let (mut length, mut chunked, mut bearer) = (0_u64, false, None);
    loop {
        let header = line(stream)?;
        let Some((name, value)) = header.split_once(':') else {
            break;
        };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().map_err(io::Error::other)?,
            "authorization" => bearer = value.strip_prefix("Bearer ").map(str::to_owned),
            "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
            _ => {}
        }
    }
    let mut body = Vec::new();
    if chunked {
        chunks(stream, &mut body)?;
    } else {
        stream.take(length.min(LARGEST)).read_to_end(&mut body)?;
    }
    Ok(Some(Request {
        method: method.to_owned(),
        path: path.to_owned(),
        bearer,
        body,
    }))
}

fn chunks(stream: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let size = line(stream)?;
        let size = size.split(';').next().unwrap_or_default();
        let size = u64::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
        if size.saturating_add(body.len() as u64) > LARGEST {
            return Err(io::Error::other("the request is too large"));
        }
        stream.take(size).read_to_end(body)?;
        line(stream)?;
        if size == 0 {
            return Ok(());
        }
    }
}

fn line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut bytes = Vec::new();
    stream.take(64 << 10).read_until(b'\n', &mut bytes)?;
    Ok(String::from_utf8_lossy(bytes.trim_ascii_end()).into_owned())
}

/// Answers with a document.
pub(super) fn answer(
    stream: &mut impl Write,
    status: u16,
    headers: &[(&str, String)],
    body: &str,
) -> io::Result<()> {
    write!(stream, "HTTP/1.1 {status} {}\r\n", reason(status))?;
    for (name, value) in headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    write!(
        stream,
        "content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )?;
    stream.flush()
}

/// Answers with a stream of events; one that is cut has no end.
pub(super) fn stream(stream: &mut impl Write, events: &[String], cut: bool) -> io::Result<()> {
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n",
    )?;
    for event in events {
        write!(stream, "{:x}\r\n{event}\r\n", event.len())?;
        stream.flush()?;
    }
    if !cut {
        stream.write_all(b"0\r\n\r\n")?;
    }
    stream.flush()
}

const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_comes_by_its_length_or_in_chunks() {
        for text in [
            "POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello and more",
            "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
        ] {
            let request = read(&mut text.as_bytes()).unwrap().unwrap();
            assert_eq!(
                (request.method.as_str(), request.path.as_str()),
                ("POST", "/a")
            );
            assert_eq!(request.body, b"hello");
        }
        assert!(read(&mut &b""[..]).unwrap().is_none());
    }

    #[test]
    fn a_stream_that_is_cut_has_no_last_chunk() {
        let sent = |cut| {
            let mut sent = Vec::new();
            stream(&mut sent, &["data: x\n\n".to_owned()], cut).unwrap();
            String::from_utf8(sent).unwrap()
        };
        assert!(sent(false).ends_with("9\r\ndata: x\n\n\r\n0\r\n\r\n"));
        assert!(sent(true).ends_with("9\r\ndata: x\n\n\r\n"));
    }
}
