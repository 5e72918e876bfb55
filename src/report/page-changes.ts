import { type Html, html } from './escape.ts'
import { folded, gapItem, section } from './page-parts.ts'
import type { ReportData } from './report-data.ts'

/** Which files and lines have changed, and which commits were made. */
export function changesSection({ changes }: ReportData, { areSavepointsGone = false } = {}): Html {
  const { paths, files, commits, from, start, now, byGates } = changes
  const ofGates = new Set(byGates)
  const hasLines = from === 'savepoints'
  const lines = (count: number | null, sign: string) =>
    count === null ? 'not text' : count === 0 ? '' : `${sign}${count}`
  const rows = paths.map(
    ({ path, added, removed }) =>
      html`<tr><td>${path}${ofGates.has(path) ? html`<small>by a gate</small>` : null}</td>${
        hasLines
          ? html`<td class="n"><span class="good">${lines(added, '+')}</span></td><td class="n"><span class="bad">${added === null ? '' : lines(removed, '−')}</span></td>`
          : null
      }</tr>`,
  )
  const table = html`<table class="files"><thead><tr><th scope="col">file</th>${
    hasLines ? html`<th scope="col" class="n">added</th><th scope="col" class="n">removed</th>` : null
  }</tr></thead><tbody>${rows}</tbody></table>`
  const made = commits.entries.map(({ commit, subject }) => html`<code>${commit.slice(0, 10)}</code> ${subject}`)
  const more = files - paths.length
  return section(
    'What changed',
    html`${paths.length === 0 ? html`<p class="quiet">No file is different from what it was.</p>` : table}${
      more > 0 ? html`<p class="quiet">and ${more} more files</p>` : null
    }${hasLines || paths.length === 0 ? null : html`<p class="soft last">As the rounds told it; there are no savepoints to compare.</p>`}${
      made.length === 0 ? null : html`<h3>Commits</h3>${folded(gapItem(commits, made))}`
    }${
      start === null || now === null
        ? null
        : html`<p class="soft last">From the tree <code>${start.tree.slice(0, 12)}</code> to <code>${now.tree.slice(0, 12)}</code>; ${changes.savepoints} savepoints${areSavepointsGone ? ', which were pruned' : null}.</p>`
    }`,
    true,
  )
}
