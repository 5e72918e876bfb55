import { unreachable } from '../../base/errors.ts'
import { asSentence } from '../../base/text.ts'
import { hasPassed } from '../../core/events/outcome.ts'
import { PROJECT_FILE } from '../../core/rules/notices.ts'
import { refusalForPerson } from '../../core/rules/refusals.ts'
import type { BoardRow } from '../../core/view.ts'
import { type Tone, withRest, wordsForClass } from '../words/names.ts'
import { formatCount, formatDuration, shortNumber } from '../words/numbers.ts'
import { describeOutcome, type OutcomeInWords, wordsForCost, wordsForForecast } from '../words/outcome.ts'
import {
  type ProvedState,
  placeOf,
  SEVERITY_TONES,
  wordsForBefore,
  wordsForChangedByGate,
  wordsForCounterProof,
  wordsForFirstTime,
  wordsForFlaky,
  wordsForGate,
  wordsForReview,
} from '../words/proof.ts'
import type {
  ReportAgent,
  ReportBuild,
  ReportData,
  ReportGate,
  ReportReview,
  ReportRound,
  ReportTask,
  ReportWork,
} from './report-data.ts'

/** A sentence on the proof, and its tone. Parts of the text come from outside: escape it before it is shown. */
interface ProofLine {
  text: string
  tone: Tone
}

/** The heading above the outputs of a session. */
export const OUTPUTS = "Complete texts, in outputs/ of the session's records"

/** How a gate came out the last time, after its name: `failed (exit code 1), 41.2 s; it failed before round 1, too`. */
export function gateInWords(gate: ReportGate): string {
  const { last, before, required, added } = gate
  const optional = required ? [] : ['it is not required']
  if (last === null) {
    const first =
      before === null
        ? 'has not run'
        : `${wordsForFirstTime(added === true)}: ${wordsForGate(before)}; has not run since`
    return [first, ...optional].join('; ')
  }
  const since = before === null || hasPassed(last.status) ? null : wordsForBefore(before.status, last.status, added)
  const flaky = last.status === 'flaky' ? wordsForFlaky(last) : null
  const earlier = wasFlakyEarlier(gate) ? FLAKY_EARLIER : null
  const remarks = [since, flaky, earlier, ...optional].filter(remark => remark !== null)
  return [`${wordsForGate(last)}, ${formatDuration(last.durationMs)}`, ...remarks].join('; ')
}

/** How it had come out before round 1, or when it was added, where that is not said already; null if it is, or if it did not run then. */
export function beforeInWords({ last, before, added }: ReportGate): string | null {
  if (before === null || last === null) return null
  const isSaid = !hasPassed(last.status) && wordsForBefore(before.status, last.status) !== null
  return isSaid ? null : `${wordsForFirstTime(added === true)}: ${wordsForGate(before)}`
}

/** What a review came to, in words. */
export function reviewInWords(review: ReportReview): ProofLine {
  return { text: wordsForReview(review), tone: review.verdict === 'agreed' ? 'good' : 'warning' }
}

/** What weakens the proof: files that gates or rounds changed, changed settings, gates that protect nothing. */
export function notesOnProof({ proof }: Pick<ReportData, 'proof'>): ProofLine[] {
  const { gates, protectedCount, settingsChangedIn, whyNothing, configuration, counterProofs } = proof
  const changedByGates = gates.flatMap(({ name, changed, changedCount }) => {
    const words = wordsForChangedByGate({ changed, changedCount })
    return words === null ? [] : [{ text: `gate ${shortName(name)}: ${words}`, tone: 'warning' as const }]
  })
  return [
    ...(whyNothing === null
      ? []
      : [
          {
            text: `no file changed, and there are no tasks. The agent says why no work is needed: ${whyNothing}`,
            tone: 'warning' as const,
          },
        ]),
    ...changedByGates,
    ...(protectedCount === 0
      ? []
      : [
          {
            text: `rounds changed ${formatCount(protectedCount, 'file')} that gates protect${areAllPutBack(proof) ? ', and undid these changes' : ''}`,
            tone: areAllPutBack(proof) ? ('quiet' as const) : ('warning' as const),
          },
        ]),
    ...(configuration.count === 0
      ? []
      : [
          {
            text: `${formatCount(configuration.count, 'file')} that gates run through: ${namesOf(configuration)}`,
            tone: 'warning' as const,
          },
        ]),
    ...counterProofs.flatMap(linesForCounterProof),
    ...(settingsChangedIn === null
      ? []
      : [
          {
            text: `round ${settingsChangedIn} changed ${PROJECT_FILE}; its new content applies from the next run`,
            tone: 'warning' as const,
          },
        ]),
    ...(gates.length === 0 || proof.protected || counterProofs.some(wasTried)
      ? []
      : [{ text: UNPROTECTED, tone: 'quiet' as const }]),
  ]
}

