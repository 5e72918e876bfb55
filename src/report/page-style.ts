/** The look of the page: for a phone first, light and dark, and on paper. */
export const PAGE_STYLE = `
:root {
  color-scheme: light dark;
  --paper: #fbfaf7; --card: #ffffff; --ink: #23262b; --soft: #666c76; --line: #e6e3dc; --wash: #f3f1eb;
  --good: #2f7d4f; --warning: #9a6700; --bad: #b3372f; --accent: #3a6ea5;
  --chart-ink: #767c86; --chart-grid: #e9e6df; --chart-bar: #5b8db8; --chart-bad: #cf6a5f; --chart-wait: #d3a953; --chart-area: #dfeaf3;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #16181c; --card: #1d2025; --ink: #e4e3df; --soft: #9aa0aa; --line: #2d3138; --wash: #24282e;
    --good: #6cc08b; --warning: #d9a94a; --bad: #e5847b; --accent: #83b0dc;
    --chart-ink: #8d949f; --chart-grid: #2d3138; --chart-bar: #6f9fc9; --chart-bad: #d4766b; --chart-wait: #c79a45; --chart-area: #25384a;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  overflow-wrap: anywhere;
}
main, footer { max-width: 68rem; margin: 0 auto; padding: 0 1rem; }
header { padding: 2rem 0 .5rem; }
h1 { font-size: clamp(1.6rem, 1.2rem + 2vw, 2.3rem); line-height: 1.2; font-weight: 650; letter-spacing: -.015em; margin: .35rem 0 .75rem; }
h2 { font-size: 1.1rem; font-weight: 650; margin: 0 0 .75rem; }
h3 { font-size: .85rem; font-weight: 600; color: var(--soft); margin: 1rem 0 .25rem; }
figure h3 { margin-top: 0; }
p { margin: 0 0 .75rem; }
.kicker, .soft, small { color: var(--soft); font-size: .875rem; }
.kicker { margin: 0; }
p.last { margin: 1rem 0 0; }
.good { color: var(--good); } .warning { color: var(--warning); } .bad { color: var(--bad); } .quiet { color: var(--soft); }
.strong { font-weight: 600; }
.goal { border-left: 3px solid var(--line); padding: .1rem 0 .1rem 1rem; margin: 0 0 1rem; white-space: pre-wrap; font-size: 1.05rem; }
.words { white-space: pre-wrap; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 1.1rem 1.1rem 1rem; margin: 0 0 1rem; }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .75rem; margin: 0 0 1rem; }
.numbers div { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: .75rem .9rem; }
.numbers dt { color: var(--soft); font-size: .8rem; }
.numbers dd { margin: 0; font-size: 1.3rem; font-weight: 600; line-height: 1.3; font-variant-numeric: tabular-nums; }
.numbers small { display: block; font-weight: 400; font-size: .8rem; line-height: 1.4; }
ul { margin: 0; padding: 0; list-style: none; }
li { padding: .45rem 0; border-top: 1px solid var(--line); }
li:first-child { border-top: 0; padding-top: 0; }
li:last-child { padding-bottom: 0; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(17rem, 100%), 1fr)); gap: 1.25rem; }
figure { margin: 0; min-width: 0; }
figure svg { display: block; width: 100%; height: auto; max-width: 30rem; }
svg text { font-family: inherit; }
table { width: 100%; border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--soft); font-weight: 500; font-size: .8rem; }
th, td { padding: .4rem .5rem; border-top: 1px solid var(--line); vertical-align: top; }
thead th { border-top: 0; }
th:first-child, td:first-child { padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
th.n, td.n { text-align: right; white-space: nowrap; }
table.files td:first-child, table.rows td:last-child { width: 100%; }
/* Their widths are given, for the words of an agent may be of any length. */
table.tasks, table.agents { table-layout: fixed; }
table.tasks th:first-child { width: 4.5em; }
table.tasks th:last-child { width: 34%; }
table.agents th:nth-child(3) { width: 5em; }
table.agents th:nth-child(4) { width: 5em; }
td small { font-size: .8rem; }
table + p { margin-top: .6rem; }
header time { white-space: nowrap; }
tr.gap td { background: var(--wash); color: var(--soft); }
td small { display: block; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .85em; }
code { background: var(--wash); border-radius: 5px; padding: .1em .35em; }
pre { background: var(--wash); border-radius: 8px; padding: .7rem .8rem; margin: .5rem 0 0; white-space: pre-wrap; max-height: 22rem; overflow: auto; }
.commands code { display: inline-block; user-select: all; }
.commands span { display: block; color: var(--soft); font-size: .875rem; }
details { margin-top: .5rem; }
summary { cursor: pointer; color: var(--accent); font-size: .875rem; }
summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 3px; border-radius: 4px; }
footer { color: var(--soft); font-size: .8rem; padding: .5rem 1rem 2.5rem; }
@media (min-width: 44rem) {
  main, footer { padding-left: 1.5rem; padding-right: 1.5rem; }
  header { padding-top: 3rem; }
  section { padding: 1.4rem 1.5rem; }
  table { font-size: .9rem; }
}
@media (max-width: 30rem) {
  th, td { padding: .4rem .3rem; }
  table { font-size: .8125rem; }
  .numbers { grid-template-columns: 1fr 1fr; }
  table.rounds tr { display: grid; grid-template-columns: 2.2rem 3rem 1fr 1fr 2.4rem; border-top: 1px solid var(--line); padding: .35rem 0; }
  table.rounds th, table.rounds td { border: 0; padding: 0; }
  table.rounds th:last-child, table.rounds td:last-child { grid-column: 1 / -1; }
  table.rounds th.n:first-child, table.rounds td.n:first-child { text-align: left; }
  table.rounds tr.gap { background: var(--wash); }
}
@media print {
  :root {
    --paper: #fff; --card: #fff; --ink: #000; --soft: #444; --line: #ccc; --wash: #f4f4f4;
    --good: #1d5c38; --warning: #6f4a00; --bad: #8d211a; --accent: #2a5684;
    --chart-ink: #555; --chart-grid: #ddd; --chart-bar: #5b8db8; --chart-bad: #cf6a5f; --chart-wait: #d3a953; --chart-area: #dfeaf3;
  }
  body { font-size: 11pt; }
  section, figure, tr, li { break-inside: avoid; }
  section.long { break-inside: auto; }
  pre { max-height: none; }
  details::details-content { content-visibility: visible; display: block; height: auto; }
}
`
