"use strict";
// Building pages. Text from records reaches a page as text (textContent), never as markup.
const dom = (() => {
  // An element: `make("a", { class: "open", href: "#x", click: act }, "text", [more, elements], null)`. Attributes that
  // are null, undefined or false are left out; a function listens to the event of that name.
  const fill = (element, attributes, children) => {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (typeof value === "function") element.addEventListener(name, value);
      else if (/^on|^style$|^srcdoc$/i.test(name)) throw new Error("attribute not allowed: " + name);
      else if (name === "href" && !/^[#./?]/.test(value)) throw new Error("address not allowed: " + value);
      else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
    return element;
  };
  const make = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
  const svg = (name, attributes, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
  const byId = (id) => document.getElementById(id);

  // Text in which no line breaks within `3 of 4` or `37% to 60%`; a name that may break where its words meet.
  const bound = (text) => text.replace(/([\d%]) (of|to) (?=[-+$]?\d)/g, "$1\u00a0$2\u00a0");
  const named = (name) => name.split(/(?<=[_/:.-])/).flatMap((part, place) => (place ? [make("wbr"), part] : [part]));

  // The button that switches between light and dark; the choice is kept where the browser allows it.
  const theme = (button) => {
    const root = document.documentElement;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
    const show = () => { button.textContent = isDark() ? "Light" : "Dark"; };
    const kept = (change) => { try { return change(localStorage); } catch { return null; } };
    const before = kept((storage) => storage.getItem("agentclinic-theme"));
    if (before === "light" || before === "dark") root.dataset.theme = before;
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      kept((storage) => storage.setItem("agentclinic-theme", root.dataset.theme));
      show();
    });
    dark.addEventListener("change", show);
    button.hidden = false;
    show();
  };

  return { make, svg, byId, theme, bound, named };
})();