function areAllPutBack({ protectedFiles, protectedCount }: ReportData['proof']): boolean {
  return protectedFiles.length === protectedCount && protectedFiles.every(({ putBack }) => putBack)
}

/** What a round did to a file that a gate protects: `deleted in round 2, and put back`. */
export function protectedInWords({ how, round, putBack }: ReportData['proof']['protectedFiles'][number]): string {
  const did = how === 'skipped' ? 'tests marked to be skipped' : how
  return `${did} in round ${round}${putBack ? ', and put back' : ''}`
}

function wasTried({ result }: ReportData['proof']['counterProofs'][number]): boolean {
  return result !== 'not-tried'
}

const MOST_NAMED = 3

/** What made a gate pass, and the doubts that a review had to agree to; none where nothing was found out. */
function linesForCounterProof(proof: ReportData['proof']['counterProofs'][number]): ProofLine[] {
  if (proof.doubts.length > 0) return proof.doubts.map(text => ({ text, tone: 'warning' }))
  const text = wordsForCounterProof({ ...proof, gate: shortName(proof.gate) }, MOST_NAMED)
  return text === null ? [] : [{ text, tone: 'quiet' }]
}

/** The first of these files, each with how it differs, and how many more there are. */
function namesOf({ files, count }: ReportData['proof']['configuration']): string {
  const shown = files.slice(0, MOST_NAMED).map(({ path, how }) => `${path} (${how === 'added' ? 'new' : how})`)
  return withRest(shown, count).join(', ')
}

const UNPROTECTED = 'no gate protects its files, so nothing checks whether tests were weakened'

/** The name of a gate, which may be a whole command: what is long is cut in the middle. */
export function shortName(name: string): string {
  const characters = [...name]
  return characters.length <= 40 ? name : `${characters.slice(0, 26).join('')}…${characters.slice(-12).join('')}`
}

/** Whether a gate came out flaky before it ran the last time, and not again then. */
export function wasFlakyEarlier({ last, flaky }: ReportGate): boolean {
  return flaky > 0 && last?.status !== 'flaky'
}

const FLAKY_EARLIER = 'it was flaky earlier in the session'

/** The tone of a gate's last result; `quiet` if it has not run. */
export function toneOfGate(gate: ReportGate): Tone {
  const { last, required } = gate
  if (last === null) return 'quiet'
  if (last.status === 'passed') return wasFlakyEarlier(gate) ? 'warning' : 'good'
  return last.status === 'flaky' || !required ? 'warning' : 'bad'
}

/** Why no gate of the session has run, a sentence without its end; null if there is one. `work`: what was not checked. */
export function noGateInWords(
  { proof, changes, gateRuns, contract }: Pick<ReportData, 'proof' | 'changes' | 'gateRuns' | 'contract'>,
  work: string,
): string | null {
  if (proof.gates.length > 0 || contract !== undefined) return null
  // Those of its parts, such as a step of a workflow that is worked on until it is done.
  const ofParts = [...new Set(gateRuns.entries.map(({ gate }) => shortName(gate)))]
  if (ofParts.length > 0) {
    return `no gates check the whole result; its steps were checked by ${withRest(ofParts.slice(0, MOST_NAMED), ofParts.length).join(', ')}`
  }
  return changes.from === 'none'
    ? 'nothing is proved'
    : `no gates are configured: no command was run that proves ${work}`
}

