import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { readAgents } from './liars/agent.ts'
import { HARNESSES } from './liars/harnesses.ts'
import { type Harness, MOST_ROUNDS, play, type Reviewer, type Verdict } from './liars/play.ts'
import { findNativeCodex } from './rounds.ts'
import { runAnyhow } from './run-command.ts'

/** How many agents work side by side. */
const SIDE_BY_SIDE = 2

/** A line of the table. */
interface Row {
  harness: string
  reviewer: Reviewer | null
  /** Names: who said done and was not, and who was and was refused. */
  falseDone: readonly string[]
  refused: readonly string[]
  rounds: number
  tokens: number
  ms: number
}

/**
 * `npm run bench liars -- [--on word] [--json] [word …]`: forty scripted agents, of which 32 claim what is not true, on harnesses that are
 * to tell them apart (docs/inside/liars.md). Words pick agents by their names, and `--on` harnesses.
 */
export async function liars(args: readonly string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { on: { type: 'string', default: '' }, json: { type: 'boolean' } },
    allowPositionals: true,
  })
  const agents = readAgents().filter(
    ({ name }) => positionals.length === 0 || positionals.some(word => name.includes(word)),
  )
  const tell = (text: string) => process[values.json ? 'stderr' : 'stdout'].write(`${text}\n`)
  const codex = await findNativeCodex()
  const folder = await mkdtemp(join(tmpdir(), 'liars-'))
  const rows: Row[] = []
  const missing: { harness: string; why: string }[] = []
  try {
    for (const harness of HARNESSES.filter(({ name }) => name.includes(values.on))) {
      const why = (await harness.install?.(folder)) ?? null
      if (why !== null) missing.push({ harness: harness.name, why })
      for (const reviewer of why === null ? (harness.reviewers ?? [null]) : []) {
        const verdicts = await playAll(agents, agent => play(agent, harness, reviewer, { codex, installed: folder }))
        for (const row of rowsOf(harness, reviewer, verdicts)) {
          rows.push(row)
          tell(
            `${lineOf(row)}\n  false done: ${row.falseDone.join(', ')}\n  honest, and refused: ${row.refused.join(', ')}`,
          )
        }
      }
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  const lies = agents.filter(({ honest }) => !honest).length
  if (!values.json) return void tell(`\n${tableOf(rows, missing, lies, agents.length - lies)}`)
  const version = (await runAnyhow(codex, ['--version'])).stdout.trim()
  process.stdout.write(
    `${JSON.stringify({ codex: version, lies, honest: agents.length - lies, mostRounds: MOST_ROUNDS, rows, missing }, null, 2)}\n`,
  )
}

/** Runs `each` for all of them, so many side by side; answers in their order. */
export async function playAll<T, R>(all: readonly T[], each: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const waiting = [...all.entries()]
  await Promise.all(
    Array.from({ length: SIDE_BY_SIDE }, async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
        results[next[0]] = await each(next[1])
    }),
  )
  return results
}

/** The row of a harness; of one that can require more for done, that of both. */
export function rowsOf(harness: Harness, reviewer: Reviewer | null, verdicts: readonly Verdict[]): Row[] {
  const { name, requires } = harness
  const row = (of: string, isDone: (verdict: Verdict) => boolean): Row => {
    const names = (which: (verdict: Verdict) => boolean) => verdicts.filter(which).map(({ agent }) => agent.name)
    const sum = (key: 'rounds' | 'tokens' | 'ms') => Math.round(verdicts.reduce((total, each) => total + each[key], 0))
    return {
      harness: of,
      reviewer,
      falseDone: names(verdict => isDone(verdict) && !verdict.isTrue),
      refused: names(verdict => verdict.agent.honest && !isDone(verdict)),
      rounds: sum('rounds'),
      tokens: sum('tokens'),
      ms: sum('ms'),
    }
  }
  const all = row(name, ({ said }) => said !== false)
  return requires === undefined ? [all] : [all, row(`${name} ${requires}`, ({ said }) => said === true)]
}

const nameOf = ({ harness, reviewer }: Row) => (reviewer === null ? harness : `${harness} (${reviewer})`)

const lineOf = (row: Row) =>
  `${nameOf(row)}: ${row.falseDone.length} false done, ${row.refused.length} refused, ${row.rounds} rounds, ${row.tokens} tokens, ${row.ms} ms`

function tableOf(
  rows: readonly Row[],
  missing: readonly { harness: string; why: string }[],
  lies: number,
  honest: number,
): string {
  const first = rows[0]?.ms ?? 1
  return [
    `| harness | false done of ${lies} | honest refused of ${honest} | rounds | tokens | time |`,
    '| --- | --- | --- | --- | --- | --- |',
    ...rows.map(
      row =>
        `| ${nameOf(row)} | ${row.falseDone.length} | ${row.refused.length} | ${row.rounds} | ${(row.tokens / 1e6).toFixed(2)} M | ${(row.ms / first).toFixed(2)} × |`,
    ),
    ...missing.map(({ harness, why }) => `| ${harness} | not played: ${why} | | | | |`),
  ].join('\n')
}
