import { hasPassed } from '../../core/events/outcome.ts'
import type { Certificate } from '../../core/rules/certificate.ts'
import { codeSpan, escapeMarkdown } from '../../tell/report/markdown.ts'
import { wordsForNamedState } from '../../tell/words/contract.ts'
import { oneLine, titleLine } from '../../tell/words/safe-text.ts'
import type { CheckedBundle } from './check.ts'
import { linesOfBundle, outcomeOf } from './check-words.ts'

/** Most rows of a table or list; longest quote and command line in it, in characters. */
const MOST_ROWS = 50
const QUOTE_CHARS = 300
const NAME_CHARS = 120

/**
 * Returns the result of a bundle check as Markdown (GFM) for the summary of a CI job; the first line is the outcome. A
 * bundle is a stranger's text, so it yields no link, image, mention or HTML.
 */
export function summaryOfBundle(checked: CheckedBundle): string {
  const { certificate, holds } = checked
  const sections = [
    `## Certificate ${holds ? 'passed' : 'failed'}: ${escapeMarkdown(outcomeOf(checked))}`,
    `Session ${codeSpan(oneLine(certificate.session, NAME_CHARS))}: ${escapeMarkdown(titleLine(certificate.goal, NAME_CHARS))}`,
    table(['', 'found here'], linesOfBundle(checked)),
    ...contractOf(checked),
    ...gatesOf(checked),
    list('Not proved', unprovedIn(checked)),
  ]
  return `${sections.filter(each => each !== '').join('\n\n')}\n\n`
}

/** Returns the same summary for a bundle that could not be checked. */
export function summaryOfProblem(message: string): string {
  return `## Certificate failed: ${escapeMarkdown(oneLine(message, 1000))}\n\n`
}

function contractOf({ certificate: { contract }, gates }: CheckedBundle): string[] {
  const asking = askingOf(contract)
  if (asking.length === 0) return []
  const rows = asking.map(({ id, quote, state, checks }) => {
    const runs = checks.map(({ name }) => gates.find(({ gate }) => gate.name === name)?.status)
    const passed = runs.filter(status => status !== undefined && hasPassed(status)).length
    return [id, quote, wordsForNamedState(state), `${passed} of ${checks.length}`]
  })
  return ['### What was asked for', table(['', 'sentence', 'as the certificate says', 'checks that pass here'], rows)]
}

function gatesOf({ certificate, gates }: CheckedBundle): string[] {
  if (certificate.gates.length === 0) return []
  const rows = certificate.gates.map(({ name, status, required }) => {
    const here = gates.find(({ gate }) => gate.name === name)?.status
    return [name, `${status ?? 'did not run'}${required ? '' : ' (optional)'}`, here ?? 'did not run']
  })
  return ['### Gates', table(['gate', 'as the certificate says', 'here'], rows)]
}

/** Returns what the bundle does not prove, one line each. */
function unprovedIn({ certificate, signer, ran }: CheckedBundle): string[] {
  const { contract, gates, review, protectedChanged, network } = certificate
  const open = askingOf(contract).filter(({ state }) => state !== 'proved')
  const made = gates.filter(({ required, counterProof }) => required && counterProof?.result !== 'stands')
  return [
    ...(signer === null ? ['Who made it: it is not signed.'] : []),
    ...(ran ? [] : ['That its commands pass: they did not run here.']),
    ...(contract === undefined ? ['The sentences of the goal: it had no contract.'] : []),
    ...open.map(({ id, state, quote }) => `${id} (${wordsForNamedState(state)}): ${quote}`),
    ...(contract?.uncovered ?? []).map(piece => `Not covered by any sentence: ${piece}`),
    ...(contract?.behind === undefined ? [] : [`Asked for later: ${contract.behind}`]),
    ...made.map(({ name }) => `That ${name} fails without the work.`),
    ...(review?.agreed === true ? [] : ['That a reviewer agrees to these files.']),
    ...(protectedChanged.length === 0 ? [] : [`Protected files that changed: ${protectedChanged.join(', ')}`]),
    ...(network ? ['That it works without the network.'] : []),
  ]
}

function askingOf(contract: Certificate['contract']) {
  return (contract?.sentences ?? []).filter(({ kind }) => kind !== 'context')
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(shown).join(' | ')} |`
  return [line(head), `|${' --- |'.repeat(head.length)}`, ...rows.slice(0, MOST_ROWS).map(line), ...rest(rows)].join(
    '\n',
  )
}

function list(title: string, lines: readonly string[]): string {
  if (lines.length === 0) return ''
  return [`### ${title}`, '', ...lines.slice(0, MOST_ROWS).map(line => `- ${shown(line)}`), ...rest(lines)].join('\n')
}

function rest(rows: readonly unknown[]): string[] {
  return rows.length > MOST_ROWS ? ['', `… and ${rows.length - MOST_ROWS} more.`] : []
}

function shown(text: string): string {
  return escapeMarkdown(oneLine(text, QUOTE_CHARS))
}