/** What it took: `7 rounds, 5 h 12 min, 1.3M tokens`. */
export function effortInWords({ totals, limits }: ReportData): string {
  const again = totals.attempts > totals.rounds ? ` (and ${totals.attempts - totals.rounds} that did not count)` : ''
  const waited = totals.waitedMs < 1000 ? '' : `, ${formatDuration(totals.waitedMs)} of it waiting`
  return `${formatCount(totals.rounds, 'round')}${again}, ${formatDuration(totals.durationMs)}${waited}, ${shortNumber(totals.tokens)} tokens${totals.cost === null ? '' : `, ${wordsForCost(totals.cost, limits)}`}`
}

/** When its rounds would come to wait for the usage window, by what they have used of it; null if that cannot be said. */
export function forecastInWords({ forecast, updatedAt }: ReportData): string | null {
  if (forecast === null) return null
  return wordsForForecast({ ...forecast, until: Date.parse(forecast.until) }, Date.parse(updatedAt))
}

/** How far the tasks are; null if there are none. */
export function tasksInWords({ tasks, build }: ReportData): string | null {
  const parked = build?.counts.parked ?? 0
  if (tasks === null || tasks.total === 0) return null
  return `${tasks.done} of ${tasks.total} done${parked === 0 ? '' : `, ${parked} parked`}`
}

/** How a round, one of the entries, ended, with codex's words and what became of a claim: `worked; claimed done, refused`. */
export function outcomeOfRow(row: ReportRound, { entries }: Pick<ReportData['rounds'], 'entries'>): string {
  const { outcome, status, message, claim, counts, changesPlan } = row
  const purpose = changesPlan ? 'change of plan: ' : row.purpose === null ? '' : `${row.purpose}: `
  const isFree = isFreeRow(row)
  const ended = outcome === null ? 'did not finish' : wordsForClass({ class: outcome, status })
  const why = message === null || outcome === 'worked' ? '' : `: ${message}`
  const claimed = claim === null ? '' : `; claimed done, ${claim}`
  const isLast = entries.indexOf(row) >= entries.findLastIndex(each => !isFreeRow(each))
  const again = outcome !== null && !counts && !isFree && !isLast ? ' (tried again)' : ''
  return `${purpose}${ended}${why}${again}${claimed}${isFree ? ' (does not count as a round)' : ''}`
}

/** The tone of how a round ended, and of what became of its claim. */
export function toneOfRound({ outcome, claim }: Pick<ReportRound, 'outcome' | 'claim'>): Tone {
  if (claim === 'accepted') return 'good'
  if (outcome === 'worked') return claim === 'refused' ? 'warning' : 'plain'
  return outcome === null || outcome === 'interrupted' ? 'warning' : 'bad'
}

/** The number of a round in a table; a dash for one that uses up none, whose number the next one has, too. */
export function numberOfRow(row: ReportRound): string {
  return isFreeRow(row) ? '–' : String(row.round)
}

/** True for rounds that do not count against `--rounds` (summaries, plan changes). */
function isFreeRow({ isFree, changesPlan }: ReportRound): boolean {
  return changesPlan || isFree
}

/** How a task stands: `done`, `parked: …`, `not done, after 2 failures`. */
export function taskInWords({ state, reason, failures }: ReportTask): string {
  if (state === 'parked') return `parked: ${reason ?? ''}`
  const times = failures === 0 ? '' : `, after ${formatCount(failures, 'failure')}`
  return state === 'done' ? `done${times}` : `not done${times}`
}

