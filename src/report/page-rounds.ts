import { formatDuration } from '../ui/format-duration.ts'
import { shortNumber } from '../ui/format-tokens.ts'
import { type Html, html } from './escape.ts'
import { gapItem, section, timeOfDay } from './page-parts.ts'
import type { ReportData, ReportRound } from './report-data.ts'
import { numberOfRow, outcomeOfRow } from './round-in-words.ts'

/** The table of rounds; of many, the first and the last ones, and the sum of those between. */
export function roundsSection({ rounds, createdAt }: ReportData): Html {
  if (rounds.count === 0) return html``
  const { durationMs, tokens, failed } = rounds.leftOutSums
  const gap = html`<tr class="gap"><td class="n">…</td><td></td><td class="n">${formatDuration(durationMs)}</td><td class="n">${shortNumber(tokens)}</td><td></td><td>${rounds.leftOut} rounds left out here, ${failed} of them failed</td></tr>`
  const before = (index: number) => Date.parse(rounds.entries[index - 1]?.startedAt ?? createdAt)
  const rows = rounds.entries.map((round, index) => rowOf(round, before(index)))
  const table = html`<table class="rows rounds"><thead><tr><th scope="col" class="n" aria-label="round">no.</th><th scope="col" class="n">start</th><th scope="col" class="n">time</th><th scope="col" class="n">tokens</th><th scope="col" class="n">files</th><th scope="col">outcome</th></tr></thead><tbody>${gapItem(rounds, rows, gap)}</tbody></table>`
  // On a phone hundreds of them are a long way to what comes after.
  const body =
    rounds.count <= MOST_OPEN
      ? table
      : html`<details><summary>${rounds.count} rounds, one by one</summary>${table}</details>`
  return section('Rounds', body, true)
}

const MOST_OPEN = 30

/** The day is said where it is not that of the moment `before`. */
function rowOf(round: ReportRound, before: number): Html {
  const at = Date.parse(round.startedAt)
  const tasks = round.tasks === null ? null : html`<small>${round.tasks.done} of ${round.tasks.total} tasks</small>`
  return html`<tr><td class="n">${numberOfRow(round)}</td><td class="n">${timeOfDay(at, before)}</td><td class="n">${formatDuration(round.durationMs)}</td><td class="n">${round.tokens === null ? '' : shortNumber(round.tokens)}</td><td class="n">${round.files}</td><td><span class="${toneOf(round)}">${outcomeOfRow(round)}</span>${tasks}</td></tr>`
}

function toneOf({ outcome, claim }: ReportRound): string {
  if (claim === 'accepted') return 'good'
  if (outcome === 'worked') return claim === 'refused' ? 'warning' : 'plain'
  return outcome === null || outcome === 'interrupted' ? 'warning' : 'bad'
}
