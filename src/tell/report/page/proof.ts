import { formatDuration } from '../../words/numbers.ts'
import { placeOf, SEVERITY_TONES } from '../../words/proof.ts'
import type { ReportData, ReportGate } from '../report-data.ts'
import {
  beforeInWords,
  capital,
  gateInWords,
  noGateInWords,
  notesOnProof,
  protectedInWords,
  reviewInWords,
  toneOfGate,
} from '../words.ts'
import { Html, html, items, prose, section, withGap } from './html.ts'

/** The section on the proof: gates, reviews, findings and protected files. */
export function proofSection(data: ReportData): Html {
  const { proof } = data
  const none = noGateInWords(data, 'the work')
  const { gates, reviews, findings, findingsCount, protectedFiles, protectedCount, tree } = proof
  const reviewed = reviews.entries.map(review => {
    const { text, tone } = reviewInWords(review)
    return html`<span class="${tone}">${text}</span> <small>after round ${review.round}, ${formatDuration(review.durationMs)}</small>${review.summary === '' ? null : html`<div class="words">${prose(review.summary)}</div>`}`
  })
  const notes = notesOnProof({ proof }).map(({ text, tone }) => html`<span class="${tone}">${text}</span>`)
  const more = findingsCount - findings.length
  return section(
    'Proof',
    html`${
      none === null ? items(gates.map(gateItem)) : html`<p class="quiet">${capital(none)}.</p>`
    }${notes.length === 0 ? null : html`<h3>To know</h3>${items(notes)}`}${reviewed.length === 0 ? null : html`<h3>Reviews</h3>${items(withGap(reviews, reviewed))}`}${
      findings.length === 0
        ? null
        : html`<h3>Open findings</h3>${items([
            ...findings.map(findingItem),
            ...(more > 0 ? [html`<span class="quiet">and ${more} more</span>`] : []),
          ])}`
    }${
      protectedCount === 0
        ? null
        : html`<h3>Protected, and changed</h3>${items([
            ...protectedFiles.map(file => html`<code>${file.path}</code> <small>${protectedInWords(file)}</small>`),
            ...(protectedCount > protectedFiles.length
              ? [html`<span class="quiet">and ${protectedCount - protectedFiles.length} more</span>`]
              : []),
          ])}`
    }${tree === null ? null : html`<p class="soft last">Accepted for the tree <code>${tree}</code></p>`}`,
    true,
  )
}

function gateItem(gate: ReportGate): Html {
  const { name, run, last, runs, flaky, failed } = gate
  const before = beforeInWords(gate)
  const history = [
    ...(before === null ? [] : [before]),
    ...(runs > 1 && failed + flaky > 0
      ? [`of ${runs} runs ${[...timesOf(failed, 'failed'), ...timesOf(flaky, 'flaky')].join(', ')}`]
      : []),
  ]
  const shown = last?.output.trim() ?? ''
  const problem = last?.problem ?? null
  return html`<code>${name}</code> <span class="${toneOfGate(gate)}">${gateInWords(gate)}</span>${
    run === null || run === name ? null : html`<small> ${run}</small>`
  }${problem === null ? null : html`<div class="words">${problem}</div>`}${
    history.length === 0 ? null : html`<div class="soft">${history.join('; ')}</div>`
  }${shown === '' ? null : html`<details${last?.status === 'passed' ? null : new Html(' open')}><summary>the end of what it printed</summary><pre>${shown}</pre></details>`}`
}

function timesOf(count: number, how: string): string[] {
  return count === 0 ? [] : [`${count} ${how}`]
}

function findingItem(finding: ReportData['proof']['findings'][number]): Html {
  const { severity, problem, mend, repeated } = finding
  const place = finding.file === null ? null : html`<code>${placeOf(finding)}</code> `
  return html`<span class="${SEVERITY_TONES[severity]}">${severity}</span> ${place}${
    repeated ? html`<small>found again; you decide</small>` : null
  }<div class="words">${prose(problem)}</div><div class="words soft">${prose(mend)}</div>`
}