/** The tokens of each provider, the most first; null where all are of what codex is configured with. */
export function providersInWords({ tokens, providerTokens }: ReportData['totals']): string | null {
  const named = Object.entries(providerTokens)
  if (named.length === 0) return null
  const own = tokens - named.reduce((sum, [, each]) => sum + each, 0)
  const all = own > 0 ? [...named, ['codex', own] as const] : named
  const parts = all.toSorted((a, b) => b[1] - a[1]).map(([name, each]) => `${name} ${shortNumber(each)}`)
  return `Tokens by provider: ${parts.join(', ')}`
}

/** Which engine ran how many rounds, and the hosts that each could reach; null where codex alone worked. */
export function enginesInWords({ engines }: ReportData): string | null {
  if (engines === undefined) return null
  const { rounds, agents = {}, review, reached = {} } = engines
  const counted = (counts: Readonly<Record<string, number>>, what: string) =>
    Object.entries(counts).map(([name, count]) => `${shortName(name)} ${formatCount(count, what)}`)
  const hosts = Object.entries(reached).map(
    ([name, all]) =>
      `${shortName(name)} could reach ${all.includes('*') ? 'every host' : withRest(all.slice(0, MOST_NAMED), all.length).join(', ')}`,
  )
  const worked = [
    ...counted(rounds, 'round'),
    ...counted(agents, 'call'),
    ...(review == null ? [] : [`${shortName(review)} the review`]),
  ]
  return [worked.join(', '), ...hosts].join('; ')
}

/** How often an agent worked, and how that ended: `3 times, 1 failed`. */
export function instancesInWords({ instances, failed, terminated }: ReportAgent): string {
  const ends = [
    ...(failed === 0 ? [] : [`${failed} failed`]),
    ...(terminated === 0 ? [] : [`${terminated} broken off`]),
  ]
  return [formatCount(instances, 'time'), ...ends].join(', ')
}

/** Who worked in a build, on one line; null if nobody did. */
export function agentsInWords({ agents }: ReportBuild): string | null {
  if (agents.length === 0) return null
  return agents
    .map(
      each =>
        `${each.agent} ${each.instances}× (${formatDuration(each.durationMs)}, ${shortNumber(each.tokens)} tokens)`,
    )
    .join(', ')
}

/** How many tasks the table of a report does not have; null if it has all. */
export function tasksLeftOut({ tasks, counts }: ReportBuild): string | null {
  return leftOut(counts.tasks - tasks.length, 'task')
}

/** The same of the rows of a template's own board. */
export function rowsLeftOut({ rows, count }: NonNullable<ReportWork['board']>): string | null {
  return leftOut(count - rows.length, 'row')
}

function leftOut(count: number, what: string): string | null {
  return count === 0 ? null : `… and ${count} more ${count === 1 ? what : `${what}s`}`
}

/** How far a row of a template's own board is. */
export function rowInWords({ mark }: Pick<BoardRow, 'mark'>): string {
  return mark === 'claimed' ? 'claimed' : mark === 'now' ? 'at work' : mark.replace('-', ' ')
}

/** How the session came out, or how it stands, in words. */
export function headlineOf({ outcome, standing, proof, contract }: ReportData): OutcomeInWords {
  return outcome === null
    ? stands(standing)
    : describeOutcome(outcome, { ...provedBy(proof), contract: contract ?? null })
}

function provedBy({ tree, gates, reviewed, would }: ReportData['proof']): ProvedState {
  const results = gates.flatMap(({ name, last }) =>
    last?.when === 'claim' ? [{ gate: name, status: last.status }] : [],
  )
  return {
    claim: tree === null ? { state: 'none' } : { state: 'accepted', tree, results },
    gates,
    reviews: { agreedTo: reviewed ? tree : null },
    kind: would.prove ? { proves: true } : null,
    tests: would.tests === null ? null : { run: would.tests },
  }
}

