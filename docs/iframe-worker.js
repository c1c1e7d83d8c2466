// Browsers start no worker from a page that is read from the disk; the search then runs in a hidden
// frame. On pages from a server nothing is changed.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      addEventListener("message", (event) => {
        if (event.source !== this.inner) return;
        this.dispatchEvent(new MessageEvent("message", { data: event.data }));
        this.onmessage?.(event);
      });
      // The worker's own names, in a page of its own; scripts it imports are loaded in turn.
      const names = () => {
        const tell = parent;
        window.postMessage = (data) => tell.postMessage(data, "*");
        window.importScripts = (...urls) => urls.reduce((before, src) => before.then(() =>
          new Promise((resolve) => {
            document.body.append(Object.assign(document.createElement("script"), { src, onload: resolve }));
          })), Promise.resolve());
      };
      const page = this.inner.document;
      page.open();
      page.write(`<body><script>(${names})()</` + `script><script src="${url}"></` + "script></body>");
      page.close();
      this.loaded = new Promise((resolve) => { this.inner.onload = resolve; });
    }
    postMessage(data) {
      this.loaded.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) })));
    }
    terminate() { this.inner.frameElement.remove(); }
  };
}
