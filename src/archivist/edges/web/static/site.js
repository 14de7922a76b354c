// Search as you type, live parts, folds that load when opened, and keys. Everything works without it too.

/** Fetch a page of ours and return one element of it, or null. */
async function fetchPart(url, id, signal) {
  const response = await fetch(url, { headers: { Accept: "text/html" }, signal });
  if (!response.ok) return null;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  return page.getElementById(id);
}

function swap(id, part) {
  const old = document.getElementById(id);
  if (!old || !part) return;
  // The chosen row stays chosen: an update must not take the focus from who walks through a list by keys.
  const row = old.querySelector("[data-at]");
  const link = row?.querySelector("a")?.getAttribute("href");
  const hadFocus = row?.contains(document.activeElement);
  row?.removeAttribute("data-at");
  if (old.innerHTML === part.innerHTML) {
    row?.setAttribute("data-at", "");
    return;
  }
  // What was loaded later is not loaded again with each update.
  const loaded = [...old.querySelectorAll("[data-loaded][id]")];
  old.replaceChildren(...part.childNodes);
  for (const each of loaded) document.getElementById(each.id)?.replaceWith(each);
  watchAll(old);
  const same = link && old.querySelector(`a[href="${CSS.escape(link)}"]`);
  if (!same) return;
  same.closest("li, tr")?.setAttribute("data-at", "");
  if (hadFocus) same.focus({ preventScroll: true });
}

function watchSearch(form) {
  const id = form.dataset.search;
  let timer, running;
  const search = async () => {
    running?.abort();
    running = new AbortController();
    const fields = [...new FormData(form)].filter(([, value]) => value);
    const query = new URLSearchParams(fields).toString();
    const url = form.action + (query ? `?${query}` : "");
    try {
      swap(id, await fetchPart(url, id, running.signal));
      history.replaceState(null, "", url);
    } catch (error) {
      if (error.name !== "AbortError") location.assign(url);
    }
  };
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, 150); });
  form.addEventListener("submit", (event) => { event.preventDefault(); search(); });
}

function watchFolds(root) {
  for (const fold of root.querySelectorAll("details[data-src]")) {
    fold.addEventListener("toggle", async () => {
      const url = fold.dataset.src;
      if (!fold.open || !url) return;
      delete fold.dataset.src;
      const steps = await fetchPart(url, "steps");
      if (!steps) return;
      steps.removeAttribute("id");
      fold.append(steps);
      watchFolds(steps);
    });
  }
}

/** Fill the parts of a page that take longer to make than the page itself. */
function loadParts(root) {
  for (const part of root.querySelectorAll("[data-load][id]")) {
    if (part.hasAttribute("data-loaded")) continue;
    part.setAttribute("data-loaded", "");
    fetchPart(part.dataset.load, part.id).then((news) => { if (news) part.replaceChildren(...news.childNodes); });
  }
}

function watchChanges() {
  const parts = [...document.querySelectorAll("[data-live][id]")];
  if (!parts.length) return;
  let timer;
  const refresh = () => {
    // A form that is being filled in must not be replaced under the hands of its user.
    const busy = document.activeElement?.closest("[data-live] form, [data-live] details[open]");
    if (busy || new URLSearchParams(location.search).has("after")) return;
    // An answer that comes after a search began would replace what was found.
    const url = location.href;
    for (const part of parts) {
      fetchPart(url, part.id).then((news) => { if (url === location.href) swap(part.id, news); });
    }
  };
  const events = new EventSource("/api/events");
  const soon = () => { clearTimeout(timer); timer = setTimeout(refresh, 150); };
  const names = ["change", "memories_added", "memory_highlight", "reflection_complete"];
  for (const name of names) events.addEventListener(name, soon);
  const status = document.getElementById("connection");
  if (status) {
    events.onopen = () => { status.textContent = "Connected: updates as it happens."; };
    events.onerror = () => { status.textContent = "The server does not answer; trying again."; };
  }
  addEventListener("pagehide", () => events.close());
}

function watchKeys() {
  addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
    if (isTyping || event.metaKey || event.ctrlKey || event.altKey) return;
    if (event.key === "/") {
      const field = document.querySelector("input[type=search]");
      if (field) { event.preventDefault(); field.focus(); field.select(); }
      return;
    }
    if (event.key !== "j" && event.key !== "k") return;
    const rows = [...document.querySelectorAll("[data-keys] > li, main tbody > tr")];
    if (!rows.length) return;
    const before = rows.findIndex((row) => row.hasAttribute("data-at"));
    rows[before]?.removeAttribute("data-at");
    const at = Math.min(rows.length - 1, Math.max(0, before + (event.key === "j" ? 1 : -1)));
    rows[at].setAttribute("data-at", "");
    const link = rows[at].querySelector("a, summary");
    (link ?? rows[at]).focus();
    rows[at].scrollIntoView({ block: "nearest" });
  });
}

function watchAll(root) {
  for (const form of root.querySelectorAll("form[data-search]")) watchSearch(form);
  watchFolds(root);
  loadParts(root);
}

watchAll(document);
watchChanges();
watchKeys();
