//! A receiver of HTTP requests on loopback, for what batches post.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

/// A request: its head in lower case, and its body.
pub type Posted = (String, Vec<u8>);

/// Listens, and answers each request with the next status, the last one again and
/// again. Returns the address, and the requests as they come.
pub fn receiver(statuses: &'static [&'static str]) -> (String, Receiver<Posted>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let (send, posted) = channel();
    std::thread::spawn(move || {
        let mut statuses = statuses.iter();
        let mut status = "200 OK";
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.expect("a connection"));
            let request = read(&mut stream);
            // Before the answer: the batch may end with it.
            let _ = send.send(request);
            status = statuses.next().copied().unwrap_or(status);
            let answer = format!(
                "HTTP/1.1 {status}\r\nLocation: /other\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            // A client may be gone.
            let _ = stream.get_mut().write_all(answer.as_bytes());
        }
    });
    (format!("http://{address}"), posted)
}

fn read(stream: &mut BufReader<TcpStream>) -> Posted {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        let count = stream.read_line(&mut line).expect("a line of the head");
        if count == 0 || line == "\r\n" {
            break;
        }
        let line = line.to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("the body");
    (head, body)
}
