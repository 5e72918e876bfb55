import { wordsForKind, wordsForSentence } from '../../words/contract.ts'
import { evidenceOf, howItCame, uncoveredInWords } from '../contract.ts'
import type { ReportContract, ReportData } from '../report-data.ts'
import { diffLine } from './changes.ts'
import { type Html, html, items, section } from './html.ts'

/** What was asked for, sentence by sentence; empty without a contract. */
export function contractSection({ contract }: ReportData): Html {
  if (contract === undefined) return html``
  const asking = contract.sentences.filter(({ kind }) => kind !== 'context')
  const uncovered = uncoveredInWords(contract).map(text => html`<span>${text}</span>`)
  return section(
    'What you asked for',
    html`<p class="soft">${contract.words}.</p>${asking.map(sentence)}${uncovered.length === 0 ? null : items(uncovered)}`,
    true,
  )
}

type ReportSentence = ReportContract['sentences'][number]

const TONES: Partial<Record<ReportSentence['state'], string>> = {
  proved: 'good',
  fails: 'bad',
  'not-checkable': 'soft',
}

/** One row, which opens to its checks, what these printed, and the wrong versions that were tried. */
function sentence(of: ReportSentence): Html {
  const { id, quote, kind, state, reason, checks, versions } = of
  const evidence = evidenceOf(of)
  return html`<details class="file sentence"><summary><span class="path">${id} ${quote}${
    evidence === '' ? null : html`<small>${evidence}</small>`
  }</span><span class="counts ${TONES[state] ?? 'warning'}">${wordsForSentence(state).replace(/[:,].*/, '')}</span></summary>
<p class="words">${quote}</p>
<p class="soft">${wordsForKind(kind)}; ${wordsForSentence(state)}${reason === null ? null : html`<br>${reason}`}</p>
${checks.map(check => html`<p class="note"><code>${check.run}</code> <small>${howItCame(check)}</small></p>${check.output === '' ? null : html`<pre>${check.output}</pre>`}`)}${versions.map(
  ({ summary, diff, isCaught }) =>
    html`<p class="note">A wrong version, <span class="${isCaught ? 'good' : 'warning'}">${isCaught ? 'noticed' : 'not noticed'}</span>: ${summary}</p><pre class="diff">${diff.split('\n').map(diffLine)}</pre>`,
)}</details>`
}