function stands(standing: ReportData['standing']): OutcomeInWords {
  switch (standing) {
    case 'running':
      return { short: 'at work', text: 'at work: progress so far', hint: null, tone: 'strong' }
    case 'cut-off':
      return {
        short: 'cut off',
        text: 'cut off: codemachine ended before the session',
        hint: 'All records are saved. To continue: codemachine resume.',
        tone: 'warning',
      }
    case 'unknown':
    case 'ended':
      return { short: 'not ended', text: 'not ended; cannot tell if it is running', hint: null, tone: 'warning' }
    default:
      return unreachable(standing)
  }
}

/** Something that is left to do or to look at. Its text came from outside in part, and is not made safe. */
interface LeftItem {
  text: string
  tone: Tone
}

/** What is left for a person, the most urgent first; none if all is done. */
export function whatIsLeft(data: ReportData): LeftItem[] {
  const { proof, tasks, questions, refusals, outcome, build } = data
  const unanswered = questions.count - questions.entries.filter(({ answered }) => answered).length
  const { hint } = headlineOf(data)
  const parked = build?.counts.parked ?? 0
  const lastRefusal = refusals.entries.at(-1)
  // What gates and reviews say stands above.
  const isToldAbove = lastRefusal?.reason === 'gate-failed' || lastRefusal?.reason === 'review-findings'
  const isRefused = outcome?.kind !== 'done' && proof.claim === 'refused' && lastRefusal !== undefined && !isToldAbove
  return [
    ...(hint === null ? [] : [{ text: hint, tone: 'strong' as const }]),
    ...proof.gates.flatMap(({ name, last, required }) =>
      last !== null && !hasPassed(last.status)
        ? [
            {
              text: `gate ${shortName(name)}: ${wordsForGate(last)}`,
              tone: required ? ('bad' as const) : ('warning' as const),
            },
          ]
        : [],
    ),
    ...proof.findings.map(finding => ({ text: findingInWords(finding), tone: SEVERITY_TONES[finding.severity] })),
    ...(isRefused
      ? [{ text: `the last claim was not accepted: ${refusalForPerson(lastRefusal).fact}`, tone: 'warning' as const }]
      : []),
    ...(build?.tasks ?? []).flatMap(task =>
      task.state === 'parked'
        ? [{ text: `task ${task.id} ${task.name} is ${taskInWords(task)}`, tone: 'warning' as const }]
        : [],
    ),
    ...(tasks === null || tasks.done + parked >= tasks.total
      ? []
      : [{ text: tasksLeft({ ...tasks, total: tasks.total - parked }), tone: 'plain' as const }]),
    ...(unanswered === 0
      ? []
      : [
          {
            text: `${formatCount(unanswered, 'question')} that nobody answered: check the assumptions`,
            tone: 'plain' as const,
          },
        ]),
  ]
}

/** What a review found, and how it can be fixed: `major: src/theme.ts:41: The choice is lost. Fix: Keep it.` */
export function findingInWords(finding: ReportData['proof']['findings'][number]): string {
  const { severity, problem, mend, repeated } = finding
  const place = placeOf(finding)
  const again = repeated ? ' (found before; you decide)' : ''
  return `${severity}: ${place === '' ? '' : `${place}: `}${asSentence(problem)} Fix: ${mend}${again}`
}

function tasksLeft({ done, total, left }: NonNullable<ReportData['tasks']>): string {
  const count = `${formatCount(total - done, 'task')} not done`
  return left.length === 0 ? count : `${count}: ${left.join(' · ')}`
}

/** The text with a capital at its beginning, unless it begins with the name of a file. */
export function capital(text: string): string {
  if (/^\S*[./]\S/.test(text)) return text
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** The parts of a line: code is what stands between backticks, as many before it as behind it. */
export function codeIn(line: string): readonly { text: string; isCode: boolean }[] {
  const parts = line.split(/(?<!`)(`+)(?!`)([^\n]*?[^`\n])\1(?!`)/)
  return parts.flatMap((text, at) => {
    if (at % 3 === 1 || (at % 3 === 0 && text === '')) return []
    return [at % 3 === 0 ? { text, isCode: false } : { text: text.replace(/^ (.*`.*) $/, '$1'), isCode: true }]
  })
}
