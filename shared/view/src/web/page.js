"use strict";
// Keeps the parts of a page up to date from one stream of the server. A page that
// is not seen holds no stream.
(() => {
  const link = document.getElementById("link");
  if (!link || !("EventSource" in window)) {
    return;
  }
  let stream = null;
  let later = 0;
  let paused = false;

  const text = document.createElement("span");
  text.setAttribute("role", "status");
  const button = document.createElement("button");
  button.type = "button";
  link.replaceChildren(text, " ", button);

  const say = (words, state) => {
    if (text.textContent !== words) {
      text.textContent = words;
    }
    link.dataset.state = state;
    button.textContent = paused ? "Continue updates" : "Pause updates";
  };

  const put = (event) => {
    const place = document.querySelector(`[data-live="${event.type}"]`);
    if (!place || place.innerHTML.trim() === event.data.trim()) {
      return;
    }
    const focused = document.activeElement;
    const inside = focused && place.contains(focused) ? focused : null;
    const id = inside && inside.id;
    const address = inside && inside.getAttribute("href");
    place.innerHTML = event.data;
    if (inside) {
      const same = (id && document.getElementById(id)) ||
        [...place.querySelectorAll("a")].find((a) => a.getAttribute("href") === address);
      if (same) {
        same.focus({ preventScroll: true });
      }
    }
  };

  const close = () => {
    clearTimeout(later);
    if (stream) {
      stream.close();
      stream = null;
    }
  };

  const open = () => {
    close();
    if (paused || document.hidden) {
      return;
    }
    stream = new EventSource("/events");
    stream.onopen = () => say("live", "live");
    stream.onerror = () => {
      say("not connected, trying again", "lost");
      // The browser itself tries again unless the server refused.
      if (stream && stream.readyState === EventSource.CLOSED) {
        close();
        later = setTimeout(open, 5000);
      }
    };
    for (const place of document.querySelectorAll("[data-live]")) {
      stream.addEventListener(place.dataset.live, put);
    }
  };

  button.addEventListener("click", () => {
    paused = !paused;
    if (paused) {
      close();
      say("updates paused", "paused");
    } else {
      say("connecting", "lost");
      open();
    }
  });
  document.addEventListener("visibilitychange", open);
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => event.persisted && open());
  say("connecting", "lost");
  open();
})();
