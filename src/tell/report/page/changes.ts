import type { CommitPages } from '../../../workspace/git/remote.ts'
import { formatCount } from '../../words/numbers.ts'
import { oneLine } from '../../words/safe-text.ts'
import type { FileDiff } from '../file-diffs.ts'
import type { ReportData } from '../report-data.ts'
import { noPathsInWords, notKeptInWords } from '../words-of-changes.ts'
import { folded, type Html, html, section, withGap } from './html.ts'

/** What the page has that the journal does not say. */
export interface PageExtras {
  /** By path, what has changed in each of the files that the report names; null: there are no savepoints to read it from. */
  diffs: ReadonlyMap<string, FileDiff> | null
  /** Null: commits are not linked. */
  commits: CommitPages | null
}

type ChangedFile = ReportData['changes']['paths'][number]

/** Which files and lines have changed, each file with its diff folded below it, and which commits were made. */
export function changesSection(data: ReportData, extras: PageExtras, { areSavepointsGone = false } = {}): Html {
  const { changes } = data
  const { paths, files, commits, start, now } = changes
  const more = files - paths.length
  const unseen = notKeptInWords(data)
  const made = commits.entries.map(({ commit, subject }) => html`${commitLink(commit, extras)} ${subject}`)
  return section(
    'Changes',
    html`${paths.length === 0 ? html`<p class="quiet">${noPathsInWords(changes)}</p>` : filesOf(changes, extras)}${
      more > 0 ? html`<p class="quiet">and ${more} more files</p>` : null
    }${changes.from === 'savepoints' || paths.length === 0 ? null : html`<p class="soft last">As the rounds reported it; there are no savepoints to compare.</p>`}${
      made.length === 0 ? null : html`<h3>Commits</h3>${folded(withGap(commits, made))}`
    }${unseen === null ? null : html`<p class="soft">${unseen}</p>`}${
      start === null || now === null
        ? null
        : html`<p class="soft last">From the tree <code>${start.tree.slice(0, 12)}</code> to <code>${now.tree.slice(0, 12)}</code>; ${changes.savepoints} savepoints${areSavepointsGone ? ', which were pruned' : null}.</p>`
    }`,
    true,
  )
}

const HASH = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/

/** The hash of a commit, linked where the repository's host is known; the host has it once it was pushed. */
function commitLink(commit: string, { commits }: PageExtras): Html {
  const shown = html`<code>${commit.slice(0, 10)}</code>`
  if (commits === null || !HASH.test(commit)) return shown
  return html`<a href="${commits.url}${commit}" rel="noopener noreferrer">${shown}</a>`
}

function filesOf(changes: ReportData['changes'], { diffs }: PageExtras): Html {
  const ofGates = new Set(changes.byGates)
  const hasLines = changes.from === 'savepoints'
  const rows = changes.paths.map(file => {
    const head = html`<span class="path">${oneLine(file.path, MOST_OF_PATH)}${
      ofGates.has(file.path) ? html` <small>by a gate</small>` : null
    }</span>${hasLines ? countsOf(file) : null}`
    const diff = diffs?.get(file.path)
    return diff === undefined
      ? html`<div class="file">${head}</div>`
      : html`<details class="file"><summary>${head}</summary>${diffOf(diff)}</details>`
  })
  return html`<div class="files">${rows}</div>`
}

/** As a report keeps them. */
const MOST_OF_PATH = 500

function countsOf({ added, removed }: ChangedFile): Html {
  if (added === null || removed === null) return html`<span class="counts quiet">not text</span>`
  const counts = [
    ...(added > 0 ? [html`<span class="good">+${added}</span>`] : []),
    ...(removed > 0 ? [html`<span class="bad">−${removed}</span>`] : []),
  ]
  return html`<span class="counts">${counts.flatMap((count, at) => (at === 0 ? [count] : [' ', count]))}</span>`
}

function diffOf({ lines, shown, changed, note }: FileDiff): Html {
  const left = changed - shown
  return html`${note === null ? null : html`<p class="soft note">${note}</p>`}${
    lines.length === 0 ? null : html`<pre class="diff">${lines.map(diffLine)}</pre>`
  }${
    left > 0
      ? html`<p class="soft note">${shown === 0 ? 'None' : `The first ${shown.toLocaleString('en')}`} of ${formatCount(changed, 'changed line').replace(/^\d+/, count => Number(count).toLocaleString('en'))} ${shown === 1 ? 'is' : 'are'} shown here.</p>`
      : null
  }`
}

const KINDS: Readonly<Record<string, string>> = { '+': 'added', '-': 'removed', '@': 'hunk', '\\': 'hunk' }

/** A line in an element of its own, which carries its sign: it can be told without colours, and copied. */
export function diffLine(line: string): Html {
  const kind = KINDS[line.charAt(0)]
  return kind === undefined ? html`<span>${line}\n</span>` : html`<span class="${kind}">${line}\n</span>`
}
