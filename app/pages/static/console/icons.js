// Icons, drawn with lines on a grid of 24. They stand beside words, so they are hidden from screen readers.

import { html } from "../vendor/preact.js";

const PATHS = {
  overview: "M4 13h4l2-7 4 12 2-5h4",
  users: "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7ZM2.5 20a6.5 6.5 0 0 1 13 0M16 4.5a3.5 3.5 0 0 1 0 6.5M18 14.2a6.5 6.5 0 0 1 3.5 5.8",
  configs: "M4 7h9M17 7h3M4 17h3M11 17h9M15 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM9 19.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Z",
  streams: "M4 9c3-4 5 4 8 0s5 4 8 0M4 16c3-4 5 4 8 0s5 4 8 0",
  money: "M3 6.5h18v12H3zM3 10.5h18M7 15h4",
  engagement: "M8 4h8v6a4 4 0 0 1-8 0ZM8 6H4v1a4 4 0 0 0 4 4M16 6h4v1a4 4 0 0 1-4 4M12 14v4M8.5 20h7",
  jobs: "M4 6h16M4 12h16M4 18h10",
  operations: "M5 4h14v6H5zM5 14h14v6H5zM8.5 7h.01M8.5 17h.01M12 7h4M12 17h4",
  menu: "M4 7h16M4 12h16M4 17h16",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  account: "M12 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM4 21a8 8 0 0 1 16 0",
  session: "M7 3h10v18H7zM11 18h2",
  identity: "M4 5h16v14H4zM8 15a2.5 2.5 0 0 1 5 0M10.5 11.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3ZM15 10h2M15 14h2",
  login_failure: "M12 3 2.5 20h19ZM12 10v4M12 17h.01",
  mail: "M3 5h18v14H3zM3 7l9 6 9-6",
  asset: "M12 3 3.5 7.5v9L12 21l8.5-4.5v-9ZM3.5 7.5 12 12l8.5-4.5M12 12v9",
  order: "M4 5h2l2 10h10l2-7H7M9.5 20h.01M16.5 20h.01",
  subscription: "M20 11a8 8 0 0 0-14-4L4 9M4 4v5h5M4 13a8 8 0 0 0 14 4l2-2M20 20v-5h-5",
  withdrawal: "M12 3v12M7 10l5 5 5-5M4 20h16",
  board: "M5 20V12M12 20V5M19 20v-5",
  conversation: "M4 5h16v11H9l-5 4Z",
  task: "M12 3l2.2 6.3L21 12l-6.8 2.7L12 21l-2.2-6.3L3 12l6.8-2.7Z",
  operator: "M12 3l8 3v6c0 4.5-3.4 7.8-8 9-4.6-1.2-8-4.5-8-9V6Z",
};

export const Icon = ({ name }) => html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d=${PATHS[name] ?? PATHS.task} /></svg>`;
